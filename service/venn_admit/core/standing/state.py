"""What the labels so far have shown of the thresholds of a standing certificate.

Each threshold has a game, as those of the monitors: seven gamblers bet that more than 1 - alpha of what it admits is
right. If that is not so, their mean wealth ever reaches 1 / level with a chance of at most the level (Ville), so that
one may look after every label. Sources: Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by
betting*; Bretz, Maurer, Brannath & Posch (2009), *A graphical approach to sequentially rejective multiple test
procedures*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.monitoring.anytime.games import BLOCK_VALUES, STAKES, excess_factors, play
from venn_admit.core.standing.chains import ClassChain, StandingChain, document_counts
from venn_admit.core.types import FloatArray

GAMBLERS = STAKES[:7]
"""The stakes. The smallest ones of the monitors would only help where the share wrong is within a fortieth of alpha."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassState:
    """The games of the thresholds of one predicted class.

    Attributes:
        wealth: (P, S) float64, of each gambler.
        most: (P,) float64, the largest mean wealth so far.
    """

    wealth: FloatArray
    most: FloatArray


State = tuple[ClassState, ...]
"""(C,) the games of each predicted class. A class of which there are no new points keeps its very record."""


def initial_state(chain: StandingChain) -> State:
    """Return the state before the first label."""
    counts = [len(of.scores) for of in chain.classes]
    return tuple(ClassState(np.ones((count, len(GAMBLERS))), np.ones(count)) for count in counts)


def advance(chain: StandingChain, state: State, points: CertificatePoints) -> State:
    """Take further documents into account; it takes time in proportion to them, and the bits are those of one advance.

    Args:
        chain: The thresholds.
        state: That of the documents before.
        points: All labelled points of the further documents, numbered in the order in which they count. They must be
            drawn at random, and none may have been looked at when the chain was fixed.
    """
    found = list(state)
    for number, of_class in enumerate(chain.classes):
        rows = points.predicted == number
        if len(of_class.scores) and rows.any():
            found[number] = _advance_class(of_class, found[number], points.take(rows), 1 - chain.alpha)
    return tuple(found)


def _advance_class(chain: ClassChain, state: ClassState, points: CertificatePoints, share: float) -> ClassState:
    admitted, right = document_counts(points, np.ones(len(points.score), dtype=np.bool_), chain.scores)
    # A document of more points than M counts as M of them.
    part = np.minimum(1.0, chain.largest / np.maximum(admitted, 1))
    wealth, most = state.wealth, state.most
    step = max(BLOCK_VALUES // wealth.size, 1)
    for start in range(0, len(admitted), step):
        block = slice(start, start + step)
        factors = excess_factors(
            right[block] * part[block], admitted[block] * part[block], chain.largest, share, GAMBLERS
        )
        e_values, wealth = play(wealth, factors)
        most = np.maximum(most, e_values.max(axis=0))
    return ClassState(wealth, most)


def certified_counts(chain: StandingChain, state: State) -> tuple[int, ...]:
    """Return how many thresholds of each predicted class are certified, (C,); they are its first ones.

    The classes share the level equally, and one of which every threshold is certified leaves its part to the others.
    With the largest wealth so far, what was certified stays certified.

    Args:
        chain: The thresholds.
        state: What the labels have shown.
    """
    tested = [number for number, of in enumerate(chain.classes) if len(of.scores)]
    counts = [0] * len(chain.classes)
    waiting: list[int] = []
    while len(left := [number for number in tested if counts[number] < len(state[number].most)]) != len(waiting):
        waiting = left
        for number in waiting:
            counts[number] = _first_below(state[number].most, len(waiting) / chain.level)
    return tuple(counts)


def _first_below(most: FloatArray, least: float) -> int:
    below = np.append(most < least, True)
    return int(below.argmax())


def admitting(chain: StandingChain, certified: Sequence[int]) -> tuple[float | None, ...]:
    """Return the least score at which each predicted class is admitted, (C,); None is never.

    Args:
        chain: The thresholds.
        certified: As `certified_counts` returns them.
    """
    pairs = zip(chain.classes, certified, strict=True)
    return tuple(float(of.scores[count - 1]) if count else None for of, count in pairs)
