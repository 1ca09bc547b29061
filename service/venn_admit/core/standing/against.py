"""The game against what is certified of a predicted class: its own labels may show that it does not hold.

What is certified stays so, whatever later labels say. So there is a game the other way, that of the monitors' lamp of
the promise: gamblers bet that fewer than 1 - alpha are right of what the threshold admits that was the last one to be
certified before a document came. If each of these holds, the mixture over starts ever reaches C / level for any of C
classes with a chance of at most the level (Ville), as the threshold of a document depends on earlier labels alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from venn_admit.core.calibrators.certified.certificate import Refutation
from venn_admit.core.monitoring.anytime.games import Further, GamesFromStarts, excess_factors, go_on_from_starts
from venn_admit.core.monitoring.anytime.stored import games_document, read_games
from venn_admit.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Against:
    """A game; documents of which the threshold in force admits nothing do not count.

    Attributes:
        game: It alone, which starts again with every document that counts.
        admitted: The points that the thresholds in force admitted.
        right: Those of them that are right.
    """

    game: GamesFromStarts
    admitted: int
    right: int

    @property
    def refutation(self) -> Refutation | None:
        """What labels show, if the game was ever won."""
        if not self.game.crossed[0]:
            return None
        return Refutation(self.admitted, self.right, int(self.game.counted[0]), int(self.game.since[0]))


@dataclass(frozen=True, slots=True, eq=False)
class CountedDocuments:
    """What the thresholds in force admit of the n documents that count, (n,) each.

    Attributes:
        weight: float64, the sum of the weights of what is admitted, that of a document at most M.
        wrong_weight: float64, that of what is wrong of it.
        largest: int64 >= 1, M.
    """

    admitted: IntArray
    right: IntArray
    weight: FloatArray
    wrong_weight: FloatArray
    largest: IntArray


def go_on(against: Against | None, found: CountedDocuments, *, alpha: float, needed: float) -> Against | None:
    """Play on; None before the first document that counts.

    Args:
        alpha: In (0, 1).
        needed: C / level, the e-value that refutes.
    """
    if not len(found.admitted):
        return against
    game = GamesFromStarts.before_the_first(1, is_detector=False) if against is None else against.game
    game = replace(game, since=game.since.copy())
    wrong, weight, largest = found.wrong_weight[:, None], found.weight[:, None], found.largest[:, None]  # (n, 1)
    factors = excess_factors(wrong, weight, largest, alpha)
    go_on_from_starts(
        [Further(game, factors, np.ones((len(factors), 1), dtype=np.bool_), needed)], int(game.counted[0])
    )
    before = (0, 0) if against is None else (against.admitted, against.right)
    return Against(game, before[0] + int(found.admitted.sum()), before[1] + int(found.right.sum()))


def to_document(against: Against) -> dict[str, Any]:
    """Return a game as JSON holds it."""
    return {"admitted": against.admitted, "right": against.right, "game": games_document(against.game)}


def from_document(document: Mapping[str, Any]) -> Against:
    """Return the game that `to_document` made a document of."""
    game = GamesFromStarts.before_the_first(1, is_detector=False)
    read_games(document["game"], game)
    return Against(game, document["admitted"], document["right"])
