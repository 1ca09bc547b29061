"""Simulated: with class shares estimated from unlabelled traffic, a class of it seldom is less right than promised.

The laws are those of declared shares (`test_class_shares`): in traffic, one predicted class is alpha wrong at every
score. Labels, traffic and the box that they give are drawn afresh each time.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pytest

from tests.guarantees.draws import Draws
from tests.guarantees.test_class_shares import DOCUMENT_LAWS, EPS, FLIP, HALVES, Law, predicted_at
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.certified.shares.bounds import document_counts
from venn_admit.core.calibrators.certified.shares.declared import SHARES_PART
from venn_admit.core.calibrators.certified.shares.estimated import estimate_shares
from venn_admit.core.calibrators.certified.shares.mixes import DocumentMixes, Mixes, confusion_counts
from venn_admit.core.calibrators.class_shares import EstimatedShares
from venn_admit.core.types import FloatArray

RECENT = 3000
"""Documents of traffic."""


@dataclass(frozen=True)
class Traffic:
    """A law, and how traffic differs from what label shift makes of the calibration data.

    mistaken: How much oftener than in the calibration data points of class 1 are predicted as class 0 in traffic.
    """

    law: Law
    mistaken: float = 1.0

    @property
    def cells(self) -> FloatArray:
        """(C, 6, C), the probability of each predicted class, score and true class in traffic."""
        found = self.law.traffic.copy()
        more = found[0, :, 1] * (self.mistaken - 1)
        found[1, :, 1] -= more
        found[0, :, 1] += more
        return found

    def mixes(self, rng: np.random.Generator, proposing: CertificatePoints, evidence: CertificatePoints) -> Mixes:
        """What is known of some traffic."""
        count = len(self.law.shares)
        confusion = confusion_counts(evidence.predicted, evidence.label, count)
        if self.law.largest == 1:
            return Mixes(rng.multinomial(RECENT, self.cells.sum(axis=(1, 2))), confusion)
        traffic = replace(self.law, shares=tuple(self.law.of_traffic.tolist())).draw(rng, RECENT)
        of_labels, of_proposing = (
            document_counts(of.document, of.predicted * count + of.label, count**2) for of in (evidence, proposing)
        )
        of_traffic = document_counts(traffic.document, traffic.predicted, count)
        of_points = np.bincount(traffic.predicted)
        return DocumentMixes(of_points, confusion, of_traffic, of_labels, of_proposing, by_cell=False)

    def certified(self, draw: int) -> tuple[EstimatedShares | None, Policy | None]:
        law, rng = self.law, np.random.default_rng(draw)
        proposing, evidence = law.draw(rng, law.documents // 5), law.draw(rng, law.documents)
        shares = estimate_shares(self.mixes(rng, proposing, evidence), SHARES_PART * EPS)
        if shares is None or not all(shares.least):
            return shares, None
        return shares, law.certified_by(proposing, evidence, shares)


CALIBRATION = (0.7, 0.3)
CASES = {
    "two classes, .3": Traffic(Law(FLIP, CALIBRATION, predicted=predicted_at(0.3))),
    "two classes, .15": Traffic(Law(FLIP, CALIBRATION, predicted=predicted_at(0.15))),
    "three classes": Traffic(Law(HALVES, (0.6, 0.2, 0.2), documents=1600, predicted=(0.3, 0.4, 0.3))),
    "documents, two classes, .3": Traffic(DOCUMENT_LAWS["documents, two classes, .3"]),
    "documents, three classes": Traffic(replace(DOCUMENT_LAWS["documents, three classes"], documents=1600)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_class_of_traffic_is_seldom_less_right_than_promised(name: str) -> None:
    case = CASES[name]
    draws, certified, held = Draws(EPS), 0, 0
    for draw in draws:
        shares, policy = case.certified(draw)
        certified += policy is not None
        of_all = zip(case.law.of_traffic, *((shares.least, shares.most) if shares else ((), ())), strict=False)
        held += shares is not None and all(least <= share <= most for share, least, most in of_all)
        draws.add(policy is not None and case.law.falls_short(policy))
    assert draws.seldom
    assert certified > 0.5 * draws.count
    assert held >= (1 - SHARES_PART * EPS) * draws.count - 3 * sqrt(SHARES_PART * EPS * draws.count)


def test_points_of_a_class_that_have_changed_break_it() -> None:
    """If they are mistaken for the other class more often, the shares that explain it have more of that class."""
    case = Traffic(Law(FLIP, CALIBRATION, mean=0.03, documents=2000, predicted=predicted_at(0.3)), mistaken=5.0)
    found = [case.certified(draw) for draw in range(10)]
    assert sum(policy is not None and case.law.falls_short(policy, case.cells) for _, policy in found) >= 8
