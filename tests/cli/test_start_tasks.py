"""`start` on three kinds of tasks: as much is admitted as by the softmax, and the report says what is not promised."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import venn_admit
from examples import make_essays
from tests.cli.program import Program
from tests.layer.encoders.networks import save_network
from tests.test_essays import vocabulary

LAYER = ("--filters", 64)
Task = tuple[str, ...]


def messages(folder: Path) -> Task:
    """The bundled messages to a shop, encoded by a network that nobody trained."""
    files = {name: venn_admit.example_texts() / f"{name}.csv" for name in ("train", "held-out", "test")}
    with files["train"].open(newline="") as file:
        words = {word.strip(".,!?").lower() for row in csv.DictReader(file) for word in row["text"].split()}
    save_network(folder / "network", words=sorted(word for word in words if len(word) > 1), width=48)
    options = ("--encoder", str(folder / "network"), "--layers", "1", "--allow-training-rows", "--epochs", "40")
    return (str(files["train"]), str(files["held-out"]), "--test", str(files["test"]), *options)


def essays(folder: Path) -> Task:
    """The words of generated essays, one in eleven of which is wrong."""
    make_essays.write(folder, sizes={"train": 100, "held-out": 200, "new": 40, "shifted": 40})
    save_network(folder / "network", words=vocabulary(), width=96)
    network = ("--encoder", str(folder / "network"), "--layers", "1")
    options = ("--task", "token", *network, "--allow-training-rows", "--epochs", "20")
    return (str(folder / "train.conll"), str(folder / "held-out.conll"), "--test", str(folder / "new.conll"), *options)


def digits(folder: Path) -> Task:
    """Handwritten digits as documents of eight tokens: each is a row of pixels, in the place of its row."""
    source = load_digits()
    order = np.random.default_rng(0).permutation(len(source.target))
    for name, rows in zip(("train", "held-out", "test"), np.split(order, [500, 1400]), strict=True):
        states = np.zeros((len(rows), 8, 8, 8), dtype=np.float32)
        states[:, np.arange(8), np.arange(8)] = source.images[rows] / 16
        np.savez(
            folder / f"{name}.npz",
            states=states.reshape(-1, 64),
            lengths=np.full(len(rows), 8),
            y=source.target[rows],
            id=[f"digit-{row}" for row in rows],
        )
    names = ",".join(f"digit {number}" for number in range(10))
    options = ("--encoder", "pixels", "--classes", names, "--epochs", "20")
    return (str(folder / "train.npz"), str(folder / "held-out.npz"), "--test", str(folder / "test.npz"), *options)


@pytest.mark.slow
@pytest.mark.usefixtures("blank_charts")
@pytest.mark.parametrize("task", [messages, essays, digits])
def test_as_much_is_admitted_as_the_softmax_would(
    program: Program, tmp_path: Path, task: Callable[[Path], Task]
) -> None:
    done = program("start", "own", *task(tmp_path), "--out", tmp_path / "own", *LAYER, "--json").result
    calibration, advice = done["report"]["calibration"], done["report"]["advice"]
    methods, own = done["evaluation"]["methods"], done["evaluation"]["own_method"]
    assert (calibration["asked_promise"], methods[own]["promise"]) == ("strongest", calibration["promise"])
    assert methods[own]["all"]["n"] >= methods["softmax >= 1 - alpha"]["all"]["n"] > 0
    # There is nothing to do only where every class is promised for; what is not is named.
    said = " ".join(advice)
    if calibration["promise"] == "average":  # the processor decides whether a policy passes that admits too little
        assert said.startswith(("Not certified", "Certified and not in use"))
    else:
        lacking = {"both": (), "predicted": done["classes"]}[calibration["promise"]]
        assert bool(advice) == bool(lacking)
        assert all(words in said for words in lacking)
