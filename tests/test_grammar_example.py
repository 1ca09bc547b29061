"""The experiment on grammatical errors, run on made words: its tables say what loops over single words find."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import grammar

SIZES = {"train": 400, "valid": 3000, "test": 500, "shifted": 400}
DIMENSION, WORDS_A_SENTENCE = 8, 10


def words(count: int, seed: int, *, errors: float, shift: float = 0.0) -> dict[str, Any]:
    """Words of sentences; errors lie in another direction, and a network knows the direction, but not the shift."""
    direction = np.random.default_rng(99).normal(size=DIMENSION)
    direction /= np.linalg.norm(direction)
    rng = np.random.default_rng(seed)
    label = (rng.random(count) < errors).astype(np.int64)
    vectors = rng.normal(size=(count, DIMENSION)) + np.outer(3.5 * label + shift, direction)
    logit = 2 * (vectors @ direction - 2.3)
    return {
        "r": vectors.astype(np.float16),
        "f": np.column_stack([-logit, logit]).astype(np.float32) / 2,
        "y": label,
        "doc": seed * 100_000 + np.arange(count) // WORDS_A_SENTENCE,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "words"
    made.mkdir()
    for seed, (name, count) in enumerate(SIZES.items()):
        of_set = {"errors": 0.06, "shift": 0.4} if name == "shifted" else {"errors": 0.12}
        np.savez(made / f"{name}.npz", **words(count, seed, **of_set))
    return made


def rows_of(text: str, title: str) -> list[list[str]]:
    """The cells of a table of Markdown."""
    found = re.search(rf"^## {re.escape(title)}[^\n]*\n\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()[2:]]


def f_half(label: list[int], predicted: list[int], of_class: int) -> float:
    hits = sum(y == said == of_class for y, said in zip(label, predicted, strict=True))
    precision, recall = hits / predicted.count(of_class), hits / label.count(of_class)
    return 1.25 * precision * recall / (0.25 * precision + recall)


@pytest.mark.usefixtures("blank_charts")
def test_the_tables_are_those_of_single_words(
    folder: Path, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENN_ADMIT_DATABASE_URL", database)
    out = tmp_path / "out"
    text = grammar.run(folder, out, kappa=10)
    assert (out / "tables.md").read_text() == text
    assert [(out / which / "index.html").is_file() for which in grammar.CALIBRATIONS] == [True, True]

    task = {row[0]: row[1:] for row in rows_of(text, "The task")}
    predictions = {(row[0], row[1]): row[2:] for row in rows_of(text, "Accuracy and F0.5")}
    assert list(task) == ["train", "valid", "test", "shifted"]
    assert [key for key in predictions if key[1] == "network"] == [
        (name, "network") for name in ("calibration data", "test", "shifted")
    ]
    for name in ("test", "shifted"):
        with np.load(folder / f"{name}.npz") as arrays:
            label, logits = arrays["y"].tolist(), arrays["f"].tolist()
        predicted = [int(row[1] > row[0]) for row in logits]
        right = sum(y == said for y, said in zip(label, predicted, strict=True)) / len(label)
        each = [f_half(label, predicted, c) for c in (0, 1)]
        errors, sentences = sum(label) / len(label), len(label) // WORDS_A_SENTENCE
        assert task[name] == [str(len(label)), str(sentences), grammar.share(errors), grammar.share(right)]
        accuracy, mean, of_error = predictions[name, "network"]
        assert accuracy.split()[0] == grammar.share(right)
        assert (mean.split()[0], of_error) == (grammar.share(sum(each) / 2), grammar.share(each[1]))
        low, high = (float(end) for end in re.findall(r"\d*\.\d+", mean)[1:])
        assert low < sum(each) / 2 < high
        (anything,) = (row for row in rows_of(text, f"What is admitted of {name}") if row[0] == "network")
        assert anything[2] == "1.000"
        for c, cell in enumerate(anything[5:7]):  # by true class
            of_class = [said == y for y, said in zip(label, predicted, strict=True) if y == c]
            assert cell.startswith(f"{grammar.share(sum(of_class) / len(of_class))} ")
        admitting = [row for row in rows_of(text, f"What is admitted of {name}") if row[2] not in (".000", "1.000")]
        assert {row[1] for row in admitting} >= {"sets", "pointwise"}
    assert len(rows_of(text, "Partitions of calibration data")) == 9
    assert text.count("```text") == 2
