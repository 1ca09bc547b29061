"""Traffic as simulations draw it: documents of some size, whose points are right together or not."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.monitoring.anytime.documents import LabelledPoints

CLASSES = 2
ALPHA = Decimal("0.1")


@dataclass(frozen=True)
class Law:
    """Six partitions of two classes. share: (6,) how frequent each is. right: (6,) how often a point of it is right.

    size: points of a document, which lie in one partition. together: the chance that they share one outcome.
    """

    share: tuple[float, ...] = (0.05, 0.05, 0.15, 0.15, 0.3, 0.3)
    right: tuple[float, ...] = (0.9,) * 6
    size: int = 1
    together: float = 0.0

    def draw(self, rng: np.random.Generator, documents: int) -> LabelledPoints:
        """Draw documents, all of whose points are admitted."""
        count = documents * self.size
        partition = np.repeat(rng.choice(6, documents, p=self.share), self.size)
        chance = np.asarray(self.right)[partition]
        own, common = rng.random(count), np.repeat(rng.random(documents), self.size)
        alike = np.repeat(rng.random(documents) < self.together, self.size)
        wrong = np.where(alike, common, own) >= chance
        predicted = partition % CLASSES
        return LabelledPoints(
            document=np.repeat(np.arange(documents), self.size),
            draw=np.arange(count, dtype=np.uint64),
            uniform=rng.random(count),
            predicted=predicted,
            label=np.where(wrong, 1 - predicted, predicted),
            partition=partition,
            admitted=np.ones(count, dtype=np.bool_),
            weight=np.ones(count),
            weight_of_admitted=np.ones(count),
            is_ranked=np.ones(count, dtype=np.bool_),
            beside=np.full(count, -1),
            surer=np.zeros(count, dtype=np.int64),
        )
