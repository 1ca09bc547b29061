"""What the labels so far have shown of the thresholds of a standing certificate.

Each threshold has a game, as those of the monitors: seven gamblers bet that more than 1 - alpha of what it admits is
right. If that is not so, their mean wealth ever reaches 1 / level with a chance of at most the level (Ville), so that
one may look after every label. That holds for points drawn with known probabilities too, whatever decided on these
before the labels came. How wealth is shared out at the start is fixed by what is foretold. If labels are there at the
start, half of it belongs to a gambler who bets once, that one test of a fixed number of documents passes. Sources:
Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by
betting*; Zrnic & Candès (2024), *Active statistical inference*; Bretz, Maurer, Brannath & Posch (2009), *A graphical
approach to sequentially rejective multiple test procedures*; Kelly (1956), *A new interpretation of information rate*.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from venn_admit.core.calibrators.certified.certificate import Refutation
from venn_admit.core.calibrators.certified.hypothesis_tests import Bets, binomial_tail, p_values_of_bets
from venn_admit.core.calibrators.certified.points import CertificatePoints, canonical
from venn_admit.core.monitoring.anytime.games import BLOCK_VALUES, STAKES, excess_factors, mean_wealth, play
from venn_admit.core.monitoring.anytime.plan import LEVEL
from venn_admit.core.standing.against import Against, CountedDocuments, go_on
from venn_admit.core.standing.chains import ClassChain, StandingChain, document_counts, document_weights, in_blocks
from venn_admit.core.types import FloatArray, IntArray

GAMBLERS = STAKES[:7]
"""The stakes. The smallest ones of the monitors would only help where the share wrong is within a fortieth of alpha."""


EQUAL_PART = 0.25
"""The part of their wealth that they share equally; the rest belongs to the two whose stakes are next to the best."""
START_PART = 0.5
"""The part of the level that the test of the labels that are there at the start has."""
_PAIRS = 5
"""As many pairs of documents stand for what is known of the variance before the first one."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassState:
    """The games of the thresholds of one predicted class.

    Attributes:
        wealth: (P, S) float64, of each gambler; that of the one who bets at the start, if there is one, comes last.
        most: (P,) float64, the largest mean wealth so far.
        admitted: (P,) int64, the points that each threshold admits.
        right: (P,) int64, those of them that are right.
        capped: (P,) int64, the documents that count for fewer points than each threshold admits of them.
        against: The game against what is certified; None before its first document.
    """

    wealth: FloatArray
    most: FloatArray
    admitted: IntArray
    right: IntArray
    capped: IntArray
    against: Against | None = None

    @property
    def refutation(self) -> Refutation | None:
        """What labels show against what is certified, if they refute it."""
        return None if self.against is None else self.against.refutation


State = tuple[ClassState, ...]
"""(C,) the games of each predicted class. A class of which there are no new points keeps its very record."""


def initial_state(chain: StandingChain) -> State:
    """Return the state before the first label."""
    return tuple(
        ClassState(initial_wealth(of, with_start=chain.at_start > 0), *_nothing(len(of.scores))) for of in chain.classes
    )


def initial_wealth(chain: ClassChain, *, with_start: bool) -> FloatArray:
    """Return what each gambler has before the first label, (P, S).

    with_start: whether one bets at the start, who gets it if the bet is won.
    """
    count = len(GAMBLERS)
    wealth = np.ones((len(chain.scores), count))
    if chain.stakes is not None:
        best = np.clip(chain.stakes, GAMBLERS[-1], GAMBLERS[0])
        above = np.clip(count - 1 - np.searchsorted(GAMBLERS[::-1], best), 0, count - 2)
        nearer = (best - GAMBLERS[above + 1]) / (GAMBLERS[above] - GAMBLERS[above + 1])
        wealth *= EQUAL_PART
        for place, part in ((above, nearer), (above + 1, 1 - nearer)):
            wealth[np.arange(len(best)), place] += (1 - EQUAL_PART) * count * part
    if not with_start:
        return wealth
    return np.concatenate([wealth * ((1 - START_PART) * (count + 1) / count), np.zeros((len(wealth), 1))], axis=1)


