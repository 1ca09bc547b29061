"""The search of policies: against every choice, and what its policies keep."""

import itertools
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.calibrators.certified.laws import graded_points, points_of
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical, tally
from venn_admit.core.calibrators.certified.policies import Aim, Policy, admit, propose
from venn_admit.core.calibrators.certified.search import (
    LARGEST_OPTION_COUNT,
    Limits,
    Options,
    best_choice,
    threshold_options,
)

ALPHA = 0.1
BOTH = tuple(ClassKind)
SEEDS = st.integers(0, 2**32 - 1)


def limits_of(options: Options) -> Limits:
    allowed = options.exists & (options.wrong.sum(axis=2) <= ALPHA * options.admitted + 1e-9)
    return Limits(ALPHA, allowed, np.zeros(len(allowed)))


def most_by_trying_all(options: Options, limits: Limits) -> float:
    """The most that any choice admits whose true classes keep the share."""
    most = 0.0
    class_count = len(options.admitted)
    candidates = [np.flatnonzero(allowed[1:]) + 1 for allowed in limits.allowed]
    for choice in itertools.product(*candidates):
        rows = np.arange(class_count), np.array(choice)
        wrong = options.wrong[rows].sum(axis=0)
        if (wrong <= ALPHA * (wrong + options.right[rows]) + 1e-9).all():
            most = max(most, float(options.admitted[rows].sum()))
    return most


def test_the_search_finds_nearly_the_best_of_all_choices() -> None:
    parts = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        drawn = graded_points(rng, 300, frequencies=(0.6, 0.3, 0.1), sharpness=3.0)
        coarse = CertificatePoints(np.round(drawn.p0, 1 + seed % 2), drawn.predicted, drawn.label, drawn.document)
        coarse = CertificatePoints(np.round(coarse.p0 * 15) / 15, drawn.predicted, drawn.label, drawn.document)
        options = threshold_options(canonical(coarse)[0], 3, ALPHA)
        choice = best_choice(options, limits_of(options))
        found = 0.0 if choice is None else float(options.admitted[np.arange(3), choice].sum())
        best = most_by_trying_all(options, limits_of(options))
        assert found <= best
        assert (found > 0) == (best > 0)
        parts.append(found / best if best else 1.0)
    assert min(parts) > 0.8
    assert np.mean(parts) > 0.98


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, class_count=st.integers(2, 5), size=st.integers(1, 6))
def test_an_option_says_what_its_threshold_admits(seed: int, class_count: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    points, _ = canonical(
        points_of(
            np.round(rng.random(90), 1),
            rng.integers(0, class_count, 90),
            rng.integers(0, class_count, 90),
            size=size,
        )
    )
    options = threshold_options(points, class_count, ALPHA)
    for predicted, option in np.argwhere(options.exists):
        taken = (points.predicted == predicted) & (points.p0 >= options.threshold[predicted, option])
        missed = taken & (points.label != predicted)
        by_document = np.bincount(points.document[taken], minlength=points.document_count)
        excess = np.bincount(points.document[missed], minlength=points.document_count) - ALPHA * by_document
        assert options.admitted[predicted, option] == taken.sum()
        assert options.largest[predicted, option] == by_document.max()
        np.testing.assert_array_equal(
            options.wrong[predicted, option], np.bincount(points.label[missed], minlength=class_count)
        )
        least = ALPHA * (1 - ALPHA) * by_document.mean()
        assert options.deviation[predicted, option] ** 2 == pytest.approx(max(np.var(excess, ddof=1), least), abs=1e-9)


def test_a_class_with_many_values_keeps_even_steps_and_the_lowest() -> None:
    rng = np.random.default_rng(0)
    points, _ = canonical(points_of(rng.random(4000), np.zeros(4000, dtype=np.int64), rng.integers(0, 2, 4000)))
    options = threshold_options(points, 2, ALPHA)
    assert options.admitted[0].max() == 4000
    assert options.exists[0].sum() == LARGEST_OPTION_COUNT + 1
    assert np.diff(options.admitted[0]).max() <= 4000 / LARGEST_OPTION_COUNT + 1
    assert options.exists[1].sum() == 1


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS, dependence=st.sampled_from([0.0, 0.5]), kinds=st.sampled_from([BOTH[:1], BOTH[1:], BOTH]))
def test_proposals_keep_their_margin_on_mc(seed: int, dependence: float, kinds: tuple[ClassKind, ...]) -> None:
    points, _ = canonical(
        graded_points(np.random.default_rng(seed), 150, size=4, dependence=dependence, frequencies=(0.7, 0.2, 0.1))
    )
    proposals = propose(points, alpha=Decimal("0.1"), kinds=kinds, class_count=3, evidence=Evidence(150, bounded=True))
    promises = [proposal.promise for proposal in proposals]
    assert promises == sorted(promises, reverse=True)
    assert len({proposal.policy for proposal in proposals}) == len(proposals)
    for proposal in proposals:
        admitted = admit(points.p0, points.predicted, proposal.policy)
        counts = tally(points, admitted[np.newaxis], kinds, 3)
        share = 0.1 - float(proposal.aim.margin) * 0.1
        assert (counts.wrong.sum(axis=0) <= share * counts.admitted.sum(axis=0) + 1e-6).all()
        assert admitted.any()


