"""Certificates of cascades, against loops of their own over points."""

from dataclasses import replace
from decimal import Decimal
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.cascade import certify_cascade
from venn_admit.core.calibrators.certified.cascade_points import CascadePoints, serve, stage_policies
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.types import FloatArray
from venn_admit.errors import InvalidInputError

TENTH = Decimal("0.1")
BOTH = tuple(ClassKind)


def draw(seed: int, documents: int, *, size: int = 1, stages: int = 3, class_count: int = 3) -> CascadePoints:
    """Stages that are right more and more often, whose scores are their chances to be right."""
    rng = np.random.default_rng(seed)
    count = documents * size
    label = rng.integers(class_count, size=count)
    ease = np.repeat(rng.random(documents), size)
    score = np.stack([np.round(1 - 0.5 * (1 - ease) ** (2 + place), 3) for place in range(stages)])
    right = rng.random((stages, count)) < score
    wrong = (label + rng.integers(1, class_count, size=(stages, count))) % class_count
    return CascadePoints(score, np.where(right, label, wrong), label, np.arange(count) // size)


def certified(
    points: tuple[CascadePoints, CascadePoints], *, class_count: int = 3, kinds: tuple[ClassKind, ...] = BOTH
) -> Certificate:
    return certify_cascade(*points, class_count=class_count, alpha=TENTH, kinds=kinds)


def served_by_loop(points: CascadePoints, thresholds: FloatArray) -> list[tuple[int, int] | None]:
    """The stage that serves each point and the class that it says, by thresholds (m, C)."""
    found: list[tuple[int, int] | None] = []
    for row in range(len(points.label)):
        answer = None
        for stage in range(len(points.score)):
            said = int(points.predicted[stage, row])
            if points.score[stage, row] >= thresholds[stage, said]:
                answer = stage, said
                break
        found.append(answer)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_every_step_is_what_a_loop_over_points_finds(seed: int) -> None:
    points = draw(seed, 200), draw(seed + 100, 1500)
    certificate = certified(points)
    (chain,) = certificate.chains
    assert any(step.passed for step in chain.steps), "the test needs steps of both kinds"
    for step in chain.steps:
        thresholds = np.array([np.inf if one is None else one for one in step.thresholds]).reshape(3, 3)
        served = served_by_loop(points[1], thresholds)
        assert step.admitted == sum(one is not None for one in served)
        largest = 0.0
        for result in step.classes:
            labels = points[1].label.tolist()
            of_class = [
                one[1] == label
                for one, label in zip(served, labels, strict=True)
                if one is not None and (one[1] if result.kind is ClassKind.PREDICTED else label) == result.number
            ]
            count, wrong = len(of_class), len(of_class) - sum(of_class)
            assert (result.admitted, result.right) == (count, sum(of_class))
            tail = sum(comb(count, k) * 0.1**k * 0.9 ** (count - k) for k in range(wrong + 1))
            assert result.p_value == pytest.approx(tail, rel=1e-9)
            largest = max(largest, tail)
        assert step.passed == (largest <= 0.05)
    assert [step.passed for step in chain.steps] == sorted((step.passed for step in chain.steps), reverse=True)
    passed = [step for step in chain.steps if step.passed]
    assert certificate.policy is not None
    assert certificate.policy.thresholds == passed[-1].thresholds
    assert certificate.admitted == passed[-1].admitted


def test_stages_are_counted_as_a_loop_counts_them() -> None:
    points = draw(7, 300)
    thresholds = np.array([[0.9, 0.95, np.inf], [0.9, 0.9, 0.9], [0.8, 0.85, 0.9]])
    served = served_by_loop(points, thresholds)
    policy = replace(
        certified((draw(1, 200), draw(2, 1500))).policy or pytest.fail("nothing passed"),
        thresholds=tuple(None if np.isinf(one) else one for one in thresholds.ravel().tolist()),
    )
    counts = serve(points, stage_policies(policy, 3))
    left = len(points.label)
    for stage, found in enumerate(counts):
        assert found.reached == left
        for number in range(3):
            rows = [row for row, one in enumerate(served) if one == (stage, number)]
            assert found.served[number] == len(rows)
            assert found.right[number] == sum(points.label[row] == number for row in rows)
        left -= sum(one is not None and one[0] == stage for one in served)


def rounded(thresholds: tuple[float | None, ...]) -> tuple[float | None, ...]:
    return tuple(None if one is None else round(one, 9) for one in thresholds)


def test_one_stage_serves_what_its_own_path_admits() -> None:
    """Both go along one threshold on g, so that where their policies are the same, so are the counts."""
    points = draw(3, 300, stages=1), draw(4, 2000, stages=1)
    (chain,) = certified(points).chains
    alone = certify(
        points[0].stage(0), points[1].stage(0), class_count=3, alpha=TENTH, kinds=BOTH, confidence=Decimal("0.95")
    )
    of_path = next(one for one in alone.chains if one.name == "one threshold")
    known = {rounded(step.thresholds): step.classes for step in of_path.steps}
    shared = [step for step in chain.steps if rounded(step.thresholds) in known]
    assert any(step.passed for step in shared)
    for step in shared:
        assert [(of.admitted, of.right) for of in step.classes] == [
            (of.admitted, of.right) for of in known[rounded(step.thresholds)]
        ]


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 3))
def test_neither_the_order_of_rows_nor_the_numbers_of_documents_matter(seed: int, size: int) -> None:
    points = draw(seed, 60, size=size), draw(seed + 1, 120, size=size)
    rng = np.random.default_rng(seed)

    def shuffled(of: CascadePoints) -> CascadePoints:
        taken = of.take(rng.permutation(len(of.label)))
        return replace(taken, document=rng.permutation(int(of.document.max()) + 1)[taken.document] * 7 - 3)

    mixed = shuffled(points[0]), shuffled(points[1])
    assert certified(points) == certified(mixed)


