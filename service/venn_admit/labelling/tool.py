"""What is asked of a tool for labelling, whichever it is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

from venn_admit.errors import InvalidInputError
from venn_admit.files.reviews.given import GivenLabels, member
from venn_admit.labelling.web import Web
from venn_admit_client.records.reviews import ReviewPoint

BATCH = 100
"""How many points are sent, and at most how many are asked for, at a time."""
MOST_ITEMS = 1_000_000
"""At most how many tasks or records are listed."""


class LabellingTool(ABC):
    """A project or dataset of a tool for labelling."""

    def __init__(self, place: str, web: Web) -> None:
        """Ask it by requests that are signed. place: what messages call it."""
        self.place = place
        self._web = web

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._web.close()

    @abstractmethod
    def known(self) -> set[str]:
        """Return the ids of the points that are there.

        Raises:
            InvalidInputError: The tool refuses, or answers in another form.
            VennAdmitError: It cannot be reached, or fails.
        """

    def add(self, points: Sequence[ReviewPoint]) -> None:
        """Send points, in their order and without what was predicted. Raises as `known` does."""
        for start in range(0, len(points), BATCH):
            self._add(points[start : start + BATCH])

    @abstractmethod
    def _add(self, points: Sequence[ReviewPoint]) -> None: ...

    @abstractmethod
    def labels(self) -> list[GivenLabels]:
        """Return the labels that were given there by reviewer, in the order of `by_reviewer`.

        Raises as `known` does, and at labels in another form than a file of the tool has them.
        """


def paged(where: str, name: str, page: Callable[[int, int], Any]) -> list[Any]:
    """Return all of a list that comes in pages.

    Args:
        where: What messages call it.
        name: What its member in each page is called.
        page: Returns a page by its number, from 0, and the items of those before it.

    Raises:
        InvalidInputError: The answers have another form, the list is too long, or it changed meanwhile.
    """
    found: list[Any] = []
    number = 0
    while True:
        answer = page(number, len(found))
        items, total = member(where, answer, name, list), member(where, answer, "total", int)
        if total > MOST_ITEMS:
            raise InvalidInputError(f"{where}: expected at most {MOST_ITEMS:,} items, got {total:,}; divide them")
        found += items
        number += 1
        if not items or len(found) >= total:
            break
    ids = {str(one.get("id")) for one in found if isinstance(one, dict)}
    if not len(ids) == len(found) == total:
        raise InvalidInputError(f"{where}: expected {total:,} items, got others while they were read; try again")
    return found