def test_a_predicted_class_that_is_mostly_wrong_is_never_admitted() -> None:
    rng = np.random.default_rng(0)
    good = graded_points(rng, 500, frequencies=(0.5, 0.5, 0.0), sharpness=10.0)
    bad = points_of(np.full(50, 0.9), np.full(50, 2), rng.integers(0, 2, 50))
    points, _ = canonical(
        points_of(np.r_[good.p0, bad.p0], np.r_[good.predicted, bad.predicted], np.r_[good.label, bad.label])
    )
    proposals = propose(
        points, alpha=Decimal("0.1"), kinds=BOTH[:1], class_count=3, evidence=Evidence(550, bounded=True)
    )
    assert proposals
    assert all(proposal.policy.thresholds[2] is None for proposal in proposals)
    assert all(proposal.policy.thresholds[0] is not None for proposal in proposals)


def test_a_rare_class_that_cannot_pass_is_never_admitted_rather_than_stopping_the_others() -> None:
    """Ten right points pass on mc at every margin, and could not pass on vp without an error."""
    rng = np.random.default_rng(1)
    common = graded_points(rng, 1000, frequencies=(0.5, 0.5, 0.0), sharpness=10.0)
    rare = points_of(np.full(10, 0.9), np.full(10, 2), np.full(10, 2))
    points, _ = canonical(
        points_of(np.r_[common.p0, rare.p0], np.r_[common.predicted, rare.predicted], np.r_[common.label, rare.label])
    )
    proposals = propose(
        points, alpha=Decimal("0.1"), kinds=BOTH[:1], class_count=3, evidence=Evidence(1010, bounded=True)
    )
    assert proposals[0].promise > 3
    assert proposals[0].policy.thresholds[2] is None


def test_thresholds_of_other_classes_rise_for_a_rare_true_class() -> None:
    points, _ = canonical(graded_points(np.random.default_rng(2), 6000, frequencies=(0.9, 0.1), sharpness=8.0))

    def threshold_of_common(kinds: tuple[ClassKind, ...]) -> float:
        aims = [Aim(Decimal("0.2"), 0.0)]
        [proposal] = propose(
            points, alpha=Decimal("0.1"), kinds=kinds, class_count=2, evidence=Evidence(6000, bounded=True), aims=aims
        )
        threshold = proposal.policy.thresholds[0]
        assert threshold is not None
        return threshold

    assert threshold_of_common(BOTH) > threshold_of_common(BOTH[:1]) + 0.1


def test_nothing_is_proposed_if_everything_is_wrong() -> None:
    points, _ = canonical(points_of(np.full(50, 0.99), np.zeros(50, dtype=np.int64), np.ones(50, dtype=np.int64)))
    for kinds in (BOTH[:1], BOTH):
        assert not propose(
            points, alpha=Decimal("0.1"), kinds=kinds, class_count=2, evidence=Evidence(50, bounded=True)
        )


def test_admit_compares_with_the_threshold_of_the_predicted_class() -> None:
    policy = Policy((0.5, None, 0.0))
    p0 = np.array([0.5, np.nextafter(0.5, 0), 1.0, 0.0, np.nan])
    assert admit(p0, np.array([0, 0, 1, 2, 2]), policy).tolist() == [True, False, False, True, False]
