"""Intervals along coverage curves: how certain the share right is as more points are admitted.

The curves themselves are those of `venn_admit.core.evaluation.curves.coverage_curve`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from venn_admit.core.checks import check_rows
from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, document_interval, wilson_interval
from venn_admit.core.types import BoolArray, FloatArray, IntArray

BAND_PLACES = 40
"""An interval is computed at no more than this many places along a curve, evenly spaced."""


@dataclass(frozen=True, slots=True, eq=False)
class CoverageBand:
    """95 % intervals of the share right at some places of a coverage curve.

    Places with fewer than `MINIMUM_TO_JUDGE` points, or documents that hold them, are left out.

    Attributes:
        count: (b,) int64, the number of points admitted at each place, ascending; b may be 0.
    """

    count: IntArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """One group's rows in the order in which they are admitted, (m,), and the number admitted at each place, (b,)."""

    rows: IntArray
    count: IntArray


def coverage_bands(
    score: FloatArray, correct: BoolArray, groups: Sequence[BoolArray], documents: Documents | None
) -> tuple[CoverageBand, ...]:
    """Return the intervals along the coverage curve of each group of points.

    Args:
        groups: (n,) bool each, the members of each group.
    """
    check_rows(score.size, {"correct": correct} | {f"group {i}": group for i, group in enumerate(groups)})
    order = np.argsort(-score, kind="stable")
    order = order[~np.isnan(score[order])]
    places = [_places(order[group[order]], score, documents) for group in groups]
    if documents is None:
        return tuple(
            CoverageBand(
                at.count, *wilson_interval(np.cumsum(correct[at.rows], dtype=np.int64)[at.count - 1], at.count)
            )
            for at in places
        )
    return _resampled_bands(places, correct, documents)


def _places(rows: IntArray, score: FloatArray, documents: Documents | None) -> _Places:
    """At most `BAND_PLACES` places, with both ends, at which a threshold admits enough points of enough documents."""
    value = score[rows]
    count = np.flatnonzero(np.append(value[1:] != value[:-1], True)[: value.size]) + 1
    units = count if documents is None else _documents_among_first(documents.code[rows], count)
    count = count[units >= MINIMUM_TO_JUDGE]
    chosen = np.unique(np.linspace(0, max(count.size - 1, 0), min(count.size, BAND_PLACES)).round().astype(np.int64))
    return _Places(rows, count[chosen])


def _documents_among_first(code: IntArray, count: IntArray) -> IntArray:
    """The number of documents that hold the first points, (b,); code: (m,) of the points in order, count: (b,)."""
    _, first = np.unique(code, return_index=True)
    return np.searchsorted(np.sort(first), count)


def _resampled_bands(places: Sequence[_Places], correct: BoolArray, documents: Documents) -> tuple[CoverageBand, ...]:
    """Intervals from the same documents drawn for all groups; points are counted between one place and the next."""
    starts = np.cumsum([0, *(at.count.size for at in places)])
    cells = int(starts[-1])
    rows = [at.rows[: at.count[-1]] if at.count.size else at.rows[:0] for at in places]
    cell = np.concatenate(
        [
            start + np.searchsorted(at.count, np.arange(kept.size), side="right")
            for at, kept, start in zip(places, rows, starts[:-1], strict=True)
        ]
    )
    row = np.concatenate(rows)
    hit = correct[row]
    drawn = documents.resampled_counts(
        np.concatenate([row, row[hit]]), np.concatenate([cell, cell[hit] + cells]), 2 * cells
    )  # (resamples, 2 cells)
    bands = []
    for at, (start, stop) in zip(places, pairwise(starts), strict=True):
        if start == stop:
            bands.append(CoverageBand(at.count, np.empty(0), np.empty(0)))
            continue
        points = np.cumsum(drawn[:, start:stop], axis=1)  # (resamples, b)
        right = np.cumsum(drawn[:, cells + start : cells + stop], axis=1)
        low, high = document_interval(
            np.cumsum(correct[at.rows], dtype=np.int64)[at.count - 1],
            at.count,
            _documents_among_first(documents.code[at.rows], at.count),
            np.concatenate([points, right], axis=1),
        )
        bands.append(CoverageBand(at.count, low, high))
    return tuple(bands)
