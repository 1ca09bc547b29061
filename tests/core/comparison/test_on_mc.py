"""Rivals on mc are calibrated on the other folds: a point's own label, and those of its fold, change nothing."""

from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.venn_abers.crossfit import FOLD_COUNT, fold_of
from venn_admit.core.comparison.adaptive import uniform_draws
from venn_admit.core.comparison.held_out import HeldOut, HeldOutPoints, ViewedPoints, document_sample
from venn_admit.core.comparison.methods import ComparisonCalibration
from venn_admit.core.comparison.on_mc import ComparisonData, rivals_on_mc
from venn_admit.core.comparison.selective import Promise
from venn_admit.core.types import Float32Array, IntArray, SelectiveMethod

COUNT, SEED = 600, 3
KEYS = [f"document-{row // 2}" for row in range(COUNT)]
PROMISE = Promise(Decimal("0.1"), (Decimal("0.9"),) * 2)


def points(logits: Float32Array, label: IntArray, keys: list[str]) -> HeldOutPoints:
    return HeldOutPoints(keys, label, ViewedPoints(logits, None))


def drawn() -> tuple[Float32Array, IntArray]:
    generator = np.random.default_rng(1)
    label = generator.integers(0, 2, COUNT)
    logits = generator.normal(0, 1, (COUNT, 2)).astype(np.float32)
    logits[np.arange(COUNT), label] += 2
    return logits, label


def verdicts(logits: Float32Array, label: IntArray, rows: IntArray) -> list[SelectiveMethod]:
    none = points(logits[:0], label[:0], [])
    calibration = ComparisonCalibration(
        keys=KEYS,
        label=label,
        network_logits=logits,
        nonconformity=None,
        vectors=None,
        draws=uniform_draws([str(row) for row in range(COUNT)], seed=SEED),
    )
    data = ComparisonData(HeldOut(none, points(logits, label, KEYS), none), calibration, np.arange(COUNT))
    return rivals_on_mc(data, rows, PROMISE, eta_loc=None, neighbour_count=None, seed=SEED)


def test_labels_of_a_fold_change_nothing_of_its_verdicts() -> None:
    logits, label = drawn()
    fold = fold_of(KEYS, seed=SEED)
    before = verdicts(logits, label, np.arange(COUNT))
    assert {one.name for one in before} >= {"APS", "SGR", "Venn-Abers network"}
    changed = 0
    for number in range(FOLD_COUNT):
        after = verdicts(logits, np.where(fold == number, 1 - label, label), np.arange(COUNT))
        for one, other in zip(before, after, strict=True):
            assert np.array_equal(one.admitted[fold == number], other.admitted[fold == number]), one.name
            changed += int(np.sum(one.admitted != other.admitted))
    assert changed


def test_a_verdict_does_not_depend_on_who_else_is_judged() -> None:
    logits, label = drawn()
    rows = document_sample(KEYS, seed=SEED, most=100)
    assert 50 < len(rows) < 150
    assert np.array_equal(rows[::2] + 1, rows[1::2])  # whole documents, of two points each
    every = {one.name: one for one in verdicts(logits, label, np.arange(COUNT))}
    for one in verdicts(logits, label, rows):
        assert np.array_equal(one.admitted, every[one.name].admitted[rows])
        assert np.array_equal(one.predicted, every[one.name].predicted[rows])


def test_one_large_document_is_judged_whole() -> None:
    keys = ["large"] * 300 + ["larger"] * 400
    assert len(document_sample(keys, seed=SEED, most=1)) in (300, 400)
