"""What the labels so far have shown of the thresholds of a standing certificate.

Each threshold has a game, as those of the monitors: seven gamblers bet that more than 1 - alpha of what it admits is
right. If that is not so, their mean wealth ever reaches 1 / level with a chance of at most the level (Ville), so that
one may look after every label. A policy of a path has a game for each class, and is certified once all are won. One
that falls short in some class has a game that is won with a chance of at most the level, so classes share none of it.
That holds for points drawn with known probabilities too, whatever decided on these before the labels came. How wealth
is shared out at the start is fixed by what is foretold. If labels are there at the start, half of it belongs to a
gambler who bets once, that one test of a fixed number of documents passes. Sources: Waudby-Smith & Ramdas (2024),
*Estimating means of bounded random variables by betting*; Zrnic & Candès (2024), *Active statistical inference*; Bretz,
Maurer, Brannath & Posch (2009), *A graphical approach to sequentially rejective multiple test procedures*; Kelly
(1956), *A new interpretation of information rate*.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from venn_admit.core.calibrators.certified.certificate import Refutation
from venn_admit.core.calibrators.certified.chains import finite_thresholds
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
    """The games of the steps of one class.

    Attributes:
        wealth: (P, S) float64, of each gambler; that of the one who bets at the start, if there is one, comes last.
        most: (P,) float64, the largest mean wealth so far.
        admitted: (P,) int64, the points that each step admits.
        right: (P,) int64, those of them that are right.
        capped: (P,) int64, the documents that count for fewer points than each step admits of them.
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
"""The games of the classes of a chain, by their places. A class of which there are no new points keeps its record."""


def initial_state(chain: StandingChain) -> State:
    """Return the state before the first label."""
    begun = [initial_wealth(of, with_start=chain.at_start > 0) for of in chain.classes]
    return tuple(ClassState(wealth, *_nothing(len(wealth))) for wealth in begun)


def initial_wealth(chain: ClassChain, *, with_start: bool) -> FloatArray:
    """Return what each gambler has before the first label, (P, S).

    with_start: whether one bets at the start, who gets it if the bet is won.
    """
    count = len(GAMBLERS)
    wealth = np.ones((len(chain.largest), count))
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

    The number of those must not depend on their labels, and none is of drawn points: what later ones are drawn may
    depend on earlier labels, so that they cannot be tested at once.

    Args:
        state: The one before the first label.
        points: As in `advance`.
    """
    there = points.document < chain.at_start
    at_start = points.take(there)
    found = list(advance(chain, state, at_start))
    level = START_PART * chain.level / max(chain.parts, 1)
    moved = [place for place, of in enumerate(found) if of is not state[place]]
    if len(np.unique(at_start.document)) == len(at_start.document):
        p_values = [_p_values_of_points(found[place], chain.alpha) for place in moved]
    else:
        p_values = _p_values_of_documents(chain, moved, at_start, level)
    for place, of_class in zip(moved, p_values, strict=True):
        of = found[place]
        wealth = of.wealth.copy()
        wealth[:, -1] = np.where(of_class <= level, wealth.shape[1] * (chain.parts / chain.level), 0.0)
        found[place] = replace(of, wealth=wealth, most=np.maximum(of.most, mean_wealth(wealth)))
    return advance(chain, tuple(found), points.take(~there))


def _p_values_of_points(state: ClassState, alpha: float) -> FloatArray:
    """Those of the binomial test, (P,)."""
    counts = zip(state.right.tolist(), state.admitted.tolist(), strict=True)
    return np.array([binomial_tail(all_ - right, all_, alpha) for right, all_ in counts])


def _p_values_of_documents(
    chain: StandingChain, places: Sequence[int], at_start: CertificatePoints, level: float
) -> list[FloatArray]:
    """Those of the betting test of some classes, (P,), in an order of documents that is drawn by what they hold."""
    alpha = chain.alpha
    games, ends = [], []
    for place in places:
        points, generator = canonical(at_start.take(chain.rows(place, at_start)))
        order, uniform = generator.permutation(points.document_count), 1.0 - generator.random()
        width, entered = max(BLOCK_VALUES // points.document_count, 1), chain.entered(points)
        for first in range(0, len(chain.classes[place].largest), width):
            largest = chain.classes[place].largest[first : first + width]
            admitted, right = document_counts(points, np.clip(entered - first, 0, len(largest)), len(largest))
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
            probabilities pi, which depended on nothing but what was known before their labels, each has the weight
            pi_min / pi: L (z - 0) / pi has the mean of z, and pi_min / pi <= 1 keeps every bet within what it may
            cost, as a stake below pi_min / ((1 - alpha) M) on z / pi would.
    """
    if chain.is_path:
        return _advance_path(chain, state, points)
    found, ends, counts = list(state), list[int](), certified_counts(chain, state)
    in_force: dict[int, list[CountedDocuments]] = {}
    waiting = sum(counts[number] < len(chain.classes[number].largest) for number in chain.tested)
    for number, of_class in enumerate(chain.classes):
        rows = points.predicted == number
        if len(of_class.largest) and rows.any():
            is_whole = counts[number] == len(of_class.largest)
            least = 0.0 if is_whole else waiting / chain.level
            taken = _advance_class(chain, number, found[number], points.take(rows), least)
            found[number], in_force[number], end = taken
            ends += [] if is_whole or end is None else [end]
    # From the first document on by which a class ended, the others have its level, and other thresholds are in force.
    until = points.document <= min(ends, default=np.inf)
    if not until.all():
        return advance(chain, advance(chain, state, points.take(until)), points.take(~until))
    for number, documents in in_force.items():
        for of_block in documents:
            found[number] = _played_against(chain, found[number], of_block)
    return tuple(found)