def start(chain: StandingChain, state: State, points: CertificatePoints) -> State:
    """Take the first documents into account: those that are there at the start, with the bet on them, and later ones.

    The number of those must not hang on their labels, and none is of drawn points: what later ones are drawn may hang
    on earlier labels, so that they cannot be tested at once.

    Args:
        state: The one before the first label.
        points: As in `advance`.
    """
    there = points.document < chain.at_start
    at_start = points.take(there)
    found = list(advance(chain, state, at_start))
    level = START_PART * chain.level / max(len(chain.tested), 1)
    moved = [number for number, of in enumerate(found) if of is not state[number]]
    if len(np.unique(at_start.document)) == len(at_start.document):
        p_values = [_p_values_of_points(found[number], chain.alpha) for number in moved]
    else:
        of_classes = [(chain.classes[number], at_start.take(at_start.predicted == number)) for number in moved]
        p_values = _p_values_of_documents(of_classes, chain.alpha, level)
    for number, of_class in zip(moved, p_values, strict=True):
        of = found[number]
        wealth = of.wealth.copy()
        wealth[:, -1] = np.where(of_class <= level, wealth.shape[1] * (len(chain.tested) / chain.level), 0.0)
        found[number] = replace(of, wealth=wealth, most=np.maximum(of.most, mean_wealth(wealth)))
    return advance(chain, tuple(found), points.take(~there))


def _p_values_of_points(state: ClassState, alpha: float) -> FloatArray:
    """Those of the binomial test, (P,)."""
    counts = zip(state.right.tolist(), state.admitted.tolist(), strict=True)
    return np.array([binomial_tail(all_ - right, all_, alpha) for right, all_ in counts])


