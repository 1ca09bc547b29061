"""Category weights for requests that wait at the same time, computed in one pass over the localizer's support."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.types import Float32Array, FloatArray, IntArray
from venn_admit.methods.shared_passes import SharedPasses

# How many queries share a pass at most.
MOST_QUERIES = 256
# The supports whose tiles a process keeps: each takes half of the memory budget at most.
MOST_SUPPORTS = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Categories:
    """Queries of one request, with the windows of their categories."""

    queries: Float32Array
    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        return len(self.queries)


class SharedWeights:
    """The support of a snapshot's localizer, shared by threads; no bit depends on what else a pass is for."""

    def __init__(self, support: LocalizerSupport) -> None:
        """Share a support.

        Args:
            support: The support of the snapshot.
        """
        self._support = support
        self._passes = SharedPasses(self._weigh, most=MOST_QUERIES)

    def category_weight(self, queries: Float32Array, window_low: IntArray, window_high: IntArray) -> FloatArray:
        """Return the weight of each query's category, as `LocalizerSupport` does."""
        parts = [slice(start, start + MOST_QUERIES) for start in range(0, len(queries), MOST_QUERIES)]
        asked = [_Categories(queries[part], window_low[part], window_high[part]) for part in parts]
        return np.concatenate([np.empty(0), *(self._passes.ask(one) for one in asked)])

    def _weigh(self, together: Sequence[_Categories]) -> Sequence[FloatArray]:
        weights = self._support.category_weight(
            np.concatenate([asked.queries for asked in together]),
            np.concatenate([asked.low for asked in together]),
            np.concatenate([asked.high for asked in together]),
        )
        ends = np.cumsum([len(asked) for asked in together])
        return np.split(weights, ends[:-1])
