"""Confidence bounds of a share that hold at all times: the shares that a game has not refuted yet.

Source: Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by betting*, theorem 3.
"""

import math
from collections.abc import Mapping

import numpy as np

from venn_admit.core.monitoring.anytime.wealth import STAKES

HALVINGS = 40


def lower_bound(documents: Mapping[tuple[int, int], int], largest: int, *, level: float) -> float:
    """The lower bound of the share right, E(right) / E(points), over documents.

    A game against each share m that it is at most m; the bound is the largest m at which the wealth has reached
    1 / level. Wealth falls as m grows, so m is found by halving. With probability 1 - level the share lies above the
    bound after every document, whenever one looks.

    Args:
        documents: How many documents have (points, wrong), 0 <= wrong <= points <= largest.
        largest: M >= 1, fixed before the documents were seen.
        level: In (0, 1).

    Returns:
        In [0, 1); 0 if nothing is known.

    Examples:
        >>> round(lower_bound({(1, 0): 95, (1, 1): 5}, 1, level=0.05), 3)
        0.848
    """
    pairs = sorted(documents)
    if not pairs:
        return 0.0
    points = np.array([pair[0] for pair in pairs], dtype=np.float64)
    right = points - np.array([pair[1] for pair in pairs])
    count = np.array([documents[pair] for pair in pairs], dtype=np.float64)

    def is_refuted(share: float) -> bool:
        gain = (right / share - points) / largest  # (p,)
        logs = np.log1p(gain[:, None] * STAKES).T @ count  # (S,)
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).mean())) >= -math.log(level)

    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low
