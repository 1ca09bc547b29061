"""Adaptive prediction sets, plain (APS) and regularised (RAPS), on the temperature-scaled softmax of f.

Sources: Romano, Sesia & Candes (2020), *Classification with Valid and Adaptive Coverage* (APS); Angelopoulos, Bates,
Malik & Jordan (2021), *Uncertainty Sets for Image Classifiers using Conformal Prediction* (RAPS).

With the classes of a point ranked by probability, p_(1) >= p_(2) >= ..., and its draw U, rank r has the score

    p_(1) + ... + p_(r-1) + U p_(r) + lambda max(r - k_reg, 0)

and the set is the ranks whose score is at most a threshold. These are all ranks up to some rank, because the score
never falls. The first rank is always in the set. APS is lambda = 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.checks import check_labels
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

BLOCK_ELEMENTS = 2**17


@dataclass(frozen=True, slots=True)
class AdaptiveRule:
    """The rule that gives a point its set.

    Attributes:
        k_reg: In [1, C]; ranks up to it carry no penalty.
        penalty: lambda >= 0; 0 for APS.
        threshold: The greatest score in a set; may be inf.
    """

    k_reg: int
    penalty: float
    threshold: float


@dataclass(frozen=True, slots=True, eq=False)
class LabelScores:
    """The ranks and scores of the labels of n points.

    Attributes:
        rank: (n,) int64 in [1, C], of the label.
        unpenalised: (n,) float64 in [0, 1], the score of the label with lambda = 0.
    """

    rank: IntArray
    unpenalised: FloatArray

    def score(self, k_reg: int, penalty: float) -> FloatArray:
        """Return the scores of the labels with a penalty, (n,) float64."""
        return self.unpenalised + _penalties(self.rank, k_reg, penalty)

    def part(self, rows: BoolArray) -> "LabelScores":
        """Return the ranks and scores of the points that `rows`, (n,) bool, chooses."""
        return LabelScores(self.rank[rows], self.unpenalised[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some rows with their ranked classes. Ranks lie along the first axis, so that a step over them is contiguous.

    Attributes:
        negated: (b, C), the negatives of the logits in ascending order.
        exponentials: (C, b), of each rank.
        cumulative: (C + 1, b), their sums up to each rank, starting with 0.
    """

    rows: slice
    logits: Float32Array
    negated: Float32Array
    draws: FloatArray
    exponentials: FloatArray
    cumulative: FloatArray

    def scores_after(self, above: IntArray) -> FloatArray:
        """Unpenalised scores (b,) of one rank in each row, the one after the first `above` (b,); 0 <= above < C."""
        columns = np.arange(len(above))
        scores: FloatArray = self.exponentials[above, columns] * self.draws
        scores += self.cumulative[above, columns]
        scores /= self.cumulative[-1]
        return scores

    def tied(self, above: IntArray) -> IntArray:
        """The rows (t,) in which the rank after the first `above` (b,) ties with the next one; 0 <= above < C."""
        rows = np.arange(len(above))
        following = np.minimum(above + 1, len(self.exponentials) - 1)
        found = (self.negated[rows, above] == self.negated[rows, following]) & (above < following)
        return np.flatnonzero(found)


def uniform_draws(external_ids: Sequence[str], seed: int) -> FloatArray:
    """Return the draw U of each point, a function of (seed, id) alone, whatever the batch or order.

    Returns:
        (n,) float64 in [0, 1).
    """
    # The 53 highest bits: a float64 keeps no more.
    kept = hash_keys(external_ids, seed=seed, purpose="set draws") >> np.uint64(11)
    return kept.astype(np.float64) * 2.0**-53


def label_scores(logits: Float32Array, label: IntArray, draws: FloatArray, temperature: float) -> LabelScores:
    """Return the ranks and scores of the labels of n points, computed in blocks of rows.

    Classes are ranked by logit; ties go to the lower class.
    """
    check_labels(label, logits)
    rank, score = np.empty(len(logits), dtype=np.int64), np.empty(len(logits))
    for block in _blocks(logits, draws, temperature):
        known = label[block.rows]
        own = np.take_along_axis(block.logits, known[:, np.newaxis], axis=1)  # (b, 1)
        above = np.count_nonzero(block.logits > own, axis=1)
        for row in block.tied(above):
            above[row] += np.count_nonzero(block.logits[row, : known[row]] == own[row])
        rank[block.rows] = above + 1
        score[block.rows] = block.scores_after(above)
    return LabelScores(rank, score)


def set_sizes(logits: Float32Array, draws: FloatArray, temperature: float, rules: Sequence[AdaptiveRule]) -> IntArray:
    """Return the sizes of the sets that each of several rules gives n points, computed in blocks of rows.

    Returns:
        (len(rules), n) int64 in [1, C].
    """
    sizes = np.empty((len(rules), len(logits)), dtype=np.int64)
    for block in _blocks(logits, draws, temperature):
        sizes[:, block.rows] = _sizes(block, rules)
    return sizes


