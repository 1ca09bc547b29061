"""The choice of one threshold for each predicted class that admits most under limits on errors.

The limits on true classes couple the thresholds: an integer programme with one choice for each predicted class. Its
Lagrange dual falls apart into the classes; its multipliers propose choices, which are made feasible and then improved
class by class. Every step is deterministic, and ties go to the stricter threshold and the lower class.
"""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.types import BoolArray, FloatArray, IntArray

STEPS = 100
"""Steps of the subgradient method."""
REPAIRED = 3
"""How many of the feasible and of the infeasible choices of the dual are taken further."""
TOLERANCE = 1e-9
"""Sums of losses differ from their limits by more than this, or by rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The limits on what a policy admits.

    Attributes:
        mean_loss: The largest mean loss of the admitted points of a class.
        allowed: (C, k) bool, the options that keep the limits of their predicted class.
        reserve: (C,) float64 >= 0, by how much the loss of the admitted points of each true class must fall short
            of its limit; None if true classes are not limited. If they are, every predicted class that can must admit
            something: without an admitted point of its own a true class cannot be certified.
    """

    mean_loss: float
    allowed: BoolArray
    reserve: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The thresholds to choose from, for each predicted class; option 0 is never to admit it.

    Attributes:
        threshold: (C, k) float64, descending; inf for never, and beyond the options of a class.
        admitted: (C, k) float64, how many points are admitted; -1 beyond the options of a class.
        wrong: (C, k, C) float64, how many of them are wrong, by their true class.
        loss: (C, C) float64, what an error costs its predicted class, by predicted and by true class.
        loss_of_true: (C, C) float64, what it costs its true class.
    """

    threshold: FloatArray
    admitted: FloatArray
    wrong: FloatArray
    loss: FloatArray
    loss_of_true: FloatArray

    @property
    def total_loss(self) -> FloatArray:
        """(C, k) float64, what the admitted points cost."""
        total: FloatArray = (self.wrong * self.loss[:, np.newaxis, :]).sum(axis=2)
        return total

    @property
    def right(self) -> FloatArray:
        """(C, k) float64, how many of the admitted points are right."""
        right: FloatArray = np.maximum(self.admitted, 0) - self.wrong.sum(axis=2)
        return right

    @property
    def exists(self) -> BoolArray:
        """(C, k) bool, whether there is such an option."""
        return self.admitted >= 0


def best_choice(options: Options, limits: Limits) -> IntArray | None:
    """Return the best choice of options found, (C,) int64: the option of each predicted class.

    It is None if no feasible choice was found that admits something.
    """
    excess, limit, allowed = _constraints(options, limits)
    if not allowed.any(axis=1).all():
        return None
    rows = np.arange(len(allowed))
    best, most = None, 0.0
    for choice in _candidates(options.admitted, excess, limit, allowed):
        repaired = _repaired(choice, options.admitted, excess, limit, allowed)
        if repaired is None:
            continue
        improved = _improved(repaired, options.admitted, excess, limit, allowed)
        value = float(options.admitted[rows, improved].sum())
        if value > most:
            best, most = improved, value
    return best


def _constraints(options: Options, limits: Limits) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The excess loss of each true class (C, k, C), its limit (C,), and the allowed options (C, k)."""
    allowed = limits.allowed & options.exists
    if limits.reserve is None:
        return np.zeros((*allowed.shape, 0)), np.zeros(0), allowed
    excess = (options.loss_of_true[:, np.newaxis, :] - limits.mean_loss) * options.wrong
    diagonal = np.arange(len(allowed))
    excess[diagonal, :, diagonal] = -limits.mean_loss * options.right
    allowed[:, 0] &= ~options.exists[:, 1:].any(axis=1)
    return excess, TOLERANCE - limits.reserve, allowed


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """A choice that the dual has come to, which it does again and again.

    Attributes:
        choice: (C,) int64, the option of each predicted class.
        over: (C,) float64, by how much each limit is exceeded, in units of its constraint.
        violation: The sum of what is above 0 of it.
        admitted: How many points are admitted.
    """

    choice: IntArray
    over: FloatArray
    violation: float
    admitted: float


def _candidates(admitted: FloatArray, excess: FloatArray, limit: FloatArray, allowed: BoolArray) -> list[IntArray]:
    """Choices from the dual: feasible ones that admit most, those that nearly keep the limits, and the strictest."""
    rows = np.arange(len(allowed))
    value = np.where(allowed, admitted, -np.inf)
    strictest = np.argmax(allowed, axis=1)
    if not len(limit):
        return [np.argmax(value, axis=1)]
    scale = np.maximum(np.abs(excess).max(axis=1).max(axis=0), 1.0)  # (C,)
    multiplier = np.zeros(len(limit))
    seen: dict[bytes, _Seen] = {}
    for step in range(STEPS):
        choice = (value - excess @ multiplier).argmax(axis=1)
        key = choice.tobytes()
        if key not in seen:
            over = (excess[rows, choice].sum(axis=0) - limit) / scale
            seen[key] = _Seen(choice, over, float(np.maximum(over, 0).sum()), float(value[rows, choice].sum()))
            if not step and (over <= 0).all():
                return [choice]  # without a price on errors, so that no other choice admits more
        multiplier = np.maximum(0.0, multiplier + 20.0 / (1 + step) ** 0.6 * seen[key].over)
    ranked = sorted(seen.values(), key=lambda one: (one.violation, -one.admitted, one.choice.tobytes()))
    feasible = [one.choice for one in ranked if one.violation == 0][:REPAIRED]
    near = [one.choice for one in ranked if one.violation > 0][:REPAIRED]
    return [*feasible, *near, strictest]


def _repaired(
    choice: IntArray, admitted: FloatArray, excess: FloatArray, limit: FloatArray, allowed: BoolArray
) -> IntArray | None:
    """Raise thresholds until the limits hold, each time the one that cures most for the points it gives up."""
    rows = np.arange(len(allowed))
    choice = choice.copy()
    total = excess[rows, choice].sum(axis=0)
    while (total > limit).any():
        stricter = allowed & (np.arange(allowed.shape[1]) < choice[:, None])
        over = np.maximum(total - limit, 0).sum()
        after = total - excess[rows, choice][:, None, :] + excess  # (C, k, C)
        cured = over - np.maximum(after - limit, 0).sum(axis=2)  # (C, k)
        lost = admitted[rows, choice][:, None] - admitted
        worth = np.where(stricter & (cured > TOLERANCE), cured / (np.maximum(lost, 0) + 1), 0.0)
        place = int(np.argmax(worth))
        if worth.flat[place] == 0:
            return None
        predicted, option = divmod(place, allowed.shape[1])
        choice[predicted] = option
        total = excess[rows, choice].sum(axis=0)
    return choice


def _improved(
    choice: IntArray, admitted: FloatArray, excess: FloatArray, limit: FloatArray, allowed: BoolArray
) -> IntArray:
    """Lower thresholds class by class, each as far as the limits allow given the others, until none can be lowered."""
    rows = np.arange(len(allowed))
    choice = choice.copy()
    while True:
        before = choice.copy()
        for predicted in rows:
            total = excess[rows, choice].sum(axis=0) - excess[predicted, choice[predicted]]
            keeps = allowed[predicted] & (total + excess[predicted] <= limit).all(axis=1)
            keeps[choice[predicted]] = True
            choice[predicted] = np.argmax(np.where(keeps, admitted[predicted], -1.0))
        if np.array_equal(before, choice):
            return choice
