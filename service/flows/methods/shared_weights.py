"""Category weights for requests that wait at the same time, computed in one pass over the localizer's support."""

from dataclasses import dataclass
from threading import Condition

import numpy as np

from venn_admit.service.core.approximation.localizer import LocalizerSupport
from venn_admit.service.core.types import Float32Array, FloatArray, IntArray

# So many queries at most share a pass, so that nobody waits long for what others ask.
MOST_QUERIES = 256
# The supports whose tiles a process keeps: each takes half of the memory budget at most.
MOST_SUPPORTS = 2


@dataclass(slots=True, eq=False)
class _Asked:
    """Queries of one request, and what became of them."""

    queries: Float32Array
    low: IntArray
    high: IntArray
    weight: FloatArray | None = None
    error: Exception | None = None

    @property
    def is_answered(self) -> bool:
        return self.weight is not None or self.error is not None


class SharedWeights:
    """The support of a snapshot's localizer, shared by threads.

    While one thread makes a pass, others wait; then one of them makes the next pass, for all that came meanwhile. The
    weights do not depend, to the last bit, on what else a pass is for. Nobody waits for others to come.
    """

    def __init__(self, support: LocalizerSupport) -> None:
        """Share a support.

        Args:
            support: Of the snapshot.
        """
        self._support = support
        self._waiting: list[_Asked] = []
        self._is_passing = False
        self._changed = Condition()

    def category_weight(self, queries: Float32Array, window_low: IntArray, window_high: IntArray) -> FloatArray:
        """Return the weight of each query's category, as `LocalizerSupport` does."""
        parts = [slice(start, start + MOST_QUERIES) for start in range(0, len(queries), MOST_QUERIES)]
        return np.concatenate(
            [np.empty(0), *(self._await(_Asked(queries[part], window_low[part], window_high[part])) for part in parts)]
        )

    def _await(self, asked: _Asked) -> FloatArray:
        with self._changed:
            self._waiting.append(asked)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: asked.is_answered or not self._is_passing)
                if asked.is_answered:
                    break
                self._is_passing = True
                together = self._take()
            try:
                self._answer(together)
            finally:
                with self._changed:
                    # Those that an interruption of this thread left without an answer are for the next one.
                    self._waiting[:0] = [one for one in together if one is not asked and not one.is_answered]
                    self._is_passing = False
                    self._changed.notify_all()
        if asked.weight is None:
            assert asked.error is not None, "a request is answered by a weight or an error"
            raise asked.error
        return asked.weight

    def _take(self) -> list[_Asked]:
        """Take those that have waited longest out of the line."""
        together = [self._waiting.pop(0)]
        count = len(together[0].queries)
        while self._waiting and count + len(self._waiting[0].queries) <= MOST_QUERIES:
            together.append(self._waiting.pop(0))
            count += len(together[-1].queries)
        return together

    def _answer(self, together: list[_Asked]) -> None:
        """Answer requests in one pass; if that fails, each alone, so that only those see an error that cause it."""
        try:
            weights = self._support.category_weight(
                np.concatenate([asked.queries for asked in together]),
                np.concatenate([asked.low for asked in together]),
                np.concatenate([asked.high for asked in together]),
            )
        except Exception as error:
            if len(together) == 1:
                together[0].error = error
                return
            for asked in together:
                self._answer([asked])
            return
        ends = np.cumsum([len(asked.queries) for asked in together])
        for asked, weight in zip(together, np.split(weights, ends[:-1]), strict=True):
            asked.weight = weight