def _p_values_of_documents(
    of_classes: Sequence[tuple[ClassChain, CertificatePoints]], alpha: float, level: float
) -> list[FloatArray]:
    """Those of the betting test of each class, (P,), in an order of documents that is drawn by what they hold."""
    games, ends = [], []
    for chain, of_class in of_classes:
        points, generator = canonical(of_class)
        order, uniform = generator.permutation(points.document_count), 1.0 - generator.random()
        width = max(BLOCK_VALUES // points.document_count, 1)
        for first in range(0, len(chain.scores), width):
            scores, largest = chain.scores[first : first + width], chain.largest[first : first + width]
            admitted, right = document_counts(points, scores)
            part: FloatArray = np.minimum(1.0, largest / np.maximum(admitted, 1))
            excess: FloatArray = (admitted - right - alpha * admitted) * part
            deviation = np.sqrt(alpha * (1 - alpha) * np.square(admitted * part).mean(axis=0))
            known = np.concatenate([[deviation, -deviation]] * _PAIRS)
            games.append(Bets(excess[order], (1 - alpha) * largest.astype(np.float64), known, uniform))
        ends.append(len(games))
    p_values = p_values_of_bets(games, level=level)
    return [np.concatenate(p_values[first:end]) for first, end in pairwise([0, *ends])]


def _nothing(count: int) -> tuple[FloatArray, IntArray, IntArray, IntArray]:
    """What games have seen before the first label."""
    return np.ones(count), *np.zeros((3, count), dtype=np.int64)


def advance(chain: StandingChain, state: State, points: CertificatePoints) -> State:
    """Take further documents into account; it takes time in proportion to them, and the bits are those of one advance.

    Args:
        points: All labelled points of the further documents, numbered in the order in which they count. They must be
            drawn at random, and none may have been looked at when the chain was fixed. If they were drawn with known
            probabilities pi, which hung on nothing but what was known before their labels, each has the weight
            pi_min / pi: L (z - 0) / pi has the mean of z, and pi_min / pi <= 1 keeps every bet within what it may
            cost, as a stake below pi_min / ((1 - alpha) M) on z / pi would.
    """
    found, ends, counts = list(state), list[int](), certified_counts(chain, state)
    in_force: dict[int, list[CountedDocuments]] = {}
    waiting = sum(counts[number] < len(chain.classes[number].scores) for number in chain.tested)
    for number, of_class in enumerate(chain.classes):
        rows = points.predicted == number
        if len(of_class.scores) and rows.any():
            is_whole = counts[number] == len(of_class.scores)
            least = 0.0 if is_whole else waiting / chain.level
            taken = _advance_class(chain, of_class, found[number], points.take(rows), least)
            found[number], in_force[number], end = taken
            ends += [] if is_whole or end is None else [end]
    # From the first document on by which a class ended, the others have its level, and other thresholds are in force.
    until = points.document <= min(ends, default=np.inf)
    if not until.all():
        return advance(chain, advance(chain, state, points.take(until)), points.take(~until))
    for number, documents in in_force.items():
        against = found[number].against
        for of_block in documents:
            against = go_on(against, of_block, alpha=chain.alpha, needed=len(chain.tested) / LEVEL)
        found[number] = replace(found[number], against=against)
    return tuple(found)


def _advance_class(
    chain: StandingChain, of: ClassChain, state: ClassState, points: CertificatePoints, least: float
) -> tuple[ClassState, list[CountedDocuments], int | None]:
    """What further points of a class come to, except for the game against what is certified.

    least: the wealth that certifies a threshold.

    Returns:
        The state after them, what the thresholds in force admit, and the first document by which all thresholds are
        certified.
    """
    stakes, end = np.append(GAMBLERS, 0.0)[: state.wealth.shape[1]], None
    in_force: list[CountedDocuments] = []
    for block in in_blocks(points, state.wealth.size):
        admitted, right = document_counts(block, of.scores)
        shown, of_right = (admitted, right) if block.weight is None else document_weights(block, of.scores)
        # A document of more points than M counts as M of them.
        part = np.minimum(1.0, of.largest / np.maximum(admitted, 1))
        weight, right_weight = np.multiply(shown, part), np.multiply(of_right, part)
        e_values, wealth = play(state.wealth, excess_factors(right_weight, weight, of.largest, 1 - chain.alpha, stakes))
        most = np.maximum.accumulate(np.concatenate([state.most[np.newaxis], e_values]))  # (documents + 1, P)
        counts = _certified(most, least)
        if end is None and counts[-1] == len(of.scores):
            end = int(np.unique(block.document)[int((counts[1:] == len(of.scores)).argmax())])
        before = counts[:-1]
        rows = np.flatnonzero((before > 0) & (admitted[np.arange(len(before)), before - 1] > 0))
        place = before[rows] - 1
        in_force.append(
            CountedDocuments(
                admitted[rows, place],
                right[rows, place],
                weight[rows, place],
                (weight - right_weight)[rows, place],
                of.largest[place],
            )
        )
        state = ClassState(
            wealth,
            most[-1],
            state.admitted + admitted.sum(axis=0),
            state.right + right.sum(axis=0),
            state.capped + np.count_nonzero(admitted > of.largest, axis=0),
            state.against,
        )
    return state, in_force, end


def certified_counts(chain: StandingChain, state: State) -> tuple[int, ...]:
    """Return how many thresholds of each predicted class are certified, (C,); they are its first ones.

    The classes share the level equally, and one of which every threshold is certified leaves its part to the others.
    With the largest wealth so far, what was certified stays certified.
    """
    tested = chain.tested
    counts = [0] * len(chain.classes)
    waiting: list[int] = []
    while len(left := [number for number in tested if counts[number] < len(state[number].most)]) != len(waiting):
        waiting = left
        for number in waiting:
            counts[number] = int(_certified(state[number].most, len(waiting) / chain.level))
    return tuple(counts)


def _certified(most: FloatArray, least: float) -> IntArray:
    """How many thresholds come before the first whose largest wealth is below another, for (..., P) of them."""
    below = np.concatenate([most < least, np.ones((*most.shape[:-1], 1), dtype=np.bool_)], axis=-1)
    first: IntArray = below.argmax(axis=-1)
    return first


def refuted(state: State) -> tuple[int, ...]:
    """Return the predicted classes whose labels refute what is certified of them."""
    return tuple(number for number, of in enumerate(state) if of.refutation is not None)


def restarted(state: State) -> State:
    """Return the state from which the games against what is certified start again."""
    return tuple(of if of.against is None else replace(of, against=None) for of in state)


def admitting(chain: StandingChain, certified: Sequence[int]) -> tuple[float | None, ...]:
    """Return the least score at which each predicted class is admitted, (C,); None is never.

    Args:
        certified: As `certified_counts` returns them.
    """
    pairs = zip(chain.classes, certified, strict=True)
    return tuple(float(of.scores[count - 1]) if count else None for of, count in pairs)
