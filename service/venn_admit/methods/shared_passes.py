"""Work that threads ask for at the same time, done together, in one pass over what it needs."""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from threading import Condition
from typing import Generic, TypeVar

Q = TypeVar("Q", bound=Sized)
A = TypeVar("A")


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
