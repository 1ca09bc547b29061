"""A classifier of the service: storing its data, calibrating, and deciding on its predictions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from . import answers
from .bodies import MOST_LABELS, MOST_ROWS
from .errors import InvalidInputError
from .given import attributes_by_name, listed_ids
from .inputs import as_rows, bodies, floats, labels_of, texts
from .interface import Progress, Rows
from .jobs import await_job, check_out, decisions_of
from .members import from_json
from .records.calibrations import Calibration, Fit, PutInUse
from .records.data import Audits, Forgetting, Ingestion, Labelling
from .records.decisions import Decision
from .results import Decisions
from .settings import settings_json
from .stored import StoredClassifier
from .tables import Body, arrow, exemplar_body, label_body


class Classifier(StoredClassifier):
    """A classifier that is stored. It is made by `Connection.create` or `Connection.classifier`.

    Data are NumPy arrays, tensors or lists: `vectors` (n, D) and `logits` (n, C) of finite numbers, of which float32 is
    sent, with `labels`, `ids` and so on of n values each. They may be of any length, and are sent in blocks of 1,000,
    labels of 5,000. If a block is refused, the ones before it are stored: correct the data, and send all of them again.

    Or `data` is the path of a .parquet file or of an Arrow stream, .arrows, a pyarrow Table or RecordBatchReader, or a
    pandas or polars DataFrame, with the columns `vector`, `logits`, and optionally `label`, `external_id`,
    `document_id`, `attributes` and any others. It is sent in one request, however large, and stored as a whole or not
    at all. Labels may be in an .arrows file too. Tables need pyarrow, which is the extra `arrow` of this distribution;
    so does `score`.

    `progress` is called with the rows that are done and all rows: after each block, at the end of a table or file that
    is sent, or while workers of the service search and decide. `neighbours` is how many of the nearest training
    exemplars a decision names: all K by default, none if there are many points.

    What reads needs a key of the scope `read`; `decide` and `score` need `score`, `forget` needs `admin`, and all else
    needs `write`. Without it, AccessError is raised.

    One made by NAME@NUMBER stays with that generation; one made by NAME is always the generation in use.
    """

    def _ingest(self, rows: Rows, *, progress: Progress | None, **how: Any) -> Ingestion:
        columns, rest = self._columns(rows), how | _stated(rows)
        if rows.data is not None:
            with exemplar_body(rows.data, columns, rows.attributes) as body:
                return answers.stored_of(Ingestion, [self._uploaded("exemplars", body, rest, progress)])
        if rows.logits is None or rows.labels is None:
            raise InvalidInputError("expected data, or logits and labels, and vectors unless there are none")
        given = as_rows(columns, rows.attributes)
        return answers.stored_of(Ingestion, self._sent("exemplars", "exemplars", given, rest, MOST_ROWS, progress))

    def _label(self, labels: Any, *, progress: Progress | None, **how: Any) -> Labelling:
        if isinstance(labels, Mapping):
            given = as_rows({"external_id": texts(list(labels)), "label": labels_of(list(labels.values()))})
            return answers.stored_of(Labelling, self._sent("labels", "labels", given, how, MOST_LABELS, progress))
        with label_body(labels) as body:
            return answers.stored_of(Labelling, [self._uploaded("labels", body, how, progress)])

    def audits(self) -> Audits:
        return from_json(Audits, self._transport.get(*self._path("audits")))

    def _audit(self, **how: Any) -> Audits:
        return from_json(Audits, self._transport.put(*self._path("audits"), body=how))

    def forget(
        self,
        ids: Collection[str] = (),
        *,
        documents: Collection[str] = (),
        missing_ok: bool = False,
        dry_run: bool = False,
    ) -> Forgetting:
        body = {
            "ids": listed_ids("ids", ids, InvalidInputError),
            "documents": listed_ids("documents", documents, InvalidInputError),
            "missing_ok": missing_ok,
            "dry_run": dry_run,
        }
        return from_json(Forgetting, self._transport.post(*self._path("exemplars", "forget"), body=body))

    def fit(self, *, progress: Progress | None = None) -> Fit:
        job = self._transport.post(*self._path("fit"))["job"]
        await_job(self._transport, self.name, job, progress)
        return from_json(Fit, self._transport.get(*self._path("jobs", job, "fit")))

    def _calibrate(self, method: str, given: Mapping[str, Any], *, dry_run: bool) -> Calibration:
        body = {"method": method, "dry_run": dry_run, **settings_json(given)}
        return answers.calibration_of(self._transport.post(*self._path("calibrations"), body=body))

    def recalibrate(self) -> list[int]:
        served = self._transport.post(*self._path("recalibrate"))["recalibrations"]
        return [one["calibration"] for one in served if one["calibration"] is not None]

    def use(self, calibration: int, *, reason: str | None = None) -> PutInUse:
        body = {"calibration": calibration, "reason": reason}
        return from_json(PutInUse, self._transport.put(*self._path("calibration"), body=body))

    def _decide(self, vector: Any, logits: Any, attributes: Mapping[str, Any], **how: Any) -> Decision:
        one, own = floats(vector, "vector", self.dimension, ndim=1), floats(logits, "logits", len(self.classes), ndim=1)
        point = {"vector": None if one is None else one[None], "logits": None if own is None else own[None]}
        columns = {name: [value] for name, value in attributes_by_name(attributes, InvalidInputError).items()}
        return next(self._decided(point, columns, how))

    def decide_many(
        self,
        vectors: Any = None,
        *,
        logits: Any = None,
        ids: Any = None,
        attributes: Any = None,
        weighted: bool | None = None,
        require_full_match: bool = False,
        extractor: str | None = None,
        probabilities: bool | None = None,
        neighbours: int = 0,
        progress: Progress | None = None,
    ) -> Decisions:
        """Decide on any number of predictions at once, by the calibration in use; nothing is stored.

        All points of a block of 1,000 are decided on by the same calibration.

        Args:
            vectors: (n, D) floats; None if the classifier has logits only.
            logits: (n, C) floats; as in `decide`.
            ids: n texts or integers, what the decisions call the points.
            attributes: Columns of n values each; a certificate for groups decides by some of them.
            weighted: As in `decide`.
            require_full_match: As in `decide`.
            extractor: As in `decide`.
            probabilities: As in `ingest`.
            neighbours: How many of the nearest training exemplars each decision names; none by default.
            progress: Is called after each block.

        Raises:
            InvalidInputError: A row is invalid.
            ConflictError: As in `decide`.
            NotReadyError: There is no calibration yet.
        """
        columns = {
            "external_id": texts(ids),
            "vector": floats(vectors, "vectors", self.dimension),
            "logits": floats(logits, "logits", len(self.classes)),
        }
        how = {
            "weighted": weighted,
            "require_full_match": require_full_match,
            "extractor": extractor,
            "probabilities": probabilities,
            "neighbours": neighbours,
        }
        return Decisions(tuple(self._decided(columns, attributes, how, progress)))

    def _decided(
        self, columns: Mapping[str, Any], attributes: Any, rest: Mapping[str, Any], progress: Progress | None = None
    ) -> Iterator[Decision]:
        for answer in self._sent("decide", "points", as_rows(columns, attributes), rest, MOST_ROWS, progress):
            yield from map(answers.decision_of, answer["decisions"])

    def _score(self, rows: Rows, *, out: Path | None, progress: Progress | None, **how: Any) -> Any:
        arrow()
        place = check_out(out, rows.data)
        with exemplar_body(rows.data, self._columns(rows), rows.attributes) as (file, kind):
            job = self._transport.upload(*self._path("jobs"), file=file, kind=kind, **how, **_stated(rows))["job"]
        await_job(self._transport, self.name, job, progress)
        return decisions_of(self._transport, self.name, job, place)

    def scores(self, job: int, *, out: str | PathLike[str] | None = None) -> Any:
        """Return the decisions of a job that is done, as `score` does.

        Args:
            job: Its number.
            out: As in `score`.

        Raises:
            InvalidInputError: The job decides on nothing.
            NotFoundError: There is no such job.
            NotReadyError: It is not done.
        """
        arrow()
        return decisions_of(self._transport, self.name, int(job), check_out(out))

    def _columns(self, rows: Rows) -> dict[str, Any]:
        """Return arrays and lists by the names that their columns have."""
        return {
            "external_id": texts(rows.ids),
            "document_id": texts(rows.documents, "documents"),
            "vector": floats(rows.vectors, "vectors", self.dimension),
            "logits": floats(rows.logits, "logits", len(self.classes)),
            "label": labels_of(rows.labels),
        }

    def _uploaded(self, route: str, body: Body, rest: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
        """Send a file; the answer."""
        file, kind = body
        taken: dict[str, Any] = self._transport.upload(*self._path(route, "file"), file=file, kind=kind, **rest)
        if progress is not None:
            progress(taken["rows"], taken["rows"])
        return taken

    def _sent(
        self,
        route: str,
        member: str,
        given: Sequence[Mapping[str, Any]],
        rest: Mapping[str, Any],
        most_rows: int,
        progress: Progress | None,
    ) -> Iterator[dict[str, Any]]:
        """Send rows in blocks; the answers, one after another."""
        if not given:
            raise InvalidInputError(f"{member}: expected at least one row, got none")
        done = 0
        for count, body in bodies(member, given, rest, most_rows=most_rows):
            answer = self._transport.post(*self._path(route), body=body)
            done += count
            if progress is not None:
                progress(done, len(given))
            yield answer


def _stated(rows: Rows) -> dict[str, Any]:
    return {"source": rows.source, "extractor": rows.extractor, "probabilities": rows.probabilities}
