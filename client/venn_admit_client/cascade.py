"""A cascade of the service: its certificate, and what it serves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .cascade_interface import CascadeInterface
from .errors import InvalidInputError
from .inputs import floats
from .jobs import await_job
from .members import from_json
from .records.cascades import CascadeDecision, CascadeReport, Served
from .settings import settings_json
from .tables import arrow, exemplar_body
from .transport import Transport


class Cascade(CascadeInterface):
    """A cascade that is stored. It is made by `Connection.create_cascade` or `Connection.cascade`.

    Its key must be for all classifiers: to report, and to see what is served, of the scope `read`, to decide and score
    `score`, to calibrate `write`, and to delete `admin`. Data to score are tables and files as `Classifier.score` takes
    them.
    """

    def __init__(self, transport: Transport, found: CascadeReport) -> None:
        """Use a transport."""
        super().__init__(found)
        self._transport = transport

    def _calibrate(self, given: Mapping[str, Any], *, progress: Callable[[int, int], object] | None) -> CascadeReport:
        body = {name: value for name, value in settings_json(given).items() if value is not None}
        submitted = self._transport.post("cascades", self.name, "calibrations", body=body)
        await_job(self._transport, submitted["classifier"], submitted["job"], progress)
        return self.report()

    def report(self) -> CascadeReport:
        return from_json(CascadeReport, self._transport.get("cascades", self.name))

    def score(self, *data: Any, progress: Callable[[int, int], object] | None = None) -> Served:
        classifiers = [stage.classifier for stage in self._found.stages if stage.classifier is not None]
        if not 1 <= len(data) <= len(classifiers):
            raise InvalidInputError(f"expected data of the first 1 to {len(classifiers)} stages, got {len(data)}")
        arrow()
        jobs = []
        for name, one in zip(classifiers, data, strict=False):
            with exemplar_body(one, {}, None) as (file, kind):
                job = self._transport.upload("classifiers", name, "jobs", file=file, kind=kind)["job"]
            await_job(self._transport, name, job, progress)
            jobs.append(job)
        return self.served(jobs)

    def served(self, jobs: Sequence[int]) -> Served:
        body = {"jobs": list(jobs)}
        return from_json(Served, self._transport.post("cascades", self.name, "served", body=body))

    def _decide(self, stage: int, vector: Any, logits: Any, **stated: Any) -> CascadeDecision:
        one, own = floats(vector, "vector", None, ndim=1), floats(logits, "logits", len(self.classes), ndim=1)
        point = {"vector": None if one is None else one.tolist(), "logits": None if own is None else own.tolist()}
        body = {"stage": stage, "point": point, **stated}
        return from_json(CascadeDecision, self._transport.post("cascades", self.name, "decide", body=body))

    def delete(self) -> None:
        self._transport.delete("cascades", self.name)
