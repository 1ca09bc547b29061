"""Made-up calibrations for property tests: small, full of ties, with a rare class."""

from dataclasses import dataclass, fields
from decimal import Decimal

import numpy as np
from hypothesis import strategies as st

from venn_admit.core.approximation.knn import nonconformity
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.types import AdmitSets, Approximation, CalibrationPoints, IntArray


@dataclass(frozen=True)
class Scenario:
    """Labelled points of mc and vp, points to score, and what they are calibrated with."""

    class_count: int
    neighbour_count: int
    settings: CalibratorSettings
    omega: float
    mc: CalibrationPoints
    vp_view: Approximation
    vp: CalibrationPoints
    scored: Approximation


def make_view(rng: np.random.Generator, count: int, class_count: int, neighbour_count: int) -> Approximation:
    """Points on a coarse grid, so that distances, scores and partitions are often exactly equal."""
    logits = rng.integers(0, 3, (count, class_count)).astype(np.float64)
    logits[np.arange(count), rng.integers(0, class_count, count)] += 3.0
    return Approximation(
        logits=logits,
        predicted=logits.argmax(axis=1),
        match_count=rng.integers(0, neighbour_count + 1, count),
        distance=0.1 * rng.integers(0, 6, count).astype(np.float64),
    )


def with_labels(view: Approximation, labels: IntArray) -> CalibrationPoints:
    """The points as a calibration sees them."""
    return CalibrationPoints(
        label=labels,
        predicted=view.predicted,
        match_count=view.match_count,
        distance=view.distance,
        score=nonconformity(view.logits, labels),
    )


def make_labels(rng: np.random.Generator, view: Approximation, class_count: int) -> IntArray:
    """Most labels as predicted, the others by a law under which the last class is rare."""
    share = np.r_[np.full(class_count - 1, 1.0), 0.1]
    other = rng.choice(class_count, len(view.predicted), p=share / share.sum())
    return np.where(rng.random(len(other)) < 0.8, view.predicted, other)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """C in 2..6, K in 1..3, bins as fine as q or coarser, kappa 1 to 4.

    Band radii from 0 to unbounded, some of them steps of the distances' grid, so that points lie on a
    band's edge.
    """
    class_count = draw(st.integers(2, 6))
    neighbour_count = draw(st.integers(1, 3))
    settings = make_settings(
        class_count,
        neighbour_count,
        alpha=draw(st.sampled_from([Decimal("0.05"), Decimal("0.1"), Decimal("0.25"), Decimal("0.5")])),
        kappa=draw(st.sampled_from([1, 2, 4])),
        q_bins=(0, *sorted(draw(st.sets(st.integers(1, neighbour_count))))),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.tuples(*map(st.sampled_from, ([400, 100, 2, 0], [200, 1, 0], [20, 1, 0]))))
    mc_view, vp_view, scored = (make_view(rng, size, class_count, neighbour_count) for size in sizes)
    return Scenario(
        class_count=class_count,
        neighbour_count=neighbour_count,
        settings=settings,
        omega=draw(st.sampled_from([0.0, 0.1, 0.2, 0.30000000000000004, 0.47, np.inf])),
        mc=with_labels(mc_view, make_labels(rng, mc_view, class_count)),
        vp_view=vp_view,
        vp=with_labels(vp_view, make_labels(rng, vp_view, class_count)),
        scored=scored,
    )


def admit_index(scenario: Scenario, mc: CalibrationPoints | None = None) -> AdmitIndex:
    """The scenario's mc, or the same in other rows, as an index."""
    return AdmitIndex(
        scenario.mc if mc is None else mc,
        class_count=scenario.class_count,
        settings=scenario.settings,
        omega=scenario.omega,
    )


def sets_of(index: AdmitIndex, view: Approximation, rows: slice | IntArray = slice(None)) -> AdmitSets:
    """ADMIT sets of some rows of a view."""
    return index.sets(view.logits[rows], view.predicted[rows], view.match_count[rows], view.distance[rows])


def reordered(points: CalibrationPoints, rows: IntArray) -> CalibrationPoints:
    """The same points in another order."""
    return CalibrationPoints(*(getattr(points, field.name)[rows] for field in fields(points)))