def _advance_class(
    chain: StandingChain, number: int, state: ClassState, points: CertificatePoints, least: float
) -> tuple[ClassState, list[CountedDocuments], int | None]:
    """What further points of a predicted class come to, except for the game against what is certified.

    least: the wealth that certifies a threshold.

    Returns:
        The state after them, what the thresholds in force admit, and the first document by which all thresholds are
        certified.
    """
    steps, end = len(chain.classes[number].largest), None
    in_force: list[CountedDocuments] = []
    for block in in_blocks(points, state.wealth.size):
        state, played = _play(chain, number, state, block)
        counts = _certified(played.most, least)
        if end is None and counts[-1] == steps:
            end = int(played.documents[int((counts[1:] == steps).argmax())])
        in_force.append(played.in_force(counts[:-1]))
    return state, in_force, end


def _advance_path(chain: StandingChain, state: State, points: CertificatePoints) -> State:
    """The state of a path after further documents: of each, the last policy is in force that was certified before."""
    found, tested, least = list(state), chain.tested, chain.parts / chain.level
    if not tested:
        return state
    for block in in_blocks(points, max(sum(of.wealth.size for of in state), 1)):
        documents = np.unique(block.document)
        blocks: dict[int, _Played] = {}
        before = {place: np.full(len(documents), int(_certified(found[place].most, least))) for place in tested}
        for place in tested:
            of_class = block.take(chain.rows(place, block))
            if len(of_class.score):
                found[place], blocks[place] = _play(chain, place, found[place], of_class)
                earlier = np.searchsorted(blocks[place].documents, documents)
                before[place] = _certified(blocks[place].most, least)[earlier]
        certified = np.min([before[place] for place in tested], axis=0)
        for place, played in blocks.items():
            at = certified[np.searchsorted(documents, played.documents)]
            found[place] = _played_against(chain, found[place], played.in_force(at))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Played:
    """What steps admit of the points of a class in the n documents of a block, and the largest wealth from then on.

    documents: (n,) int64. admitted, right: (n, P) int64; weight, right_weight: (n, P) float64. largest: (P,) int64, M.
    most: (n + 1, P) float64, before the first document and after each.
    """

    documents: IntArray
    admitted: IntArray
    right: IntArray
    weight: FloatArray
    right_weight: FloatArray
    largest: IntArray
    most: FloatArray

    def in_force(self, certified: IntArray) -> CountedDocuments:
        """Return what the step in force admits of each document; certified: (n,) how many steps were, before it."""
        rows = np.flatnonzero((certified > 0) & (self.admitted[np.arange(len(certified)), certified - 1] > 0))
        step = certified[rows] - 1
        return CountedDocuments(
            self.admitted[rows, step],
            self.right[rows, step],
            self.weight[rows, step],
            (self.weight - self.right_weight)[rows, step],
            self.largest[step],
        )


