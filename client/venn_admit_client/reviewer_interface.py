"""What a program does with the queue for reviewers, in its own process and over HTTP."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from .records.reviews import Claims, Reviewed

LEASE_SECONDS = 900.0
"""For how long claims hold unless they are renewed, if no other lease is asked for."""
FILE_LEASE = 7 * 86_400.0
"""The same of what leaves in a file, in seconds."""
FILE_POINTS = 100
"""How many points are held then, if no other number is asked for."""


class ReviewerInterface(ABC):
    """A reviewer of a classifier, who claims points of its queue and labels them; no two hold a point at a time.

    Points are claimed by name: programs that show the same name hold the same points.
    """

    def __init__(self, classifier: str, name: str) -> None:
        """Name the classifier, and the reviewer."""
        self._classifier = classifier
        self._name = name

    def __repr__(self) -> str:
        return f"<Reviewer {self._name!r} of {self._classifier!r}>"

    @property
    def name(self) -> str:
        """The name by which claims and labels are told apart."""
        return self._name

    @abstractmethod
    def claim(self, count: int = 1, *, lease: float = LEASE_SECONDS, again: bool = False) -> Claims:
        """Return the points that are held, whose claims are renewed, and claim others until `count` are as wanted.

        They come in the order of the queue: by the day on which they are due, which is the attribute `due`
        (2026-12-01); within a day, first what was drawn to be audited, in the order of a hash; then what is nearest to
        being admitted, together with its near duplicates. A claim ends with a label, when it is given back, and with
        its lease.

        Args:
            count: At most how many points are wanted, up to 1,000.
            lease: Seconds for which the claims hold unless they are renewed, 10 to 2,592,000.
            again: Whether points that one other reviewer has labelled are wanted, for a second opinion.

        Raises:
            InvalidInputError: A value is out of range.
        """

    @abstractmethod
    def held(self) -> Claims:
        """Return the points that are held; their claims are not renewed."""

    @abstractmethod
    def renew(self, ids: Collection[str] | None = None, *, lease: float = LEASE_SECONDS) -> int:
        """Extend claims that still hold, and return how many do; others may have taken those that do not.

        Args:
            ids: Ids of points; by default all that are held.
            lease: Seconds for which they hold from now on, unless they do longer already.

        Raises:
            InvalidInputError: The lease is out of range.
        """

    @abstractmethod
    def release(self, ids: Collection[str] | None = None) -> int:
        """Give claims back, so that others get the points, and return how many.

        Args:
            ids: Ids of points; by default all that are held.
        """

    @abstractmethod
    def label(self, labels: Mapping[str, str | int], *, resolve: bool = False) -> Reviewed:
        """Record labels, all or none, and end the claims on their points; the result says what was predicted.

        A label of a point that another reviewer has labelled is kept beside that, and is the one that counts. Labels of
        points that were not drawn to be audited do not calibrate: a rule chose them.

        Args:
            labels: Class names or numbers, by the ids of points.
            resolve: Whether these labels end disagreements about their points.

        Raises:
            InvalidInputError: There is no label, or one is of no class.
            NotFoundError: An id is not stored.
        """
