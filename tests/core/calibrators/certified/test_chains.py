"""What is tested in which order, against an independent computation, and that the evidence has no part in it."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.calibrators.certified.laws import graded_points, points_of
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified import chains, curves
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.curves import ShareCurves, fit_curves
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical
from venn_admit.core.types import FloatArray

GOLDEN = Path(__file__).parents[3] / "golden" / "promises.npz"
TENTH = Decimal("0.1")
PREDICTED, BOTH = (ClassKind.PREDICTED,), tuple(ClassKind)


def certified(
    proposing: CertificatePoints, evidence: CertificatePoints, kinds: tuple[ClassKind, ...], class_count: int = 2
) -> Certificate:
    return certify(proposing, evidence, class_count=class_count, alpha=TENTH, kinds=kinds)


def test_the_tests_of_each_class_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which recycles no level: a chain of ours may go on where the reference ends."""
    golden = np.load(GOLDEN)
    monkeypatch.setattr(chains, "share_grid", lambda _: golden["grid"])
    monkeypatch.setattr("venn_admit.core.calibrators.certified.chains.fit_curves", _scores_are_shares)
    monkeypatch.setattr(curves.ShareCurves, "least_scores", lambda _, shares: shares)
    known = golden["knn_predicted"]
    found = certified(
        points_of(golden["knn_g"], known, known),
        points_of(golden["g"], golden["predicted"], golden["label"]),
        PREDICTED,
        class_count=3,
    )
    ours: dict[tuple[int, float | None], tuple[object, ...]] = {
        (chain.predicted[0], step.thresholds[0]): (result.admitted, result.admitted - result.right, result.p_value)
        for chain in found.chains
        for step in chain.steps
        for result in step.classes
    }
    for number, threshold, n, wrong, tail in golden["tested"].tolist():
        assert ours[number, threshold] == (n, wrong, pytest.approx(tail, rel=1e-9))
    assert found.policy is not None
    assert found.policy.thresholds == tuple(
        None if np.isnan(value) else pytest.approx(value) for value in golden["thresholds"].tolist()
    )


