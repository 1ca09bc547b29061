"""The rivals and the calibration's own method on points of `mc`, each calibrated on the other folds.

No label of `vp` is read, so that a method chosen by this is fixed before `vp` is looked at
(docs/PROCEDURE.md, sections 7 and 9). Where the procedure gives a rival all held-out data, it has `knn` and four fifths
of `mc` here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.venn_abers.crossfit import FOLD_COUNT, fold_of
from venn_admit.core.comparison.held_out import HeldOut, HeldOutPoints, ViewedPoints
from venn_admit.core.comparison.methods import ComparisonCalibration, ComparisonPoints, comparison_methods
from venn_admit.core.comparison.selective import CERTIFIED, Promise, selective_methods
from venn_admit.core.types import IntArray, MethodSets, SelectiveMethod
from venn_admit.errors import NotReadyError


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonData:
    """The points of `knn` and `mc`.

    Attributes:
        held_out: The splits, of which `vp` has no points.
        calibration: The same points, in any order.
        mc_rows: (n,) int64, the row in `calibration` of each point of `mc`.
    """

    held_out: HeldOut
    calibration: ComparisonCalibration
    mc_rows: IntArray


def rivals_on_mc(
    data: ComparisonData,
    rows: IntArray,
    promise: Promise,
    *,
    eta_loc: float | None,
    neighbour_count: int | None,
    seed: int,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> list[SelectiveMethod]:
    """Return what each rival makes of points of `mc`, calibrated on `knn` and the folds of `mc` without them.

    Args:
        rows: (m,) int64, those of `mc` to judge.

    Returns:
        The methods of `comparison_methods`, then those of `selective_methods` without the certified policy, which
        would need `vp`; m points each, in the order of `rows`.

    Raises:
        NotReadyError: There is nothing to calibrate on, because all points are of `mc` and in one fold.
    """
    mc = data.held_out.mc
    fold = fold_of(mc.keys, seed=seed)
    if not data.held_out.knn.keys and len(np.unique(fold)) == 1:
        raise NotReadyError(
            "expected points of mc in several folds, to calibrate on some and judge others, got all "
            f"{len(mc.keys):,} in one: a fold holds whole documents, of which mc has {len(set(mc.keys)):,}, and copies "
            "count as one; ingest held-out data of other documents"
        )
    parts: dict[str, list[tuple[IntArray, SelectiveMethod]]] = {}
    for number in range(FOLD_COUNT):
        places = np.flatnonzero(fold[rows] == number)
        if not places.size:
            continue
        others = np.ones(len(data.calibration.label), dtype=np.bool_)
        others[data.mc_rows[fold == number]] = False
        calibration = _calibration(data.calibration, np.flatnonzero(others))
        judged = rows[places]
        compared = comparison_methods(
            calibration,
            _points(data, judged),
            alpha=promise.alpha,
            eta_loc=eta_loc,
            seed=seed,
            memory_budget=memory_budget,
        )
        selective = selective_methods(
            HeldOut(data.held_out.knn, _held_out(mc, np.flatnonzero(fold != number)), data.held_out.vp),
            _seen(mc.seen, judged),
            promise,
            temperature=compared.parameters.temperature,
            neighbour_count=neighbour_count,
            seed=seed,
        )
        for verdict in _verdicts(compared.sets, selective.methods):
            parts.setdefault(verdict.name, []).append((places, verdict))
    return [_joined(name, found, len(rows)) for name, found in parts.items()]


def _verdicts(sets: tuple[MethodSets, ...], selective: tuple[SelectiveMethod, ...]) -> Iterator[SelectiveMethod]:
    for one in sets:
        yield SelectiveMethod(one.name, one.predicted, one.included.sum(axis=1) == 1, None)
    yield from (other for other in selective if other.name != CERTIFIED)


def _joined(name: str, parts: list[tuple[IntArray, SelectiveMethod]], count: int) -> SelectiveMethod:
    predicted, admitted = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    for places, part in parts:
        predicted[places], admitted[places] = part.predicted, part.admitted
    return SelectiveMethod(name, predicted, admitted, None)


def _calibration(data: ComparisonCalibration, rows: IntArray) -> ComparisonCalibration:
    return ComparisonCalibration(
        keys=[data.keys[row] for row in rows],
        label=data.label[rows],
        network_logits=data.network_logits[rows],
        nonconformity=None if data.nonconformity is None else data.nonconformity[rows],
        vectors=None if data.vectors is None else data.vectors[rows],
        draws=data.draws[rows],
    )


def _points(data: ComparisonData, rows: IntArray) -> ComparisonPoints:
    seen, places = data.held_out.mc.seen, data.mc_rows[rows]
    return ComparisonPoints(
        network_logits=seen.network_logits[rows],
        knn_logits=None if seen.view is None else seen.view.logits[rows],
        vectors=None if data.calibration.vectors is None else data.calibration.vectors[places],
        draws=data.calibration.draws[places],
    )


def _held_out(points: HeldOutPoints, rows: IntArray) -> HeldOutPoints:
    return HeldOutPoints([points.keys[row] for row in rows], points.label[rows], _seen(points.seen, rows))


def _seen(seen: ViewedPoints, rows: IntArray) -> ViewedPoints:
    return ViewedPoints(seen.network_logits[rows], None if seen.view is None else seen.view.take(rows))