def test_the_order_of_policies_does_not_depend_on_the_labels_of_the_evidence() -> None:
    proposing, evidence = draw(5, 300), draw(6, 1500)
    other = replace(evidence, label=(evidence.label + 1) % 3)
    first, second = (certified((proposing, of)).chains[0].steps for of in (evidence, other))
    assert first[0].thresholds == second[0].thresholds
    assert not second[0].passed


def test_documents_are_tested_and_those_that_are_larger_than_any_proposing_one_are_counted() -> None:
    proposing, evidence = draw(8, 600, size=4), draw(9, 600, size=4)
    joined = replace(evidence, document=np.where(evidence.document < 10, 0, evidence.document))
    certificate = certified((proposing, joined), kinds=(ClassKind.PREDICTED,))
    assert certificate.policy is not None
    assert certificate.capped == 1


def test_a_class_that_no_stage_gets_right_is_never_served() -> None:

    def with_nonsense(points: CascadePoints) -> CascadePoints:
        rows = np.arange(len(points.label)) % 5 == 0
        return replace(points, predicted=np.where(rows, 2, points.predicted))

    points = draw(10, 300, class_count=2), draw(11, 2000, class_count=2)
    certificate = certified((with_nonsense(points[0]), with_nonsense(points[1])), kinds=(ClassKind.PREDICTED,))
    assert certificate.policy is not None
    assert [of.thresholds[2] for of in stage_policies(certificate.policy, 3)] == [None] * 3
    assert [(one.number, one.admitted) for one in certificate.lacking] == [(2, 0)]


def test_a_certificate_of_a_cascade_is_stored_as_others_are() -> None:
    certificate = certified((draw(12, 200), draw(13, 1200)))
    assert from_document(to_document(certificate)) == certificate


def test_what_cannot_be_promised_is_refused() -> None:
    points = draw(14, 60), draw(15, 60)
    with pytest.raises(InvalidInputError, match="a cascade promises predicted and true classes"):
        certify_cascade(*points, class_count=3, alpha=TENTH, kinds=("group:region",))
    with pytest.raises(InvalidInputError, match="alpha must lie"):
        certify_cascade(*points, class_count=3, alpha=Decimal(1))
    wrong = replace(points[1], score=points[1].score[:2])
    with pytest.raises(InvalidInputError, match="the evidence: expected a score and a predicted class"):
        certify_cascade(points[0], wrong, class_count=3, alpha=TENTH)
    outside = replace(points[1], score=points[1].score * 2)
    with pytest.raises(InvalidInputError, match="the evidence at stage 1"):
        certify_cascade(points[0], outside, class_count=3, alpha=TENTH)
    with pytest.raises(InvalidInputError, match="two documents"):
        certify_cascade(replace(points[0], document=points[0].document * 0), points[1], class_count=3, alpha=TENTH)