def _play(chain: StandingChain, place: int, state: ClassState, block: CertificatePoints) -> tuple[ClassState, _Played]:
    """What further points of a class come to, sorted by the numbers of their documents."""
    of = chain.classes[place]
    entered, steps = chain.entered(block), len(of.largest)
    stakes = np.append(GAMBLERS, 0.0)[: state.wealth.shape[1]]
    admitted, right = document_counts(block, entered, steps)
    shown, of_right = (admitted, right) if block.weight is None else document_weights(block, entered, steps)
    # A document of more points than M counts as M of them.
    part = np.minimum(1.0, of.largest / np.maximum(admitted, 1))
    weight, right_weight = np.multiply(shown, part), np.multiply(of_right, part)
    e_values, wealth = play(state.wealth, excess_factors(right_weight, weight, of.largest, 1 - chain.alpha, stakes))
    most = np.maximum.accumulate(np.concatenate([state.most[np.newaxis], e_values]))  # (documents + 1, P)
    after = ClassState(
        wealth,
        most[-1],
        state.admitted + admitted.sum(axis=0),
        state.right + right.sum(axis=0),
        state.capped + np.count_nonzero(admitted > of.largest, axis=0),
        state.against,
    )
    return after, _Played(np.unique(block.document), admitted, right, weight, right_weight, of.largest, most)


def _played_against(chain: StandingChain, state: ClassState, documents: CountedDocuments) -> ClassState:
    """The state with the game against what is certified, after further documents."""
    needed = len(chain.tested) / LEVEL
    return replace(state, against=go_on(state.against, documents, alpha=chain.alpha, needed=needed))


def certified_counts(chain: StandingChain, state: State) -> tuple[int, ...]:
    """Return how many steps of each class are certified, by their places; they are its first ones.

    Predicted classes share the level equally, and one of which every threshold is certified leaves its part to the
    others. Along a path, each class has the steps that are certified for all. With the largest wealth so far, what was
    certified stays certified.
    """
    tested = chain.tested
    counts = [0] * len(chain.classes)
    if chain.is_path:
        together = min((int(_certified(state[place].most, chain.parts / chain.level)) for place in tested), default=0)
        return tuple(together if place in tested else 0 for place in range(len(counts)))
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
    """Return the places of the classes whose labels refute what is certified of them."""
    return tuple(place for place, of in enumerate(state) if of.refutation is not None)


def restarted(state: State) -> State:
    """Return the state from which the games against what is certified start again."""
    return tuple(of if of.against is None else replace(of, against=None) for of in state)


def admitting(chain: StandingChain, certified: Sequence[int]) -> tuple[float | None, ...]:
    """Return the least score at which each predicted class is admitted, (C,); None is never.

    Args:
        certified: As `certified_counts` returns them.
    """
    if chain.is_path:
        certified = [max(certified)] * len(chain.predicted)
    pairs = zip(chain.predicted, certified, strict=True)
    return finite_thresholds(np.array([of.scores[count - 1] if count else np.inf for of, count in pairs]))
