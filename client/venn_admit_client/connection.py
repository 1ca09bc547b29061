"""A connection to a service, with its classifiers."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from .classifier import Classifier
from .errors import InvalidInputError
from .members import from_json
from .records import Deletion
from .retries import Retries
from .transport import Transport


def connect(url: str, key: str, *, timeout: float = 60.0, retries: Retries | None = None) -> "Connection":
    """Connect to a service. No request is sent yet.

    Args:
        url: Where it listens, such as `http://127.0.0.1:8470`.
        key: The text that `venn-admit key create` showed.
        timeout: Seconds that the service may be silent during one attempt.
        retries: For how long, and after which waits, a request is sent again; two minutes by default.

    Returns:
        The connection. Use it in a `with` statement, or close it.

    Raises:
        InvalidInputError: The URL, the key or the timeout cannot be one.
    """
    return Connection(Transport(url, key, timeout=timeout, retries=retries or Retries()))


class Connection:
    """The classifiers of a service. It is made by `connect`, and several threads may use it.

    A request that gets no answer, or one that says to try later, is sent again: whatever it stores is stored once. An
    error is raised if the time of the retries is over, or as soon as trying again cannot help.
    """

    def __init__(self, transport: Transport) -> None:
        """Use a transport, and close it in the end."""
        self._transport = transport

    def __repr__(self) -> str:
        return f"<Connection to {self._transport.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service."""
        self._transport.close()

    def create(
        self,
        name: str,
        classes: Sequence[str],
        *,
        dimension: int | None = None,
        neighbours: int | None = None,
        logits_only: bool = False,
        seed: int = 0,
        extractor: str | None = None,
    ) -> Classifier:
        """Register a classifier; the key needs the scope `admin`.

        Args:
            name: 1 to 100 printable characters.
            classes: The names of the C >= 2 classes, in the order of the logits.
            dimension: D, the length of a vector, 1 to 16,000; required unless there are logits only.
            neighbours: K, the nearest training exemplars that a decision looks at; 25 by default.
            logits_only: Whether there are no vectors.
            seed: The seed of the division of held-out data, and of training.
            extractor: The version of what its vectors come from; by default the one that the first data state.

        Raises:
            InvalidInputError: A value is out of range.
            ConflictError: There is a classifier of this name.
            AccessError: The key does not allow it.
        """
        body = {
            "classifier": name,
            "classes": list(classes),
            "dimension": dimension,
            "k": neighbours,
            "logits_only": logits_only,
            "seed": seed,
            "extractor": extractor,
        }
        return Classifier(self._transport, self._transport.post("classifiers", body=body))

    def classifier(self, name: str) -> Classifier:
        """Return a classifier that is stored; by NAME@NUMBER, one of its generations, otherwise the current one.

        Raises:
            NotFoundError: There is none of this name.
            AccessError: The key is not for it.
        """
        return Classifier(self._transport, self._transport.get("classifiers", name), name)

    def create_generation(self, name: str, *, dimension: int | None = None, extractor: str | None = None) -> Classifier:
        """Add a generation to a classifier, for the vectors of another extractor; the key needs the scope `admin`.

        The current one stays in use. The new one has the classes, K and seed of the others, so that the same documents
        fall in the same splits. Ingest its exemplars, fit and calibrate it; then `switch` to it.

        Args:
            name: The classifier's name.
            dimension: D, the length of a vector; by default that of the current generation.
            extractor: The version of what its vectors come from; by default the one that the first data state.

        Returns:
            The generation.

        Raises:
            InvalidInputError: A value is out of range.
            NotFoundError: There is no classifier of this name.
            ConflictError: Another classifier has the name that the generation would have.
            AccessError: The key does not allow it.
        """
        body = {"dimension": dimension, "extractor": extractor}
        return Classifier(self._transport, self._transport.post("classifiers", name, "generations", body=body))

    def switch(self, generation: str) -> Classifier:
        """Have a classifier's name stand for another of its generations from now on; switching back is the same.

        The key needs the scope `admin`.

        Args:
            generation: NAME@NUMBER.

        Returns:
            The generation, which is current.

        Raises:
            InvalidInputError: It says no generation.
            NotFoundError: There is no such generation.
            NotReadyError: The generation has no calibration, or one by which everything would be rejected.
            AccessError: The key does not allow it.
        """
        name, at, number = generation.rpartition("@")
        if not (at and number.isascii() and number.isdigit()):
            raise InvalidInputError(f"generation: expected NAME@NUMBER, got {generation!r}")
        body = {"generation": int(number)}
        done = self._transport.put("classifiers", name, "generations", "current", body=body)
        return Classifier(self._transport, done["after"], generation)

    def state_extractor(self, name: str, extractor: str) -> Classifier:
        """State which extractor the vectors come from, or correct that while no exemplars are stored.

        The key needs the scope `admin`.

        Args:
            name: The classifier's name, or NAME@NUMBER.
            extractor: The version.

        Raises:
            InvalidInputError: It is not a valid version.
            NotFoundError: There is no such classifier.
            ConflictError: There are exemplars, and another one was stated for them.
            AccessError: The key does not allow it.
        """
        answer = self._transport.put("classifiers", name, "extractor", body={"extractor": extractor})
        return Classifier(self._transport, answer, name)

    def delete(self, name: str, *, dry_run: bool = False) -> Deletion:
        """Delete a classifier with all that belongs to it, or a generation of it that is not current, for good.

        The key needs the scope `admin`. From its first moment on the classifier cannot be used, and keys for it alone
        are revoked. After an interruption, call it again.

        Args:
            name: The classifier's name, for all its generations; or NAME@NUMBER, for that one.
            dry_run: Whether to count only what would be deleted.

        Raises:
            NotFoundError: There is no such classifier.
            ConflictError: The generation is current, or jobs are running.
            AccessError: The key does not allow it.
        """
        return from_json(Deletion, self._transport.delete("classifiers", name, dry_run=dry_run))

    def classifiers(self) -> list[Classifier]:
        """Return all classifiers that the key is for and all their generations, by name."""
        return [Classifier(self._transport, one) for one in self._transport.pages("classifiers")]