def _scores_are_shares(_points: CertificatePoints, class_count: int) -> ShareCurves:
    return ShareCurves(np.zeros(class_count), np.ones(class_count))


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), kinds=st.sampled_from([PREDICTED, BOTH[1:], BOTH]), size=st.sampled_from([1, 4]))
def test_the_labels_of_the_evidence_do_not_change_the_order(seed: int, kinds: tuple[ClassKind, ...], size: int) -> None:
    rng = np.random.default_rng(seed)
    proposing, evidence = (graded_points(rng, 400 // size, size=size, sharpness=8.0) for _ in range(2))
    other = CertificatePoints(evidence.score, evidence.predicted, rng.permutation(evidence.label), evidence.document)
    for first, second in zip(
        certified(proposing, evidence, kinds).chains, certified(proposing, other, kinds).chains, strict=True
    ):
        steps = zip(first.steps, second.steps, strict=False)
        assert all((one.shares, one.thresholds) == (two.shares, two.thresholds) for one, two in steps)


def test_thresholds_fall_and_each_chain_ends_at_its_first_failure() -> None:
    rng = np.random.default_rng(0)
    proposing, evidence = (graded_points(rng, 1500, frequencies=(0.6, 0.3, 0.1), sharpness=5.0) for _ in range(2))
    for kinds in (PREDICTED, BOTH):
        for chain in certified(proposing, evidence, kinds, 3).chains:
            verdicts = [step.passed for step in chain.steps]
            assert verdicts == sorted(verdicts, reverse=True)
            assert verdicts.count(False) <= 1
            assert all((step.p_value <= chain.level) == step.passed for step in chain.steps)
            for before, after in zip(chain.steps, chain.steps[1:], strict=False):
                assert after.admitted >= before.admitted
                assert all(low is not None for low in after.thresholds)


def test_a_chain_that_passes_to_its_end_leaves_its_level_to_the_others() -> None:
    rng = np.random.default_rng(1)

    def drawn(count: int) -> CertificatePoints:
        hard = graded_points(rng, count, frequencies=(1.0, 0.0), sharpness=4.0)
        easy = np.ones(count, dtype=np.int64)
        return points_of(np.r_[hard.score, np.full(count, 0.99)], np.r_[hard.predicted, easy], np.r_[hard.label, easy])

    hard, easy = certified(drawn(300), drawn(2000), PREDICTED).chains
    assert all(step.passed for step in easy.steps)
    assert easy.level == pytest.approx(0.025)
    assert hard.level == pytest.approx(0.05)


def test_a_rare_class_that_cannot_pass_stops_no_other() -> None:
    rng = np.random.default_rng(1)

    def drawn() -> CertificatePoints:
        common = graded_points(rng, 1000, frequencies=(0.5, 0.5, 0.0), sharpness=10.0)
        rare = np.full(10, 2)
        return points_of(
            np.r_[common.score, np.full(10, 0.9)], np.r_[common.predicted, rare], np.r_[common.label, rare]
        )

    for kinds in (PREDICTED, BOTH):
        policy = certified(drawn(), drawn(), kinds, 3).policy
        if kinds == BOTH:
            assert policy is None, "nothing of the rare true class is admitted"
            continue
        assert policy is not None
        assert policy.thresholds[2] is None
        assert policy.thresholds[0] is not None


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), class_count=st.integers(2, 4))
def test_curves_rise_and_turn_back(seed: int, class_count: int) -> None:
    rng = np.random.default_rng(seed)
    frequencies = tuple(rng.dirichlet(np.ones(class_count)).tolist())
    points, _ = canonical(graded_points(rng, 500, frequencies=frequencies))
    fitted = fit_curves(points, class_count)
    assert (fitted.slope > 0).all()
    shares: FloatArray = np.repeat(np.linspace(0.3, 0.99, 9)[:, np.newaxis], class_count, axis=1)
    scores = fitted.least_scores(shares)
    assert (np.diff(scores, axis=0) >= 0).all()
    inside = (scores > 1e-9) & (scores < 1 - 1e-9)
    for number in range(class_count):
        back = fitted.shares(scores[:, number], np.full(9, number))
        np.testing.assert_allclose(back[inside[:, number]], shares[inside[:, number], number], rtol=1e-6)


def test_a_score_that_says_nothing_still_has_rising_curves() -> None:
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 300)
    points, _ = canonical(points_of(1 - rng.random(300) * (label == 1), np.zeros(300, dtype=np.int64), label))
    assert (fit_curves(points, 2).slope > 0).all()


@pytest.mark.slow
def test_ten_classes_with_ten_thousand_labels_admit_most_of_what_they_could() -> None:
    """The best thresholds admit .957 of this law; .718 is certified, on average over four draws."""
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        proposing, evidence = (
            graded_points(rng, count, frequencies=(0.1,) * 10, sharpness=4.4) for count in (1000, 9000)
        )
        shares.append(certified(proposing, evidence, PREDICTED, 10).share or 0.0)
    assert np.mean(shares) >= 0.65


def test_policies_of_which_too_little_is_known_are_tested_all_the_same() -> None:
    """Two points tell nothing of a rare true class; the evidence does, or says how much of it would."""
    rng = np.random.default_rng(1)

    def drawn(common: int, rare: int) -> CertificatePoints:
        points = graded_points(rng, common, frequencies=(0.5, 0.5, 0.0), sharpness=10.0)
        third = np.full(rare, 2)
        return points_of(
            np.r_[points.score, np.full(rare, 0.99)], np.r_[points.predicted, third], np.r_[points.label, third]
        )

    proposing = drawn(1000, 2)
    found = certified(proposing, drawn(10_000, 400), BOTH, 3)
    assert found.policy is not None
    assert all(threshold is not None for threshold in found.policy.thresholds)
    (chain,) = found.chains
    assert chain.level == pytest.approx(0.05)
    short = certified(proposing, drawn(10_000, 20), BOTH, 3)
    assert short.policy is None
    needed = {(one.kind, one.number): one.documents_needed for one in short.lacking}
    assert (needed[ClassKind.TRUE, 2] or 0) > 10_030
