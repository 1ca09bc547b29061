"""Generated essays whose errors are marked, and the way from their words to decisions on each."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from examples import make_essays
from tests.cli.databases import on_database
from tests.layer.encoders.networks import save_network
from venn_admit.layer.texts.source import TextFile

SMALL = {"train": 150, "held-out": 300, "new": 40, "shifted": 40}


def words_of(path: Path) -> list[tuple[str, str]]:
    rows = [line.split("\t") for line in path.read_text().splitlines() if "\t" in line]
    return [(word, label) for word, label in rows]


def vocabulary() -> list[str]:
    """Every word of the patterns, right or wrong, in small letters."""
    slots = " ".join((*make_essays.ESSAYS, *make_essays.LETTERS)).replace("/", " ").replace("|", " ").split()
    drawn = itertools.chain(*make_essays.DRAWN.values())
    return sorted({word.lower() for word in (*slots, *drawn) if len(word) > 1 and not word.startswith("{")})


def test_the_same_seed_writes_the_same_essays(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        make_essays.write(tmp_path / folder)
    for name, count in make_essays.SIZES.items():
        path = tmp_path / "one" / f"{name}.conll"
        assert path.read_bytes() == (tmp_path / "other" / f"{name}.conll").read_bytes()
        summary, labels = TextFile(path, "token").summary(), [label for _, label in words_of(path)]
        assert summary.documents == count
        assert summary.labels == Counter(labels)
        assert TextFile(path, "token").external_ids()[0] == f"{name}-0000"
        errors = labels.count(make_essays.ERROR) / len(labels)
        assert set(labels) == {make_essays.CORRECT, make_essays.ERROR}
        assert errors == pytest.approx(0.045 if name == "shifted" else 0.09, abs=0.012), name


def test_every_wrong_word_is_marked_and_no_right_one() -> None:
    for pattern in (*make_essays.ESSAYS, *make_essays.LETTERS):
        for slot in pattern.split():
            right, _, wrong = slot.partition("/")
            assert right not in wrong.split("|"), pattern
            assert not wrong or all(wrong.split("|")), pattern


@pytest.mark.slow
def test_from_essays_to_a_decision_on_every_word(database: str, tmp_path: Path) -> None:
    """A layer over a network that nobody trained finds most errors; the decisions admit words of both classes."""
    program, network = on_database(database, tmp_path), tmp_path / "network"
    make_essays.write(tmp_path, sizes=SMALL)
    save_network(network, words=vocabulary(), width=192)

    def run(*verb: object) -> None:
        done = program(*verb)
        assert done.code == 0, done.stderr

    model, out = tmp_path / "model", tmp_path / "decisions.parquet"
    training = ("--layers", 1, "--filters", 64, "--epochs", 40, "--learning-rate", 0.003, "--encoder", network)
    run("extract", "train", tmp_path / "train.conll", "--task", "token", *training, "--out", model)
    for name in ("train", "held-out", "new"):
        words = tmp_path / f"{name}.conll"
        run("extract", "apply", model, words, "--encoder", network, "--out", words.with_suffix(".parquet"))
    run("create", "essays", "--classes", f"{make_essays.CORRECT},{make_essays.ERROR}", "--dim", 64)
    for name in ("train", "held-out"):
        run("ingest", "essays", tmp_path / f"{name}.parquet", "--split", name, "--allow-training-rows")
    run("fit", "essays")
    run("calibrate", "essays")
    run("score", "essays", tmp_path / "new.parquet", "--out", out)
    label = np.array([label for _, label in words_of(tmp_path / "new.conll")])
    decided = np.array(pq.read_table(out)["decided_class"].to_pylist(), dtype=object)
    predicted = np.array(pq.read_table(out)["predicted_class"].to_pylist())
    assert len(decided) == len(label)
    for name, least in ((make_essays.CORRECT, 0.9), (make_essays.ERROR, 0.8)):
        as_class = decided == name
        assert as_class.sum() > 0.3 * (label == name).sum()
        assert (label[as_class] == name).mean() > least
    found = predicted == make_essays.ERROR
    assert found[label == make_essays.ERROR].mean() > 0.5
