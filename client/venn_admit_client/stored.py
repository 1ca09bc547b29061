"""What is read of a classifier: its calibrations, its stored decisions, and how they stand."""

from collections.abc import Iterator, Mapping
from typing import Any

from . import answers
from .members import from_json
from .records import ListedCalibration
from .results import Alarm, Monitor, Policy, Replay, Report, StoredDecision
from .transport import Transport


class StoredClassifier:
    """A classifier that is stored, and what is read of it; `Classifier` adds what stores and decides."""

    def __init__(self, transport: Transport, answer: Mapping[str, Any], name: str | None = None) -> None:
        """Use a transport, and what the service says of the classifier; name: what requests call it, if not that."""
        self._transport = transport
        self._name: str = answer["classifier"] if name is None else name
        self._classes: tuple[str, ...] = tuple(answer["classes"])
        self._dimension: int | None = answer["dimension"]
        self._generation: int = answer["generation"]
        self._extractor: str | None = answer["extractor"]

    def __repr__(self) -> str:
        size = "logits only" if self.dimension is None else f"D = {self.dimension}"
        return f"<Classifier {self.name!r}: {len(self.classes)} classes, {size}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its C classes, in the order of the logits."""
        return self._classes

    @property
    def dimension(self) -> int | None:
        """D, the length of a vector; None if it has logits only."""
        return self._dimension

    @property
    def generation(self) -> int:
        """Its number among the generations of the classifier when it was looked up."""
        return self._generation

    @property
    def extractor(self) -> str | None:
        """The version of the extractor that its vectors come from; None if it was not stated when it was looked up."""
        return self._extractor

    def training_waiting(self) -> int:
        """Return how many training exemplars wait for jobs that are running, and train afterwards.

        They wait for ten minutes at most. Until then, searches leave them out.
        """
        waiting: int = self._transport.get(*self._path())["training_waiting"]
        return waiting

    def calibrations(self) -> Iterator[ListedCalibration]:
        """Return the stored calibrations, the newest first; pages are asked for as they are needed."""
        return (from_json(ListedCalibration, one) for one in self._transport.pages(*self._path("calibrations")))

    def decisions(
        self, *, calibration: int | None = None, exemplar: str | int | None = None, admitted: bool | None = None
    ) -> Iterator[StoredDecision]:
        """Return the stored decisions, the newest first; pages are asked for as they are needed.

        Args:
            calibration: Those by this calibration alone.
            exemplar: Those on the exemplar with this id alone.
            admitted: True for those that were admitted alone, False for those that were rejected.

        Raises:
            NotFoundError: There is no such calibration.
        """
        id_ = None if exemplar is None else str(exemplar)
        found = self._transport.pages(
            *self._path("decisions"), calibration=calibration, external_id=id_, admitted=admitted
        )
        return map(answers.stored_decision_of, found)

    def replay(self, number: int) -> Replay:
        """Compute a stored decision again from its snapshot; nothing is stored.

        Args:
            number: That of a stored decision.

        Raises:
            NotFoundError: There is no such decision.
        """
        return answers.replay_of(self._transport.post(*self._path("decisions", int(number), "replay")))

    def report(self, *, calibration: int | None = None) -> Report:
        """Show how a calibration stands: partitions, drift, discrepancies, the labels it lacks, and what to do next.

        Args:
            calibration: The number of a calibration; by default the current one.

        Raises:
            NotReadyError: There is no calibration yet.
        """
        found = self._transport.get(*self._path("report"), calibration=calibration)
        return Report(found["classifier"], found["calibration"], tuple(found["advice"]), found)

    def monitor(self) -> Monitor:
        """Show whether the promise still holds, by the random labels that came for points that were decided on.

        It may be looked at after every label: the chance of a false alarm is limited over all looks together.

        Raises:
            NotReadyError: There is no calibration yet.
        """
        return answers.monitor_of(self._transport.get(*self._path("monitor")))

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the alarms and notices of the monitor that stand.

        Raises:
            NotReadyError: There is no calibration yet.
        """
        return tuple(map(answers.alarm_of, self._transport.get(*self._path("alarms"))["alarms"]))

    def policy(self, *, calibration: int | None = None) -> Policy:
        """Return the certified policy of a calibration, or that none passed.

        Args:
            calibration: The number of a calibration; by default the current one.

        Raises:
            InvalidInputError: The calibration was asked for no certificate.
            NotFoundError: There is no such calibration.
            NotReadyError: There is no calibration yet.
        """
        return answers.policy_of(self._transport.get(*self._path("policy"), calibration=calibration))

    def _path(self, *segments: str | int) -> tuple[str | int, ...]:
        return "classifiers", self.name, *segments
