"""A snapshot of Venn-ADMIT: the radius of the bands and the ADMIT sets of vp, both from mc (sections 3 to 5)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeGuard

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.calibrators.bands import BandRadius, band_radius, bin_of
from venn_admit.core.calibrators.settings import CalibratorSettings, MethodSettings
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, join_points, join_rows, rows_of_split
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex, smallest_class_count
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, CalibrationPoints, FloatArray, IntArray
from venn_admit.errors import Code, NotReadyError
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.kept import BUDGET_PART, KeptSnapshot
from venn_admit.store.exemplars import approximations
from venn_admit.store.exemplars.approximations import LabelledApproximations, Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class MadeByAdmit:
    """The points of a snapshot with the radius of its bands.

    smallest_class_count: finds the fewest points that any class has in the band of each point of vp, (n_vp,) int64.
    vp_logits: (n_vp, C) float64, KNN(x) of the rows of vp, in their order, to compute the next snapshot; None if they
    were not read, or are large. differing: the exemplars whose rows may differ from the snapshot before, int64; None if
    any may.
    """

    rows: CalibrationRows
    radius: BandRadius
    singleton_count: int
    smallest_class_count: Callable[[], IntArray]
    kappa: int
    vp_logits: FloatArray | None = None
    differing: IntArray | None = None

    @property
    def usable_count(self) -> int:
        """The points of vp whose band holds at least kappa points of every class."""
        return int((self.smallest_class_count() >= self.kappa).sum())

    @property
    def largest_kappa(self) -> int:
        """The largest kappa that leaves any such points; 0 if every band of vp lacks at least one class."""
        return int(self.smallest_class_count().max())

    def store(self, connection: Connection, calibration_id: int) -> None:
        """Store the radius."""
        calibrations.add_band_radius(connection, calibration_id, self.radius)


def make(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters,
    settings: CalibratorSettings,
    *,
    memory_budget: int,
    instead: Replacements | None = None,
) -> MadeByAdmit:
    """Compute a snapshot; arguments and errors are those of the protocol `Method`."""
    if settings.undivided:
        return _make_undivided(connection, classifier, parameters, settings, memory_budget, instead)
    mc_ids, mc = read_points(connection, classifier, Split.MC, parameters, memory_budget, instead)
    radius = require_radius(mc, settings)
    admit = AdmitIndex(mc, class_count=classifier.class_count, settings=settings, omega=radius.omega)
    vp = _admit_sets_of_vp(connection, classifier, parameters, settings, admit, memory_budget, instead)
    mc_bins = bin_of(mc.match_count, settings.q_bins)
    mc_rows = rows_of_split(mc_ids, mc, mc_bins, None, class_count=classifier.class_count)
    return _made(mc_rows, radius, vp, settings)


def _made(
    mc_rows: CalibrationRows,
    radius: BandRadius,
    vp: "list[_SetBlock]",
    settings: CalibratorSettings,
    differing: IntArray | None = None,
) -> MadeByAdmit:
    logits = [block.logits for block in vp if block.logits is not None]
    return MadeByAdmit(
        rows=join_rows([mc_rows, *(block.rows for block in vp)]),
        radius=radius,
        singleton_count=sum(block.singleton_count for block in vp),
        smallest_class_count=lambda: np.concatenate([block.smallest_class_count() for block in vp]),
        kappa=settings.kappa,
        vp_logits=np.concatenate(logits) if len(logits) == len(vp) else None,
        differing=differing,
    )


def can_be_made_again(settings: MethodSettings) -> TypeGuard[CalibratorSettings]:
    """Return whether `make_again` can make a snapshot under the settings."""
    return isinstance(settings, CalibratorSettings) and not settings.undivided


def make_again(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters,
    settings: CalibratorSettings,
    snapshot: KeptSnapshot,
    changed_ids: IntArray,
    *,
    memory_budget: int,
) -> MadeByAdmit:
    """Compute what `make` does from the snapshot before, under the same parameters, with a division.

    An ADMIT set follows from the point and from mc. So if no point of mc is among the changed ones, the sets that are
    stored hold, and only those of changed points are computed.

    Args:
        changed_ids: The exemplars that are not known to be as they were, int64.
    """
    class_count, before, vp_logits = classifier.class_count, snapshot.rows, snapshot.vp_logits
    may_differ = np.isin(before.exemplar_ids, changed_ids)
    points, in_vp = approximations.points_among(connection, classifier, changed_ids, parameters.id)
    new = calibration_points(points.approximation, points.labels)
    bins = bin_of(new.match_count, settings.q_bins)
    of_mc = np.flatnonzero(~in_vp)
    mc_rows = join_rows(
        [
            before.take(np.flatnonzero(~may_differ & ~before.in_vp)),
            rows_of_split(points.exemplar_ids[of_mc], new.take(of_mc), bins[of_mc], None, class_count=class_count),
        ]
    )
    mc = mc_rows.points
    radius = require_radius(mc, settings)
    index_of = partial(AdmitIndex, class_count=class_count, settings=settings, omega=radius.omega)
    arrived = points.take(np.flatnonzero(in_vp))
    kept = before.take(np.flatnonzero(~may_differ & before.in_vp))
    old, kept_logits = kept.points, None if vp_logits is None else vp_logits[~may_differ[before.in_vp]]
    if not len(of_mc) and not (may_differ & ~before.in_vp).any():
        of_bins = np.flatnonzero(np.isin(mc_rows.bins, bins[in_vp]))  # in which the bands of changed points lie
        blocks = [
            _SetBlock(
                kept,
                lambda: index_of(mc).smallest_class_count(old.match_count, old.distance, memory_budget=memory_budget),
                int(kept.has_singleton.sum()),
                kept_logits,
            ),
            _set_block(arrived, index_of(mc.take(of_bins)), settings, class_count, memory_budget),
        ]
        return _made(mc_rows, radius, blocks, settings, changed_ids)
    admit = index_of(mc)
    if kept_logits is None:
        blocks = _admit_sets_of_vp(connection, classifier, parameters, settings, admit, memory_budget, None)
        return _made(mc_rows, radius, blocks, settings)
    view = Approximation(kept_logits, old.predicted, old.match_count, old.distance)
    blocks = [
        _set_block(one, admit, settings, class_count, memory_budget)
        for one in (LabelledApproximations(kept.exemplar_ids, old.label, view), arrived)
    ]
    others = kept.exemplar_ids[(blocks[0].rows.packed_sets != kept.packed_sets).any(axis=1)]
    return _made(mc_rows, radius, blocks, settings, np.concatenate([changed_ids, others]))


def _make_undivided(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters,
    settings: CalibratorSettings,
    memory_budget: int,
    instead: Replacements | None,
) -> MadeByAdmit:
    """A snapshot of all points of mc and vp, whose sets are each made from the others; the radius comes from knn."""
    _, knn = read_points(connection, classifier, Split.KNN, parameters, memory_budget, instead)
    radius = require_radius(knn, settings, Split.KNN)
    blocks = [
        block
        for split in (Split.MC, Split.VP)
        for block in approximations.split_blocks(connection, classifier, split, parameters.id, memory_budget, instead)
    ]
    points = join_points([calibration_points(block.approximation, block.labels) for block in blocks])
    logits = np.concatenate([block.approximation.logits for block in blocks])
    index = UndividedIndex(
        points,
        logits,
        class_count=classifier.class_count,
        settings=settings,
        omega=radius.omega,
        memory_budget=memory_budget,
    )
    sets = index.own_sets(memory_budget=memory_budget)
    fewest = smallest_class_count(sets.band_size)
    return MadeByAdmit(
        rows=rows_of_split(
            np.concatenate([block.exemplar_ids for block in blocks]),
            points,
            bin_of(points.match_count, settings.q_bins),
            sets.included,
            class_count=classifier.class_count,
            logits=logits,
        ),
        radius=radius,
        singleton_count=int(sets.singleton.sum()),
        smallest_class_count=lambda: fewest,
        kappa=settings.kappa,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _SetBlock:
    """A block of vp with its ADMIT sets; without its logits if those of vp are large."""

    rows: CalibrationRows
    smallest_class_count: Callable[[], IntArray]
    singleton_count: int
    logits: FloatArray | None


def _admit_sets_of_vp(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters,
    settings: CalibratorSettings,
    admit: AdmitIndex,
    memory_budget: int,
    instead: Replacements | None,
) -> list[_SetBlock]:
    blocks, size = list[_SetBlock](), 0
    for block in approximations.split_blocks(connection, classifier, Split.VP, parameters.id, memory_budget, instead):
        made = _set_block(block, admit, settings, classifier.class_count, memory_budget)
        size += block.approximation.logits.nbytes
        blocks.append(made if size <= memory_budget // BUDGET_PART else replace(made, logits=None))
    return blocks


def _set_block(
    block: LabelledApproximations, admit: AdmitIndex, settings: CalibratorSettings, class_count: int, memory_budget: int
) -> _SetBlock:
    approximation = block.approximation
    sets = admit.sets(
        approximation.logits,
        approximation.predicted,
        approximation.match_count,
        approximation.distance,
        memory_budget=memory_budget,
    )
    fewest = smallest_class_count(sets.band_size)
    return _SetBlock(
        rows=rows_of_split(
            block.exemplar_ids,
            calibration_points(approximation, block.labels),
            bin_of(approximation.match_count, settings.q_bins),
            sets.included,
            class_count=class_count,
        ),
        smallest_class_count=lambda: fewest,
        singleton_count=int(sets.singleton.sum()),
        logits=approximation.logits,
    )


def require_radius(points: CalibrationPoints, settings: CalibratorSettings, split: Split = Split.MC) -> BandRadius:
    """Return the radius of the bands from the points of a split; NotReadyError if there is none, or if it is 0."""
    radius = band_radius(points, settings.delta, split)
    if radius.omega == 0:
        raise NotReadyError(
            f"s_hat is 0: all points of {split} that have q > 0 and are predicted correctly lie at the same distance "
            "to training, so a band would hold equal distances only; check whether the vectors are the right ones, or "
            "calibrate by q alone, with an infinite delta",
            code=Code.EQUAL_DISTANCES,
        )
    return radius


def read_points(
    connection: Connection,
    classifier: Classifier,
    split: Split,
    parameters: StoredParameters,
    memory_budget: int,
    instead: Replacements | None = None,
) -> tuple[IntArray, CalibrationPoints]:
    """Return ids and points of a split, in order of ingestion, without their logits; instead: as in `split_blocks`."""
    ids, points = [], []
    for block in approximations.split_blocks(connection, classifier, split, parameters.id, memory_budget, instead):
        ids.append(block.exemplar_ids)
        points.append(calibration_points(block.approximation, block.labels))
    return np.concatenate(ids), join_points(points)
