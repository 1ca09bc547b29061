"""A connection to a service, with its classifiers."""

from collections.abc import Mapping, Sequence
from typing import Any

from .cascade import Cascade
from .classifier import Classifier
from .errors import InvalidInputError
from .given import class_names, stage_costs, whole_number
from .interface import ConnectionInterface
from .members import from_json
from .records.cascades import CascadeReport
from .records.data import Deletion
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


class Connection(ConnectionInterface):
    """The classifiers of a service. It is made by `connect`, and several threads may use it.

    A request that gets no answer, or one that says to try later, is sent again: whatever it stores is stored once. An
    error is raised if the time of the retries is over, or as soon as trying again cannot help.

    To look classifiers up, the key needs the scope `read`, and for all else `admin`; AccessError is raised if it lacks
    it, or is for another classifier.
    """

    def __init__(self, transport: Transport) -> None:
        """Use a transport, and close it in the end."""
        self._transport = transport

    def __repr__(self) -> str:
        return f"<Connection to {self._transport.url}>"

    def close(self) -> None:
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
        body = {
            "classifier": name,
            "classes": class_names(classes, InvalidInputError),
            "dimension": whole_number("dimension", dimension, InvalidInputError),
            "k": whole_number("neighbours", neighbours, InvalidInputError),
            "logits_only": logits_only,
            "seed": whole_number("seed", seed, InvalidInputError),
            "extractor": extractor,
        }
        return Classifier(self._transport, self._transport.post("classifiers", body=body))

    def classifier(self, name: str) -> Classifier:
        return Classifier(self._transport, self._transport.get("classifiers", name), name)

    def create_generation(self, name: str, *, dimension: int | None = None, extractor: str | None = None) -> Classifier:
        body = {"dimension": whole_number("dimension", dimension, InvalidInputError), "extractor": extractor}
        return Classifier(self._transport, self._transport.post("classifiers", name, "generations", body=body))

    def switch(self, generation: str) -> Classifier:
        name, at, number = generation.rpartition("@")
        if not (at and number.isascii() and number.isdigit()):
            raise InvalidInputError(f"generation: expected NAME@NUMBER, got {generation!r}")
        body = {"generation": int(number)}
        done = self._transport.put("classifiers", name, "generations", "current", body=body)
        return Classifier(self._transport, done["after"], generation)

    def state_extractor(self, name: str, extractor: str) -> Classifier:
        answer = self._transport.put("classifiers", name, "extractor", body={"extractor": extractor})
        return Classifier(self._transport, answer, name)

    def delete(self, name: str, *, dry_run: bool = False) -> Deletion:
        return from_json(Deletion, self._transport.delete("classifiers", name, dry_run=dry_run))

    def classifiers(self) -> list[Classifier]:
        return [Classifier(self._transport, one) for one in self._transport.pages("classifiers")]

    def create_cascade(self, name: str, stages: Mapping[str, float] | Sequence[str]) -> Cascade:
        costs = stage_costs(stages, InvalidInputError)
        body = {"cascade": name, "stages": [{"classifier": one, "cost": cost} for one, cost in costs.items()]}
        return self._cascade(self._transport.post("cascades", body=body))

    def cascade(self, name: str) -> Cascade:
        return self._cascade(self._transport.get("cascades", name))

    def cascades(self) -> list[Cascade]:
        return [self._cascade(one) for one in self._transport.get("cascades")["cascades"]]

    def _cascade(self, answer: Mapping[str, Any]) -> Cascade:
        return Cascade(self._transport, from_json(CascadeReport, answer))
