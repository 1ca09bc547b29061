"""Certificates: what they say, and that they depend on nothing else than the content of the points."""

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.calibrators.certified.laws import graded_points, points_of
from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.certificate import Certificate, from_document, to_document
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.errors import InvalidInputError

TENTH = Decimal("0.1")
BOTH = tuple(ClassKind)


def certified(
    mc: CertificatePoints,
    vp: CertificatePoints,
    *,
    class_count: int = 2,
    kinds: tuple[ClassKind, ...] = BOTH,
    confidence: str = "0.95",
    test: DocumentTest = DocumentTest.FINITE_SAMPLE,
) -> Certificate:
    return certify(mc, vp, class_count=class_count, alpha=TENTH, kinds=kinds, confidence=Decimal(confidence), test=test)


def two_draws(seed: int, documents: int = 400, size: int = 1, dependence: float = 0.0) -> tuple[CertificatePoints, ...]:
    rng = np.random.default_rng(seed)
    return tuple(graded_points(rng, documents, size=size, dependence=dependence, sharpness=8.0) for _ in range(2))


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 4), test=st.sampled_from(DocumentTest))
def test_neither_the_order_of_rows_nor_the_numbers_of_documents_matter(
    seed: int, size: int, test: DocumentTest
) -> None:
    mc, vp = two_draws(seed, 80, size, 0.3)
    rng = np.random.default_rng(seed)

    def shuffled(points: CertificatePoints) -> CertificatePoints:
        rows = rng.permutation(len(points.p0))
        renumbered = rng.permutation(int(points.document.max()) + 1)[points.document] * 7 - 3
        return CertificatePoints(points.p0[rows], points.predicted[rows], points.label[rows], renumbered[rows])

    assert certified(mc, vp, test=test) == certified(shuffled(mc), shuffled(vp), test=test)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("test", DocumentTest)
def test_how_many_policies_are_tested_together_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, size: int, test: DocumentTest
) -> None:
    mc, vp = two_draws(1, 300, size, 0.3)
    together = certified(mc, vp, test=test)
    assert len(together.proposals) > 1
    monkeypatch.setattr("venn_admit.core.calibrators.certified.points.TOGETHER_BYTES", 1)
    assert certified(mc, vp, test=test) == together


@pytest.mark.parametrize("size", [1, 5])
def test_the_chosen_policy_is_the_passed_one_that_admits_most(size: int) -> None:
    mc, vp = two_draws(0, 2000, size, 0.2)
    certificate = certified(mc, vp)
    assert certificate.chosen is not None
    assert certificate.single_points == (size == 1)
    passed = [proposal for proposal in certificate.proposals if proposal.passed]
    chosen = certificate.proposals[certificate.chosen]
    assert chosen.mc_share == max(proposal.mc_share for proposal in passed)
    assert chosen.mc_share > 0.9
    assert certificate.policy == chosen.policy
    # Passing ends for good at the first failure.
    passes = [proposal.passed for proposal in certificate.proposals]
    assert passes == sorted(passes, reverse=True)
    assert all(proposal.p_value <= 0.05 for proposal in passed)


def test_counts_are_those_of_the_policy() -> None:
    mc, vp = two_draws(1, 1500)
    for proposal in certified(mc, vp).proposals:
        for points, share, prefix in ((mc, proposal.mc_share, "mc"), (vp, proposal.vp_share, "vp")):
            taken = admit(points.p0, points.predicted, proposal.policy)
            assert share == taken.mean()
            for result in proposal.classes:
                classes = points.predicted if result.kind is ClassKind.PREDICTED else points.label
                of_class = taken & (classes == result.number)
                assert getattr(result, f"{prefix}_admitted") == of_class.sum()
                assert getattr(result, f"{prefix}_right") == (of_class & (points.predicted == points.label)).sum()
        assert proposal.p_value == max(result.p_value for result in proposal.classes if result.p_value is not None)


def test_with_few_labels_nothing_is_certified_and_the_number_needed_is_told() -> None:
    mc, vp = two_draws(2, 20)
    certificate = certified(mc, vp)
    assert certificate.policy is None
    assert certificate.chosen is None
    needed = certificate.labels_needed
    assert needed is not None
    assert needed > 20
    assert certified(*two_draws(2, 2000)).labels_needed is None


