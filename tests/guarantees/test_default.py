"""Simulated: how much the average promise has wrong among the calibrations in which it decides by default.

Which promise decides by default depends on the labels that both rest on. Where the share right does not fall with the
score, labels that keep a certificate from passing make the average promise strict as well. A certificate stays, though,
if the average promise would admit no more. The law is known, so that shares are those of the population and not of a
sample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt

import numpy as np
import pytest
from numpy.random import Generator

from venn_admit.core.calibrators.average.policy import NO_TRAFFIC, select_on_average
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.strongest import certify_strongest, gives_way
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.types import FloatArray

ALPHA = Decimal("0.1")
DRAWS = 100
GRID = np.linspace(0, 1, 2001)
"""Scores are uniform in [0, 1]; shares are those of this grid."""
BY_SOFTMAX = 0.75
"""The softmax at 1 - alpha admits scores from here on: a quarter of the points."""
Law = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]
"""The share right by the score, of each of two predicted classes."""


def constant(share: float) -> Callable[[FloatArray], FloatArray]:
    return lambda score: np.full_like(score, share)


LAWS: dict[str, Law] = {
    "just good": (constant(0.93),) * 2,
    "step": (lambda score: np.where(score > 0.5, 0.95, 0.6),) * 2,
    "falling": (lambda score: 0.99 - 0.15 * score,) * 2,
    "one short": (constant(0.99), constant(0.89)),
}


@dataclass(frozen=True, slots=True)
class Draw:
    """Whether the average promise decides, and what it would have wrong of each of two predicted classes."""

    decides: bool
    wrong: tuple[float, float]


def points(rng: Generator, count: int, law: Law) -> CertificatePoints:
    predicted, score = rng.integers(2, size=count), rng.random(count)
    right = rng.random(count) < np.where(predicted == 0, law[0](score), law[1](score))
    return CertificatePoints(score, predicted, np.where(right, predicted, 1 - predicted), np.arange(count))


def drawn(rng: Generator, count: int, law: Law, *, least: float = BY_SOFTMAX) -> Draw:
    """A calibration by `count` labels, and by 100 others that propose; least: from where on the softmax admits."""
    proposing, evidence = points(rng, 100, law), points(rng, count, law)
    by_softmax = int((evidence.score >= least).sum())
    certificate = certify_strongest(proposing, evidence, class_count=2, alpha=ALPHA, by_softmax=by_softmax)
    cells = CellPoints(evidence.predicted, np.zeros(count, dtype=np.int64), evidence.score)
    labelled = LabelledCells(cells, evidence.label, [str(row) for row in range(count)])
    average = select_on_average(labelled, NO_TRAFFIC, class_count=2, alpha=ALPHA)
    decides = certificate.policy is None or gives_way(certificate.admitted, average.admitted, by_softmax)
    # The average promise admits no less than a policy that passed, as every document is one point.
    assert average.admitted >= certificate.admitted
    admitted = [(2 if one is None else one) <= GRID for one in average.policy.thresholds]
    first, second = (
        float((1 - share(GRID))[of].sum() / max(1, of.sum())) for share, of in zip(law, admitted, strict=True)
    )
    return Draw(decides, (first, second))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "labels", "decides", "among"),
    # How often the average promise decides, and what it has wrong on average then.
    [
        ("just good", 700, 0.62, 0.069),
        ("step", 1400, 0.56, 0.095),
        ("step", 700, 0.82, 0.094),
        ("falling", 1400, 0.99, 0.082),
    ],
)
def test_at_most_alpha_are_wrong_on_average_where_the_average_promise_takes_over(
    law: str, labels: int, decides: float, among: float
) -> None:
    draws = [drawn(np.random.default_rng([labels, 7, number]), labels, LAWS[law]) for number in range(DRAWS)]
    chosen = np.array([draw.decides for draw in draws])
    wrong = np.array([draw.wrong for draw in draws])
    assert chosen.mean() == pytest.approx(decides, abs=0.001)
    assert wrong[chosen].mean() == pytest.approx(among, abs=0.001)
    for of_class in wrong.T:
        # Under any law, if the calibrations that decide by a certificate count as having nothing wrong.
        counted = of_class * chosen
        assert counted.mean() <= 0.1 + 3 * counted.std() / sqrt(DRAWS)
        # Among those in which the average promise decides, as the share right does not fall.
        if law != "falling":
            error = 3 * of_class[chosen].std() / sqrt(chosen.sum())
            assert of_class[chosen].mean() <= min(0.1, of_class.mean()) + error


@pytest.mark.slow
def test_more_than_alpha_may_be_wrong_where_a_certificate_stays_only_if_the_average_promise_admits_no_more() -> None:
    rngs = (np.random.default_rng([700, 11, number]) for number in range(DRAWS))
    draws = [drawn(rng, 700, LAWS["one short"], least=0.1) for rng in rngs]
    chosen = np.array([draw.decides for draw in draws])
    of_second = np.array([draw.wrong[1] for draw in draws])
    assert chosen.mean() == pytest.approx(0.79, abs=0.001)
    assert of_second.mean() == pytest.approx(0.087, abs=0.001)
    assert of_second[chosen].mean() == pytest.approx(0.11)
    # The certificate of the first class stays if nothing of the second one would be admitted.
    assert not of_second[~chosen].any()