def adaptive_sets(logits: Float32Array, draws: FloatArray, temperature: float, rule: AdaptiveRule) -> BoolArray:
    """Return the sets of n points; each holds argmax f, ties going to the lower class; (n, C) bool.

    The set of a point is the same whatever batch it is in.

    Examples:
        >>> logits = np.log(np.array([[6, 3, 1]], dtype=np.float32))
        >>> rule = AdaptiveRule(k_reg=1, penalty=0.0, threshold=0.8)
        >>> adaptive_sets(logits, np.array([0.5]), 1.0, rule), adaptive_sets(logits, np.array([0.9]), 1.0, rule)
        (array([[ True,  True, False]]), array([[ True, False, False]]))
    """
    included = np.empty(logits.shape, dtype=np.bool_)
    for block in _blocks(logits, draws, temperature):
        sizes = _sizes(block, [rule])[0]
        last = -block.negated[np.arange(len(sizes)), sizes - 1]
        inside = block.logits >= last[:, np.newaxis]  # (b, C)
        # If the last class ties with the next one, the lower of the tied classes belong to the set.
        for row in block.tied(sizes - 1):
            ranked = np.argsort(-block.logits[row], kind="stable")
            inside[row, ranked[sizes[row] :]] = False
        included[block.rows] = inside
    return included


def _blocks(logits: Float32Array, draws: FloatArray, temperature: float) -> Iterator[_Block]:
    """Yield blocks of rows with classes sorted by logit, so that ranks do not depend on the rounding of the softmax."""
    _check(logits, draws, temperature)
    step = max(1, BLOCK_ELEMENTS // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        negated = np.negative(logits[rows])
        negated.sort(axis=1)
        with np.errstate(invalid="ignore"):  # infinity less infinity, which is refused below
            exponentials = np.subtract(negated[:, 0], negated.T, dtype=np.float64, order="C")  # (C, b)
        if not np.isfinite(exponentials[-1]).all():  # NaN sorts last
            raise InvalidInputError("expected finite logits, got NaN or infinity; remove or repair the row")
        with np.errstate(over="ignore"):  # to minus infinity, which is probability 0
            exponentials /= temperature
        np.exp(exponentials, out=exponentials)
        cumulative = np.zeros((len(exponentials) + 1, exponentials.shape[1]))
        for above, of_rank in enumerate(exponentials):
            np.add(cumulative[above], of_rank, out=cumulative[above + 1])
        yield _Block(rows, logits[rows], negated, draws[rows], exponentials, cumulative)


def _sizes(block: _Block, rules: Sequence[AdaptiveRule]) -> IntArray:
    """Set sizes, (len(rules), b).

    Because U < 1, and rounding never reverses an order, a rank whose score for U = 1 is within the threshold is in the
    set. Only the first of the others can be in the set, depending on its own score.
    """
    with_last = block.cumulative[1:] / block.cumulative[-1]  # (C, b), unpenalised scores for U = 1
    least = with_last.min(axis=1)
    class_count = len(with_last)
    sizes = np.empty((len(rules), with_last.shape[1]), dtype=np.int64)
    for place, rule in enumerate(rules):
        penalties = _penalties(np.arange(1, class_count + 1), rule.k_reg, rule.penalty)
        reach = np.searchsorted(least + penalties, rule.threshold, side="right")  # ranks that some row may have
        scores = with_last[:reach]
        if rule.penalty > 0:
            scores = scores + penalties[:reach, np.newaxis]  # (reach, b)
        whole = np.count_nonzero(scores <= rule.threshold, axis=0)
        above = np.minimum(whole, class_count - 1)
        following = block.scores_after(above) + penalties[above]
        sizes[place] = np.clip(whole + (following <= rule.threshold), 1, class_count)
    return sizes


def _penalties(rank: IntArray, k_reg: int, penalty: float) -> FloatArray:
    return penalty * np.maximum(rank - k_reg, 0)


def _check(logits: Float32Array, draws: FloatArray, temperature: float) -> None:
    if logits.ndim != 2 or logits.shape[1] < 2 or draws.shape != (len(logits),):
        raise InvalidInputError(
            f"expected logits (n, C) of at least 2 classes and draws (n,), got shapes {logits.shape} and "
            f"{draws.shape}; pass arrays of the same points"
        )
    if not np.all((draws >= 0) & (draws < 1)):
        raise InvalidInputError("expected draws in [0, 1); take them from uniform_draws")
    if not 0 < temperature < np.inf:
        raise InvalidInputError(f"expected a temperature > 0 and finite, got {temperature}; fit it")
