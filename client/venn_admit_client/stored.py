"""What is read of a classifier: its calibrations, its stored decisions, and how they stand."""

from collections.abc import Iterator, Mapping
from typing import Any

from .answers import alarm_of, certificate_of, monitor_of
from .errors import InvalidInputError
from .interface import ClassifierInterface
from .members import from_json
from .records.calibrations import CalibrationUse, ListedCalibration
from .records.certificates import CertificateLook, Policy
from .records.data import Registered
from .records.decisions import Replay, StoredDecision
from .records.reports import Alarm, Monitor, Report
from .records.reviews import Disagreement, ReviewQueue
from .reviews import Reviewer
from .transport import Transport


class StoredClassifier(ClassifierInterface):
    """A classifier that is stored, and what is read of it; `Classifier` adds what stores and decides."""

    def __init__(self, transport: Transport, answer: Mapping[str, Any], name: str | None = None) -> None:
        """Use a transport, and what the service says of the classifier; name: what requests call it, if not that."""
        super().__init__(from_json(Registered, answer if name is None else {**answer, "classifier": name}))
        self._transport = transport

    def training_waiting(self) -> int:
        waiting: int = self._transport.get(*self._path())["training_waiting"]
        return waiting

    def calibrations(self) -> Iterator[ListedCalibration]:
        """Return the stored calibrations, the newest first; pages are asked for as they are needed."""
        return (from_json(ListedCalibration, one) for one in self._transport.pages(*self._path("calibrations")))

    def uses(self) -> tuple[CalibrationUse, ...]:
        """Return which calibrations were in use last, the newest first."""
        found = self._transport.get(*self._path("calibrations"))["uses"]
        return tuple(from_json(CalibrationUse, one) for one in found)

    def certificates(self) -> tuple[CertificateLook, ...]:
        """Return every certificate that looked at the held-out labels, the newest first.

        The first says with which confidence all of them hold together, whatever was chosen among them.
        """
        found = self._transport.get(*self._path("calibrations"))["certificates"]
        return tuple(from_json(CertificateLook, one) for one in found)

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
        return (from_json(StoredDecision, one) for one in found)

    def replay(self, number: int) -> Replay:
        """Compute a stored decision again from its snapshot; nothing is stored.

        Args:
            number: That of a stored decision.

        Raises:
            NotFoundError: There is no such decision.
        """
        found = self._transport.post(*self._path("decisions", int(number), "replay"))
        return from_json(Replay, found, document=found)

    def report(self, *, calibration: int | None = None) -> Report:
        found = self._transport.get(*self._path("report"), calibration=calibration)
        return from_json(Report, found, document=found)

    def monitor(self) -> Monitor:
        return monitor_of(Monitor, self._transport.get(*self._path("monitor")))

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the alarms and notices of the monitor that stand.

        Raises:
            NotReadyError: There is no calibration yet.
        """
        return tuple(map(alarm_of, self._transport.get(*self._path("alarms"))["alarms"]))

    def policy(self, *, calibration: int | None = None) -> Policy:
        """Return the certified policy of a calibration, or that none passed.

        Args:
            calibration: The number of a calibration; by default the one in use.

        Raises:
            InvalidInputError: The calibration was asked for no certificate.
            NotFoundError: There is no such calibration.
            NotReadyError: There is no calibration yet.
        """
        found = self._transport.get(*self._path("policy"), calibration=calibration)
        if "certified" not in found:
            raise InvalidInputError(
                f"calibration {found['calibration']} of {self.name!r} was asked for no certificate but for the average "
                "promise: its thresholds are `thresholds` of what `calibrate` returns"
            )
        return certificate_of(Policy, found, classifier=found["classifier"], calibration=found["calibration"])

    def reviewer(self, name: str) -> Reviewer:
        return Reviewer(self._transport, self.name, name)

    def review_queue(self) -> ReviewQueue:
        return from_json(ReviewQueue, self._transport.get(*self._path("review")))

    def disagreements(self) -> tuple[Disagreement, ...]:
        found = self._transport.get(*self._path("review", "disagreements"))["disagreements"]
        return tuple(from_json(Disagreement, one) for one in found)

    def _path(self, *segments: str | int) -> tuple[str | int, ...]:
        return "classifiers", self.name, *segments
