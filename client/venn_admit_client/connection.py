"""A connection to a service, with its classifiers."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from .classifier import Classifier
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
    ) -> Classifier:
        """Register a classifier; the key needs the scope `admin`.

        Args:
            name: 1 to 100 printable characters.
            classes: The names of the C >= 2 classes, in the order of the logits.
            dimension: D, the length of a vector, 1 to 16,000; required unless there are logits only.
            neighbours: K, the nearest training exemplars that a decision looks at; 25 by default.
            logits_only: Whether there are no vectors.
            seed: Of the division of held-out data, and of training.

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
        }
        return self._made(self._transport.post("classifiers", body=body))

    def classifier(self, name: str) -> Classifier:
        """Return a classifier that is stored.

        Raises:
            NotFoundError: There is none of this name.
            AccessError: The key is not for it.
        """
        return self._made(self._transport.get("classifiers", name))

    def classifiers(self) -> list[Classifier]:
        """Return all classifiers that the key is for, by name."""
        found = self._transport.get("classifiers")["classifiers"]
        return [self._made(one) for one in found]

    def _made(self, answer: Mapping[str, Any]) -> Classifier:
        return Classifier(self._transport, answer["classifier"], tuple(answer["classes"]), answer["dimension"])
