"""Certificates of the mean loss: what is refused, against an independent computation, and how much they admit."""

import json
import math
from decimal import Decimal
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from tests.core.calibrators.certified.laws import graded_points, points_of
from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.loss import LossMatrix, check_loss, is_zero_one
from venn_admit.core.types import FloatArray
from venn_admit.errors import InvalidInputError

TENTH = Decimal("0.1")
PREDICTED, BOTH = (ClassKind.PREDICTED,), tuple(ClassKind)
THIRDS = (1 / 3, 1 / 3, 1 / 3)


def matrix(*rows: tuple[float | str, ...]) -> LossMatrix:
    return tuple(tuple(Decimal(str(value)) for value in row) for row in rows)


ZERO_ONE = matrix((0, 1, 1), (1, 0, 1), (1, 1, 0))
MIXED = matrix((0, 1, 0.25), (3, 0, 0.5), (0.5, 2, 0))
BY_COLUMN = matrix((0, 0.5, 3), (2, 0, 3), (2, 0.5, 0))


def certified(
    points: tuple[CertificatePoints, CertificatePoints],
    loss: LossMatrix | None,
    *,
    kinds: tuple[ClassKind, ...] = PREDICTED,
    alpha: Decimal = TENTH,
    test: DocumentTest = DocumentTest.FINITE_SAMPLE,
) -> Certificate:
    proposing, evidence = points
    class_count = 2 if loss is not None and len(loss) == 2 else 3
    return certify(proposing, evidence, class_count=class_count, alpha=alpha, kinds=kinds, test=test, loss=loss)


def draws(seed: int, documents: int, *, size: int = 1, dependence: float = 0.0) -> tuple[CertificatePoints, ...]:
    rng = np.random.default_rng(seed)
    return tuple(
        graded_points(rng, count, size=size, frequencies=THIRDS, sharpness=8.0, dependence=dependence)
        for count in (documents // 3, documents)
    )


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (matrix((0, 1), (1, 0)), "2 rows of 2 values"),
        (matrix((0, 1, 1), (1, 0), (1, 1, 0)), "3 rows of 2 or 3 values"),
        ((), "0 rows of no values"),
        (matrix((0, 1, 1), (1, 0, -1), (1, 1, 0)), "got -1 in row 1, column 2"),
        (matrix((0, 1, 1), (1, 0, "nan"), (1, 1, 0)), "got NaN in row 1, column 2"),
        (matrix((0, "inf", 1), (1, 0, 1), (1, 1, 0)), "got Infinity in row 0, column 1"),
        (matrix((0, 10**10, 1), (1, 0, 1), (1, 1, 0)), "values from 0 to 1,000,000,000"),
        (matrix((0, 1, 1), (1, 0.5, 1), (1, 1, 0)), "costs nothing, got 0.5 in row 1, column 1"),
        (matrix((0, 0.1, 0), (0, 0, 0.1), (0, 0, 0)), "no value is above alpha = 0.1"),
    ],
)
def test_what_is_no_loss_is_refused(loss: LossMatrix, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        check_loss(loss, TENTH, 3)


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("kinds", [PREDICTED, BOTH])
def test_the_0_1_loss_is_the_share_wrong(size: int, kinds: tuple[ClassKind, ...]) -> None:
    points = draws(0, 1200, size=size, dependence=0.2)
    usual, asked = certified(points, None, kinds=kinds), certified(points, ZERO_ONE, kinds=kinds)  # type: ignore[arg-type]
    assert is_zero_one(ZERO_ONE)
    assert usual.policy is not None
    assert asked.policy == usual.policy
    for one, other in zip(asked.classes, usual.classes, strict=True):
        assert (one.p_value, one.right) == (other.p_value, other.right)
        assert one.mean_loss == (one.admitted - one.right) / one.admitted
        assert other.mean_loss is None


@pytest.mark.parametrize("size", [1, 4])
def test_a_unit_of_losses_is_one_of_alpha_too(size: int) -> None:
    points = draws(1, 1000, size=size)
    doubled = tuple(tuple(2 * value for value in row) for row in MIXED)
    one, other = certified(points, MIXED), certified(points, doubled, alpha=2 * TENTH)  # type: ignore[arg-type]
    assert one.policy is not None
    assert other.policy == one.policy


def test_a_certificate_with_a_loss_comes_back_from_its_document() -> None:
    found = certified(draws(2, 900), MIXED, kinds=BOTH)  # type: ignore[arg-type]
    document = json.loads(json.dumps(to_document(found)))
    assert document["loss"] == [["0", "1", "0.25"], ["3", "0", "0.5"], ["0.5", "2", "0"]]
    assert from_document(document) == found


def reference_p_value(
    losses: FloatArray, sizes: FloatArray, known: FloatArray, bound: float, uniform: float, level: float
) -> float:
    """The betting test as PROMISES and the page on certificates give it, document by document."""
    excess, wealth, most, normal = losses - 0.1 * sizes, 1.0, 1.0, NormalDist()
    for place, value in enumerate(excess.tolist()):
        seen = np.r_[known, excess[:place]]
        spread = math.sqrt(1.6 * max(seen.var(), 1e-12 * bound**2) * (len(excess) - place))
        bet = 0.0
        if most < 1 / level:
            quantile = normal.inv_cdf(min(level * wealth, 1 - 1e-12)) if wealth > 0 else -40.0
            bet = min(normal.pdf(quantile) / (level * wealth) / spread, 1 / bound) if wealth > 0 else 1 / bound
        wealth *= max(1 - bet * min(value, bound), 0.0)
        most = max(most, wealth)
    return min(1 / most, uniform / wealth if wealth >= 1 else 1.0)


def test_each_test_of_points_that_cost_several_values_is_that_of_the_reference() -> None:
    points = draws(3, 500)
    found = certified(points, MIXED)  # type: ignore[arg-type]
    proposing, evidence = (canonical(one)[0] for one in points)
    generator = canonical(points[1])[1]
    seed = int(generator.integers(2**63))
    checked = 0
    for chain in found.chains:
        (number,) = chain.predicted
        for step in chain.steps:
            (threshold,), (result,) = step.thresholds, step.classes
            columns = []
            for of in (proposing, evidence):
                rows = (of.predicted == number) & (of.score >= (np.inf if threshold is None else threshold))
                cost = np.array([float(MIXED[label][number]) for label in of.label.tolist()])
                columns.append((np.where(rows, cost, 0.0), rows.astype(np.float64)))
            (known_loss, known_size), (loss, size) = columns
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(loss))
            largest = max(float(row[number]) for row in MIXED)
            known, level = known_loss - 0.1 * known_size, 0.05 / len(found.chains)
            expected = reference_p_value(loss[order], size[order], known, largest - 0.1, 1.0 - rng.random(), level)
            assert result.admitted == size.sum()
            assert result.mean_loss == pytest.approx(loss.sum() / size.sum())
            assert result.p_value == pytest.approx(expected, rel=0.02)
            checked += 1
    assert checked > 3


