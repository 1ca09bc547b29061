"""Simulated: certificates that are made once, by random labels and by those of drawn points that calibrate beside them.

All admitted points are drawn and a tenth of the rejected ones, and what is admitted moves with the labels so far. The
points that calibrate are those that a tenth of everything would have drawn, by the same hash.
"""

import numpy as np

from tests.guarantees.draws import Draws
from tests.guarantees.test_certificate import ALPHA, CONFIDENCE, EPS, LAWS, Law
from venn_admit.core.audits import AuditRates, drawn
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.types import BoolArray

RANDOM, TRAFFIC, BLOCK = 200, 4_200, 600
RATES = AuditRates((1.0, 1.0), 0.1)
GRADED = LAWS["independent"]


def audited(law: Law, rng: np.random.Generator, *, all_drawn: bool) -> CertificatePoints:
    """The points that calibrate: a random sample, and drawn ones of the traffic; all of these, as a control."""
    key, least = rng.bytes(16), 0.82
    found = [(law.draw(rng, RANDOM), np.ones(RANDOM, dtype=np.bool_))]
    for first in range(0, TRAFFIC, BLOCK):
        points = law.draw(rng, BLOCK)
        contents = [str(first + row).encode() for row in range(BLOCK)]
        probabilities = RATES.probabilities(points.predicted, points.score >= least)
        is_drawn = drawn(key, contents, probabilities)
        calibrates = drawn(key, contents, np.full(BLOCK, RATES.least_of_all))
        assert (is_drawn | ~calibrates).all(), "what calibrates was drawn"
        right = points.predicted[is_drawn] == points.label[is_drawn]
        least = 0.75 if right.mean() >= 0.92 else 0.82
        found.append((points, is_drawn if all_drawn else calibrates))
    score, predicted, label = (
        np.concatenate([getattr(points, name)[rows] for points, rows in found])
        for name in ("score", "predicted", "label")
    )
    order = rng.permutation(len(score))
    return CertificatePoints(score[order], predicted[order], label[order], np.arange(len(order)))


def certified(law: Law, seed: int, *, all_drawn: bool = False) -> Certificate:
    points = audited(law, np.random.default_rng([seed, 3]), all_drawn=all_drawn)
    proposing: BoolArray = np.arange(len(points.score)) < len(points.score) // 6

    def taken(rows: BoolArray) -> CertificatePoints:
        return CertificatePoints(points.score[rows], points.predicted[rows], points.label[rows], np.arange(rows.sum()))

    return certify(
        taken(proposing), taken(~proposing), class_count=2, alpha=ALPHA, kinds=law.kinds, confidence=CONFIDENCE
    )


def short(law: Law, *, all_drawn: bool = False) -> Draws:
    """How often what is certified falls short."""
    draws = Draws(EPS)
    for draw in draws:
        policy = certified(law, draw, all_drawn=all_drawn).policy
        draws.add(policy is not None and law.falls_short(policy))
    return draws


def test_a_policy_that_was_certified_by_audits_seldom_falls_short() -> None:
    assert short(LAWS["just below"]).seldom
    assert short(GRADED).seldom
    found = [certified(GRADED, seed).policy for seed in range(20)]
    assert sum(policy is not None for policy in found) > 10, "nor is nothing certified"


def test_all_drawn_labels_alike_would_certify_what_falls_short() -> None:
    """The control, for which most of the labels are of points that were admitted."""
    assert not short(GRADED, all_drawn=True).seldom
