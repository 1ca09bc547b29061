"""Certificates: what they say, and that they depend on nothing else than the content of the points."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.calibrators.certified.laws import graded_points, points_of
from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Bounded, Policy, admit
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
        rows = rng.permutation(len(points.score))
        renumbered = rng.permutation(int(points.document.max()) + 1)[points.document] * 7 - 3
        return CertificatePoints(points.score[rows], points.predicted[rows], points.label[rows], renumbered[rows])

    assert certified(mc, vp, test=test) == certified(shuffled(mc), shuffled(vp), test=test)


def test_the_last_digits_of_scores_do_not_matter() -> None:
    """Processors differ in them, and would find something else if documents were put in an order of exact scores."""

    def elsewhere(points: CertificatePoints) -> CertificatePoints:
        return replace(points, score=np.nextafter(points.score, np.rint(1000 * points.score) % 2))

    for seed in range(5):
        mc, vp = two_draws(seed, 400, 4, 0.3)
        here, there = certified(mc, vp), certified(elsewhere(mc), elsewhere(vp))
        assert here.classes
        assert (here.admitted, here.classes) == (there.admitted, there.classes)


@pytest.mark.parametrize("test", DocumentTest)
def test_how_many_policies_are_tested_together_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, test: DocumentTest
) -> None:
    mc, vp = two_draws(0, 2000, 3, 0.3)
    together = certified(mc, vp, test=test)
    assert sum(len(chain.steps) for chain in together.chains) > 2
    monkeypatch.setattr("venn_admit.core.calibrators.certified.testing.TOGETHER_BYTES", 1)
    assert certified(mc, vp, test=test) == together


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("kinds", [BOTH[:1], BOTH])
def test_the_policy_is_that_of_the_last_steps_that_passed(size: int, kinds: tuple[ClassKind, ...]) -> None:
    certificate = certified(*two_draws(0, 2000, size, 0.2), kinds=kinds)
    assert certificate.single_points == (size == 1)
    assert certificate.policy is not None
    passed = [(chain, chain.last_passed) for chain in certificate.chains if chain.last_passed is not None]
    if kinds == BOTH:
        passed = [max(passed, key=lambda one: one[1].admitted)]
        assert certificate.admitted == passed[0][1].admitted
    for chain, step in passed:
        for number, threshold in zip(chain.predicted, step.thresholds, strict=True):
            assert certificate.policy.thresholds[number] == threshold
        assert step.p_value <= chain.level
        assert set(step.classes) <= set(certificate.classes)
    assert certificate.share is not None
    assert certificate.share > 0.7


def test_counts_are_those_of_the_policy() -> None:
    proposing, evidence = two_draws(1, 1500)
    for chain in certified(proposing, evidence).chains:
        for step in chain.steps:
            taken = admit(evidence.score, evidence.predicted, Policy(step.thresholds))
            assert step.admitted == taken.sum()
            for result in step.classes:
                classes = evidence.predicted if result.kind is ClassKind.PREDICTED else evidence.label
                of_class = taken & (classes == result.number)
                assert result.admitted == of_class.sum()
                assert result.right == (of_class & (evidence.predicted == evidence.label)).sum()


def test_documents_beyond_the_largest_that_proposed_are_counted() -> None:
    proposing, evidence = two_draws(3, 400, 3, 0.2)
    giant = points_of(np.full(60, 0.99), np.zeros(60, dtype=np.int64), np.zeros(60, dtype=np.int64), size=60)
    joined = CertificatePoints(
        np.r_[evidence.score, giant.score],
        np.r_[evidence.predicted, giant.predicted],
        np.r_[evidence.label, giant.label],
        np.r_[evidence.document, giant.document + 10_000],
    )
    assert certified(proposing, evidence).capped == 0
    assert certified(proposing, joined).capped == 1


def test_with_few_labels_nothing_is_certified_and_the_number_needed_is_told() -> None:
    proposing, _ = two_draws(2, 2000)
    _, evidence = two_draws(3, 40)
    certificate = certified(proposing, evidence, kinds=BOTH[:1])
    assert certificate.policy is None
    needed = certificate.labels_needed
    assert needed is not None
    assert needed > 40
    assert certified(*two_draws(2, 2000)).labels_needed is None


def test_ten_classes_share_ten_thousand_labels() -> None:
    """Wrong with the probability .4 (1 - s)^2: the best thresholds admit .866 of the points, at 1,000 a class."""

    def drawn(rng: np.random.Generator, count: int) -> CertificatePoints:
        predicted, score = rng.integers(10, size=count), rng.random(count)
        wrong = rng.random(count) < 0.4 * (1 - score) ** 2
        return points_of(score, predicted, (predicted + wrong) % 10)

    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        shares.append(certified(drawn(rng, 1000), drawn(rng, 9000), class_count=10, kinds=BOTH[:1]).share or 0.0)
    assert np.mean(shares) >= 0.65


def test_labels_needed_are_unknown_if_more_would_not_help() -> None:
    wrong = points_of(np.full(60, 0.99), np.zeros(60, dtype=np.int64), np.ones(60, dtype=np.int64))
    certificate = certified(wrong, wrong)
    assert certificate.policy is None
    assert certificate.labels_needed is None


def test_everything_right_is_certified_by_enough_points_of_each_class() -> None:
    """.9 ** 36 is the first power of .9 below .025, the level of each of two paths; the better foretold is taken."""
    right = points_of(np.full(400, 0.99), np.arange(400) % 2, np.arange(400) % 2)

    def passes(count: int) -> bool:
        return (
            certified(right, points_of(np.full(count, 0.99), np.arange(count) % 2, np.arange(count) % 2)).policy
            is not None
        )

    assert passes(72)
    assert not passes(56)


def test_a_true_class_without_evidence_cannot_be_certified() -> None:
    mc, vp = two_draws(4, 1000)
    rows = vp.label == 0
    only_zero = CertificatePoints(vp.score[rows], vp.predicted[rows], vp.label[rows], vp.document[rows])
    certificate = certified(mc, only_zero, kinds=(ClassKind.TRUE,))
    assert certificate.policy is None
    results = [result for chain in certificate.chains for step in chain.steps for result in step.classes]
    assert {result.p_value for result in results if result.number == 1} == {1.0}


def test_a_predicted_class_that_nothing_proposes_is_never_admitted() -> None:
    mc, vp = two_draws(5, 1000)
    rows = mc.predicted == 0
    only_zero = CertificatePoints(mc.score[rows], mc.predicted[rows], mc.label[rows], mc.document[rows])
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


def test_a_certificate_from_before_there_were_chains_is_read() -> None:
    """As revision 0054 wrote it."""
    tested = {"kind": "predicted", "mc_admitted": 9, "mc_right": 9, "mc_share": 1.0, "documents_needed": 30}
    found = from_document(
        {
            "alpha": "0.1", "confidence": "0.95", "kinds": ["predicted"], "test": "finite-sample",
            "vp_documents": 100, "vp_points": 100, "chosen": 0, "thresholds": [0.8, None], "documents_needed": None,
            "labels_needed": None,
            "proposals": [
                {
                    "margin": "0", "standard_errors": 1.0, "thresholds": [0.8, None], "mc_share": 0.4, "vp_share": 0.42,
                    "p_value": 0.01, "passed": True, "documents_needed": 30,
                    "classes": [
                        {**tested, "class": 0, "vp_admitted": 42, "vp_right": 42, "vp_share": 1.0, "p_value": 0.01},
                        {**tested, "class": 1, "vp_admitted": 0, "vp_right": 0, "vp_share": None, "p_value": None},
                    ],
                }
            ],
        }
    )  # fmt: skip
    assert found.policy == Policy((0.8, None), Bounded.LOWER)
    assert (found.share, found.p_value, found.admitted, found.proposing) == (0.42, 0.01, 42, 0)
    assert [(result.number, result.admitted, result.share) for result in found.classes] == [(0, 42, 1.0), (1, 0, None)]
    assert from_document(to_document(found)) == found


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
        (
            {"proposing": points_of(np.array([0.9, 0.8]), np.array([0, 1]), np.array([0, 1]), size=2)},
            "two documents in the proposing points",
        ),
        ({"evidence": points_of(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))}, "got 0"),
        (
            {"proposing": points_of(np.array([0.9, np.nan]), np.array([0, 1]), np.array([0, 1]))},
            "the score of the proposing points .* row 1",
        ),
        (
            {"evidence": points_of(np.array([0.9, 1.1]), np.array([0, 1]), np.array([0, 1]))},
            "the score of the evidence",
        ),
        ({"evidence": points_of(np.array([0.9, 1.0]), np.array([0, 2]), np.array([0, 1]))}, "predicted must lie"),
        ({"evidence": points_of(np.array([0.9, 1.0]), np.array([0, 1]), np.array([0, -1]))}, "label must lie"),
        ({"evidence": points_of(np.array([0.9, 1.0]), np.array([0, 1]), np.array([0]))}, "one length"),
    ],
)
def test_bad_arguments_are_refused(changed: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "proposing": POINTS,
        "evidence": POINTS,
        "class_count": 2,
        "alpha": TENTH,
        "kinds": BOTH,
    }
    with pytest.raises(InvalidInputError, match=message):
        certify(**(arguments | changed))  # type: ignore[arg-type]
