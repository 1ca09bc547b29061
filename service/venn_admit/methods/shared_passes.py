"""Work that threads ask for at the same time, done in one pass over what it needs, such as category weights."""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from threading import Condition
from typing import Generic, TypeVar

import numpy as np

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.types import Float32Array, FloatArray, IntArray

Q = TypeVar("Q", bound=Sized)
A = TypeVar("A")
# How many queries share a pass at most.
MOST_QUERIES = 256
# The supports whose tiles a process keeps: each takes half of the memory budget at most.
MOST_SUPPORTS = 2


@dataclass(slots=True, eq=False)
class _Asked(Generic[Q, A]):
    """What one thread asks for, and what became of it: an answer or an error."""

    question: Q
    answer: A | None = None
    error: Exception | None = None

    @property
    def is_answered(self) -> bool:
        return self.answer is not None or self.error is not None


class SharedPasses(Generic[Q, A]):
    """Passes over something that is read as a whole, which threads share.

    While one thread makes a pass, others wait; then one of them makes the next pass, for all that came meanwhile.
    Nobody waits for others to come.
    """

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A]], *, most: int) -> None:
        """Share passes.

        Args:
            answer: Makes a pass: it returns the answer to each question, which is not None, whatever the others are.
            most: So long at most are the questions of a pass together, so that nobody waits long for what others ask.
        """
        self._answer_together = answer
        self._most = most
        self._waiting: list[_Asked[Q, A]] = []
        self._is_passing = False
        self._changed = Condition()

    def ask(self, question: Q) -> A:
        """Return the answer to a question, whose length is `most` at most."""
        asked = _Asked[Q, A](question)
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
        if asked.answer is None:
            assert asked.error is not None, "a question has an answer or an error"
            raise asked.error
        return asked.answer

    def ask_alone(self, question: Q) -> A:
        """Return the answer to a question by a pass of its own, beside those that are shared."""
        (answer,) = self._answer_together([question])
        return answer

    def _take(self) -> list[_Asked[Q, A]]:
        """Take those that have waited longest out of the line."""
        together = [self._waiting.pop(0)]
        length = len(together[0].question)
        while self._waiting and length + len(self._waiting[0].question) <= self._most:
            together.append(self._waiting.pop(0))
            length += len(together[-1].question)
        return together

    def _answer(self, together: Sequence[_Asked[Q, A]]) -> None:
        """Answer questions in one pass; if that fails, each alone, so that only those see an error that cause it."""
        try:
            answers = self._answer_together([asked.question for asked in together])
        except Exception as error:
            if len(together) == 1:
                together[0].error = error
                return
            for asked in together:
                self._answer([asked])
            return
        for asked, answer in zip(together, answers, strict=True):
            asked.answer = answer


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
