"""Simulated: SGR admits more than alpha wrong in at most 1 - level of the draws of calibration data.

The laws are finite, so that the share wrong under any threshold is known exactly. The hard ones lie just above alpha
over a range of thresholds, so that only chance lets one of them pass.
"""

from dataclasses import dataclass
from decimal import Decimal
from math import sqrt

import numpy as np
import pytest

from venn_admit.core.comparison import confidence
from venn_admit.core.comparison.confidence import guaranteed_risk
from venn_admit.core.types import FloatArray

ALPHA, LEVEL, DRAWS = Decimal("0.1"), Decimal("0.95"), 2000
LEVELS = np.linspace(0.5, 1, 40)


@dataclass(frozen=True)
class Law:
    """wrong: (40,) the probability that a point of each confidence is wrong; all are as frequent. count: points."""

    wrong: FloatArray
    count: int

    def share_wrong(self, threshold: float) -> float:
        """The share wrong of all that reach a threshold; 0 if nothing does."""
        reached = threshold <= LEVELS
        return float(self.wrong[reached].mean()) if reached.any() else 0.0


LAWS = {
    "calibrated": Law(1 - LEVELS, 2000),
    "calibrated, few points": Law(1 - LEVELS, 60),
    "flat, just above alpha": Law(np.full(40, 0.1001), 500),
    "just above alpha from the middle down": Law(np.where(LEVELS > 0.75, 0.02, 0.1803), 1000),
    "confident and wrong": Law(np.where(LEVELS > 0.95, 0.3, 0.08), 800),
}


@pytest.mark.parametrize("name", LAWS)
def test_too_much_is_wrong_in_few_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidence, "binomial_upper_bound", lambda *_: 1.0)  # of what was found, and most of the work
    law, rng = LAWS[name], np.random.default_rng(13)
    failed = admitting = 0
    for _ in range(DRAWS):
        level = rng.integers(0, len(LEVELS), law.count)
        right = rng.random(law.count) >= law.wrong[level]
        found = guaranteed_risk(LEVELS[level], right, alpha=ALPHA, level=LEVEL)
        admitting += found.admitted > 0
        failed += law.share_wrong(found.threshold) > float(ALPHA)
    allowed = float(1 - LEVEL)
    assert failed / DRAWS <= allowed + 3 * sqrt(allowed * (1 - allowed) / DRAWS), failed
    if name == "calibrated":
        assert admitting > 0.9 * DRAWS