def test_points_that_cost_one_value_are_tested_by_the_binomial_tail() -> None:
    points = draws(4, 900)
    evidence, found = points[1], certified(points, BY_COLUMN)  # type: ignore[arg-type]
    assert found.classes
    for result in found.classes:
        assert found.policy is not None
        assert result.number is not None
        rows = admit(evidence.score, evidence.predicted, found.policy) & (evidence.predicted == result.number)
        value = float(max(row[result.number] for row in BY_COLUMN))
        wrong = int((evidence.label[rows] != result.number).sum())
        assert result.p_value == pytest.approx(stats.binom.cdf(wrong, rows.sum(), 0.1 / value), rel=1e-6)


def best_share(points: CertificatePoints, loss: LossMatrix) -> float:
    """The share of many points that the best threshold of each predicted class admits."""
    admitted = 0
    costs = np.array(loss, dtype=np.float64)
    for number in range(3):
        rows = np.flatnonzero(points.predicted == number)
        rows = rows[np.argsort(-points.score[rows])]
        mean = np.cumsum(costs[points.label[rows], number]) / np.arange(1, len(rows) + 1)
        admitted += int(np.flatnonzero(mean <= 0.1).max(initial=-1)) + 1
    return admitted / len(points.score)


@pytest.mark.parametrize(("size", "documents"), [(1, 12_000), (5, 3000)])
def test_much_of_what_the_best_thresholds_by_loss_admit_is_admitted(size: int, documents: int) -> None:
    many = graded_points(np.random.default_rng(99), 300_000, frequencies=THIRDS, sharpness=8.0)
    found = {}
    for name, loss in (("mixed", MIXED), ("by column", BY_COLUMN), ("0/1", ZERO_ONE)):
        best = best_share(many, loss)
        shares = [certified(draws(seed, documents, size=size), loss).share or 0.0 for seed in range(8)]  # type: ignore[arg-type]
        found[name] = float(np.mean(shares))
        # A class is lost altogether if chance orders its points badly: of each, in one draw of six or so.
        assert found[name] > 0.8 * best, (name, found[name], best)
    assert found["mixed"] < found["0/1"]


def test_a_class_whose_errors_cost_no_more_than_alpha_is_admitted_whole() -> None:
    cheap = matrix((0, 0.1, 2), (1, 0, 2), (1, 0.05, 0))
    points = draws(5, 600)
    found = certified(points, cheap)  # type: ignore[arg-type]
    (result,) = (one for one in found.classes if one.number == 1)
    assert result.admitted == np.count_nonzero(points[1].predicted == 1)
    assert result.p_value == 0.0


def test_two_classes_that_cost_differently_have_different_thresholds() -> None:
    rng = np.random.default_rng(7)
    points = tuple(graded_points(rng, count, sharpness=8.0) for count in (1000, 4000))
    found = certified(points, matrix((0, 1), (2, 0)))  # type: ignore[arg-type]
    assert found.policy is not None
    costly, cheap = found.policy.thresholds
    assert costly is not None
    assert cheap is not None
    assert costly > cheap + 0.1


def test_nothing_is_certified_where_a_loss_has_no_evidence() -> None:
    few = points_of(np.full(6, 0.9), np.array([0, 1, 2] * 2), np.array([0, 1, 2] * 2))
    assert certified((few, few), MIXED).policy is None
