"""A classifier of the service: storing its data, calibrating, and deciding on its predictions."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import isfinite
from operator import index
from os import PathLike
from typing import Any

from . import answers
from .errors import InvalidInputError
from .inputs import bodies, floats, rows, texts
from .inputs import column as column_of
from .jobs import Progress, await_job, check_out, decisions_of
from .members import from_json
from .records import Calibration, Decision, Fit, Forgetting, Ingestion, Labelling, PutInUse
from .results import Decisions
from .stored import StoredClassifier
from .tables import arrow, exemplar_body, label_body

# What one request takes.
MOST_ROWS = 1000
MOST_LABELS = 5000


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

    def ingest(
        self,
        data: Any = None,
        *,
        split: str = "held-out",
        vectors: Any = None,
        logits: Any = None,
        labels: Any = None,
        ids: Any = None,
        documents: Any = None,
        attributes: Any = None,
        source: str | None = None,
        extractor: str | None = None,
        probabilities: bool | None = None,
        allow_training_rows: bool = False,
        progress: Progress | None = None,
    ) -> Ingestion:
        columns = self._columns(vectors, logits, labels, ids, documents)
        if data is not None:
            with exemplar_body(data, columns, attributes) as (file, kind):
                taken = self._transport.upload(
                    *self._path("exemplars", "file"),
                    file=file,
                    kind=kind,
                    split=split,
                    source=source,
                    extractor=extractor,
                    probabilities=probabilities,
                    allow_training_rows=allow_training_rows,
                )
            if progress is not None:
                progress(taken["rows"], taken["rows"])
            return answers.stored_of(Ingestion, [taken])
        if logits is None or labels is None:
            raise InvalidInputError("expected data, or logits and labels, and vectors unless there are none")
        rest = {
            "split": split,
            "source": source,
            "extractor": extractor,
            "probabilities": probabilities,
            "allow_training_rows": allow_training_rows,
        }
        sent = self._sent("exemplars", "exemplars", rows(columns, attributes), rest, MOST_ROWS, progress)
        return answers.stored_of(Ingestion, sent)

    def label(
        self,
        labels: Any,
        *,
        selection: str = "random",
        retract: bool = False,
        join_train: bool = False,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Labelling:
        rest = {"selection": selection, "retract": retract, "join_train": join_train, "source": source}
        if isinstance(labels, Mapping):
            given = rows({"external_id": texts(list(labels)), "label": column_of(list(labels.values()))})
            return answers.stored_of(Labelling, self._sent("labels", "labels", given, rest, MOST_LABELS, progress))
        with label_body(labels) as (file, kind):
            taken = self._transport.upload(*self._path("labels", "file"), file=file, kind=kind, **rest)
        if progress is not None:
            progress(taken["rows"], taken["rows"])
        return answers.stored_of(Labelling, [taken])

    def forget(
        self,
        ids: Collection[str] = (),
        *,
        documents: Collection[str] = (),
        missing_ok: bool = False,
        dry_run: bool = False,
    ) -> Forgetting:
        body = {
            "ids": [str(one) for one in ids],
            "documents": [str(one) for one in documents],
            "missing_ok": missing_ok,
            "dry_run": dry_run,
        }
        return from_json(Forgetting, self._transport.post(*self._path("exemplars", "forget"), body=body))

    def fit(self, *, progress: Progress | None = None) -> Fit:
        job = self._transport.post(*self._path("fit"))["job"]
        await_job(self._transport, self.name, job, progress)
        return from_json(Fit, self._transport.get(*self._path("jobs", job, "fit")))

    def _calibrate(self, method: str, given: Mapping[str, Any]) -> Calibration:
        body = {name: None if value is None else _SENT.get(name, str)(value) for name, value in given.items()}
        made = self._transport.post(*self._path("calibrations"), body={"method": method, **body})
        shown = self._transport.get(*self._path("calibrations", made["calibration"]))
        return answers.calibration_of(made, shown["asked"])

    def recalibrate(self) -> list[int]:
        served = self._transport.post(*self._path("recalibrate"))["recalibrations"]
        return [one["calibration"] for one in served if one["calibration"] is not None]

    def use(self, calibration: int, *, reason: str | None = None) -> PutInUse:
        body = {"calibration": calibration, "reason": reason}
        return from_json(PutInUse, self._transport.put(*self._path("calibration"), body=body))

    def decide(
        self,
        vector: Any = None,
        *,
        logits: Any = None,
        attributes: Mapping[str, Any] | None = None,
        weighted: bool | None = None,
        require_full_match: bool = False,
        extractor: str | None = None,
        probabilities: bool | None = None,
        neighbours: int | None = None,
    ) -> Decision:
        one, own = floats(vector, "vector", self.dimension, ndim=1), floats(logits, "logits", len(self.classes), ndim=1)
        point = {"vector": None if one is None else one[None], "logits": None if own is None else own[None]}
        rest = {
            "weighted": weighted,
            "require_full_match": require_full_match,
            "extractor": extractor,
            "probabilities": probabilities,
        }
        columns = {name: [value] for name, value in (attributes or {}).items()}
        return next(self._decided(point, columns, rest | {"neighbours": neighbours}))

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
        """Decide on any number of predictions at once, by the current calibration; nothing is stored.

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
        rest = {
            "weighted": weighted,
            "require_full_match": require_full_match,
            "extractor": extractor,
            "probabilities": probabilities,
        }
        return Decisions(tuple(self._decided(columns, attributes, rest | {"neighbours": neighbours}, progress)))

    def _decided(
        self, columns: Mapping[str, Any], attributes: Any, rest: Mapping[str, Any], progress: Progress | None = None
    ) -> Iterator[Decision]:
        for answer in self._sent("decide", "points", rows(columns, attributes), rest, MOST_ROWS, progress):
            yield from map(answers.decision_of, answer["decisions"])

    def score(
        self,
        data: Any = None,
        *,
        weighted: bool | None = None,
        require_full_match: bool = False,
        calibration: int | None = None,
        vectors: Any = None,
        logits: Any = None,
        labels: Any = None,
        ids: Any = None,
        documents: Any = None,
        attributes: Any = None,
        source: str | None = None,
        extractor: str | None = None,
        probabilities: bool | None = None,
        out: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Any:
        arrow()
        place = check_out(out)
        with exemplar_body(data, self._columns(vectors, logits, labels, ids, documents), attributes) as (file, kind):
            submitted = self._transport.upload(
                *self._path("jobs"),
                file=file,
                kind=kind,
                weighted=weighted,
                require_full_match=require_full_match,
                calibration=calibration,
                source=source,
                extractor=extractor,
                probabilities=probabilities,
            )
        await_job(self._transport, self.name, submitted["job"], progress)
        return decisions_of(self._transport, self.name, submitted["job"], place)

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

    def _columns(self, vectors: Any, logits: Any, labels: Any, ids: Any, documents: Any) -> dict[str, Any]:
        """Return arrays and lists by the names that their columns have."""
        return {
            "external_id": texts(ids),
            "document_id": texts(documents),
            "vector": floats(vectors, "vectors", self.dimension),
            "logits": floats(logits, "logits", len(self.classes)),
            "label": column_of(labels),
        }

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


def _whole(value: Any) -> Any:
    """Return a whole number of whatever type as JSON has it; anything else as it is, which the service refuses."""
    return value if isinstance(value, float) else index(value)


def _number(value: Any) -> float | str:
    return float(value) if isfinite(value) else str(float(value))


# How a request has the settings of a calibration that are no texts.
_SENT: Mapping[str, Callable[[Any], Any]] = {
    "thresholds": lambda given: list(map(str, given)),
    "q_bins": lambda given: list(map(_whole, given)),
    "delta": _number,
    "kappa": _whole,
    "certify": lambda given: given.split(",") if isinstance(given, str) else list(given),
}
