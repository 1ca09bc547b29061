"""Games from every start, each followed by itself: what `GamesFromStarts` must come to."""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

import numpy as np

STAKES = 0.8 / 2.0 ** np.arange(9)


def weights(count: int) -> list[float]:
    """The weights of the starts before the first documents that count; that of the first one has the half besides."""
    left = [0.5 * sqrt(200 / (200 + documents)) for documents in range(count + 1)]
    found = [before - after for before, after in pairwise(left)]
    return [0.5 + found[0], *found[1:]]


def mixture_and_sum(gains: Sequence[float], numbers: Sequence[int]) -> tuple[list[float], list[float], list[float]]:
    """The mixture, the sum, and the mean start of the sum after each document that counts.

    gains: what a stake of 1 gains with each; numbers: how many documents of any kind came before each.
    """
    weight = np.array(weights(len(gains)))
    mixtures, sums, starts = [], [], []
    for end in range(1, len(gains) + 1):
        factors = 1 + np.array(gains[:end])[:, None] * STAKES  # (end, S)
        wealth = np.cumprod(factors[::-1], axis=0)[::-1].mean(axis=1)  # (end,), by start
        mixtures.append(float(weight[:end] @ wealth) + 0.5 * sqrt(200 / (200 + end)))
        sums.append(float(wealth.sum()))
        starts.append(float(wealth @ np.array(numbers[:end])) / sums[-1])
    return mixtures, sums, starts