def test_labels_needed_are_unknown_if_more_would_not_help() -> None:
    wrong = points_of(np.full(60, 0.99), np.zeros(60, dtype=np.int64), np.ones(60, dtype=np.int64))
    certificate = certified(wrong, wrong)
    assert certificate.proposals == ()
    assert certificate.policy is None
    assert certificate.labels_needed is None


def test_everything_right_is_certified_by_enough_points_of_each_class() -> None:
    """.9 ** 29 is the first power of .9 below .05."""
    right = points_of(np.full(58, 0.99), np.arange(58) % 2, np.arange(58) % 2)
    few = points_of(np.full(56, 0.99), np.arange(56) % 2, np.arange(56) % 2)
    many = points_of(np.full(200, 0.99), np.arange(200) % 2, np.arange(200) % 2)
    assert certified(many, right).policy is not None
    assert certified(many, few).policy is None


def test_a_true_class_without_points_of_vp_cannot_be_certified() -> None:
    mc, vp = two_draws(4, 1000)
    rows = vp.label == 0
    only_zero = CertificatePoints(vp.p0[rows], vp.predicted[rows], vp.label[rows], vp.document[rows])
    certificate = certified(mc, only_zero, kinds=(ClassKind.TRUE,))
    assert certificate.policy is None
    assert {
        result.p_value for proposal in certificate.proposals for result in proposal.classes if result.number == 1
    } == {1.0}


def test_a_predicted_class_without_points_of_mc_is_never_admitted() -> None:
    mc, vp = two_draws(5, 1000)
    rows = mc.predicted == 0
    only_zero = CertificatePoints(mc.p0[rows], mc.predicted[rows], mc.label[rows], mc.document[rows])
    certificate = certified(only_zero, vp, kinds=(ClassKind.PREDICTED,))
    assert certificate.policy is not None
    assert certificate.policy.thresholds[0] is not None
    assert certificate.policy.thresholds[1] is None


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), kinds=st.sampled_from([BOTH[:1], BOTH[1:], BOTH]))
def test_a_certificate_survives_json(seed: int, kinds: tuple[ClassKind, ...]) -> None:
    mc, vp = two_draws(seed, 150, 2)
    certificate = certified(mc, vp, kinds=kinds)
    document = json.loads(json.dumps(to_document(certificate), allow_nan=False))
    assert from_document(document) == certificate
    assert document["thresholds"] == (None if certificate.policy is None else list(certificate.policy.thresholds))


def test_a_document_of_something_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="document of a certificate"):
        from_document({"alpha": "0.1"})
    with pytest.raises(InvalidInputError, match="document of a certificate"):
        from_document({**to_document(certified(*two_draws(0, 50))), "kinds": ["both"]})


POINTS = points_of(np.array([0.9, 0.8]), np.array([0, 1]), np.array([0, 1]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"confidence": Decimal("1")}, "confidence"),
        ({"confidence": Decimal("0")}, "confidence"),
        ({"confidence": Decimal("NaN")}, "confidence"),
        ({"alpha": Decimal("0")}, "alpha"),
        ({"class_count": 1}, "at least 2 classes"),
        ({"kinds": ()}, "got neither"),
        ({"kinds": ("predicted", "each")}, "got each"),
        ({"test": "t"}, "finite-sample or asymptotic"),
        ({"mc": points_of(np.array([0.9, 0.8]), np.array([0, 1]), np.array([0, 1]), size=2)}, "two documents in mc"),
        ({"vp": points_of(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))}, "got 0"),
        ({"mc": points_of(np.array([0.9, np.nan]), np.array([0, 1]), np.array([0, 1]))}, "p0 of mc .* row 1"),
        ({"vp": points_of(np.array([0.9, 1.1]), np.array([0, 1]), np.array([0, 1]))}, "p0 of vp"),
        ({"vp": points_of(np.array([0.9, 1.0]), np.array([0, 2]), np.array([0, 1]))}, "predicted must lie"),
        ({"vp": points_of(np.array([0.9, 1.0]), np.array([0, 1]), np.array([0, -1]))}, "label must lie"),
        ({"vp": points_of(np.array([0.9, 1.0]), np.array([0, 1]), np.array([0]))}, "one length"),
    ],
)
def test_bad_arguments_are_refused(changed: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"mc": POINTS, "vp": POINTS, "class_count": 2, "alpha": TENTH, "kinds": BOTH}
    with pytest.raises(InvalidInputError, match=message):
        certify(**(arguments | changed))  # type: ignore[arg-type]
