"""A classifier of the service: storing its data, calibrating, and deciding on its predictions."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
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
from .records import Fit, Forgetting, Ingestion, Labelling
from .results import Calibration, Decision, Decisions
from .stored import StoredClassifier
from .tables import arrow, exemplar_body, label_body

# What one request takes.
MOST_ROWS = 1000
MOST_LABELS = 5000


class Classifier(StoredClassifier):
    """A classifier that is stored. It is made by `Connection.create` or `Connection.classifier`.

    Data are NumPy arrays, tensors or lists: `vectors` (n, D) and `logits` (n, C) of finite numbers, of which float32 is
    sent, with `labels`, `ids` and so on of n values each. They may be of any length, and are sent in blocks; `progress`
    is called after each block with the rows that are done and all rows.

    Where `data` is taken, it is the path of a .parquet file or of an Arrow stream, .arrows, a pyarrow Table or
    RecordBatchReader, or a pandas or polars DataFrame, with the columns `vector`, `logits`, and optionally `label`,
    `external_id`, `document_id`, `attributes` and any others. It is sent in one request, however large. Tables need
    pyarrow, which is the extra `arrow` of this distribution.

    `extractor` states the version of what the vectors come from, if a file or table does not do that in its metadata.
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
        attributes: Mapping[str, Any] | None = None,
        source: str | None = None,
        extractor: str | None = None,
        progress: Progress | None = None,
    ) -> Ingestion:
        """Store labelled exemplars; the key needs the scope `write`. Storing them again is a no-op.

        If `data` are given, all exemplars are stored, or none. For arrays this holds for each block: if one is refused,
        the ones before it are stored, so correct the data and send all of them again.

        Args:
            data: A file or table, as the class describes it.
            split: `train` for what the network was trained on; `held-out` for labelled data that it has not seen,
                a random sample of the traffic, which is divided by a hash; or `knn`, `mc`, `vp` for data that were
                divided before.
            vectors: (n, D) floats, the network's last hidden layer, r; None if the classifier has logits only.
            logits: (n, C) floats, f(x).
            labels: n class numbers or class names.
            ids: n texts or integers; without them, each exemplar gets one that follows from its content.
            documents: n texts or integers, None for an exemplar of no document; exemplars of one document stay in one
                split.
            attributes: Columns of n values each, kept with the exemplars and shown with decisions.
            source: A name to be recorded with them.
            extractor: The version of what the vectors come from, if the data do not state it; required if one was
                stated for the classifier.
            progress: Is called after each block; of `data`, at the end alone.

        Raises:
            InvalidInputError: A row is invalid; the message names it.
            ConflictError: A row contradicts what is stored, or the data come from another extractor.
        """
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
                )
            if progress is not None:
                progress(taken["rows"], taken["rows"])
            return answers.stored_of(Ingestion, [taken])
        if logits is None or labels is None:
            raise InvalidInputError("expected data, or logits and labels, and vectors unless there are none")
        rest = {"split": split, "source": source, "extractor": extractor}
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
        """Record labels that arrived for stored exemplars; the key needs the scope `write`.

        `recalibrate` takes them up. All labels of a table are recorded, or none; for a mapping this holds for each
        block of 5,000.

        Args:
            labels: A mapping of ids to class numbers or names; or a table with the columns `external_id`, `label` and
                optionally `selection`, as the path of a .csv, .parquet or .arrows file, a pyarrow Table or a DataFrame.
            selection: How the rows were chosen: `random` ones calibrate, `selected` ones, chosen by somebody or by a
                rule, never do.
            retract: Whether None as a label takes the stored one back.
            join_train: Whether the exemplars, whose labels are selected, train the KNN.
            source: A name to be recorded with them.
            progress: Is called after each block; of a table, at the end alone.

        Raises:
            InvalidInputError: A row is invalid.
            NotFoundError: An id is not stored.
            ConflictError: An exemplar calibrates and would train.
        """
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
        ids: Sequence[str] = (),
        *,
        documents: Sequence[str] = (),
        missing_ok: bool = False,
        dry_run: bool = False,
    ) -> Forgetting:
        """Remove all that is stored of exemplars, in every generation, for good; again, it changes nothing.

        The key needs the scope `admin`. A tombstone stays, by which an id that comes back is refused. `recalibrate`
        afterwards if the result says so.

        Args:
            ids: Ids of exemplars.
            documents: Ids of documents, all of whose exemplars are meant.
            missing_ok: Whether unknown ids are left out; otherwise nothing is removed if there is one.
            dry_run: Whether to count only what would be removed.

        Raises:
            InvalidInputError: No id is given, or too many.
            NotFoundError: An id is unknown.
            ConflictError: A job of the classifier is running.
            AccessError: The key does not allow it.
        """
        body = {
            "ids": [str(one) for one in ids],
            "documents": [str(one) for one in documents],
            "missing_ok": missing_ok,
            "dry_run": dry_run,
        }
        answer = self._transport.post(*self._path("exemplars", "forget"), body=body)
        return from_json(Forgetting, answer)

    def fit(self, *, progress: Progress | None = None) -> Fit:
        """Fit the approximation of the network by its nearest training exemplars, and the localizer.

        The key needs the scope `write`. Workers of the service fit; this waits for them.

        Args:
            progress: Is called with the rows that are done and all rows, while they search neighbours.

        Raises:
            NotReadyError: Data are missing.
            JobError: No worker is up, or the fit failed.
        """
        job = self._transport.post(*self._path("fit"))["job"]
        await_job(self._transport, self.name, job, progress)
        return from_json(Fit, self._transport.get(*self._path("jobs", job, "fit")))

    def calibrate(
        self,
        *,
        method: str = "venn-admit",
        alpha: Decimal | str | float = "0.1",
        thresholds: Sequence[Decimal | str | float] | None = None,
        q_bins: Sequence[int] | None = None,
        delta: float | None = None,
        kappa: int | None = None,
        score: str | None = None,
        certify: Sequence[str] | str | None = None,
        confidence: Decimal | str | float | None = None,
        test: str | None = None,
    ) -> Calibration:
        """Calibrate on the held-out data, and make the result what new decisions are made by.

        The key needs the scope `write`. The arguments are those of `venn_admit.Classifier.calibrate`.

        Args:
            method: `venn-admit` or `venn-abers`.
            alpha: Error level in (0, 1), an exact decimal. A float stands for the decimal that it prints as.
            thresholds: Least lower probability for each predicted class, in the order of the classes; each at least 1 -
                alpha, which is the default.
            q_bins: Lower edges of the bins of q, the first of them 0; by default one bin for each q; for Venn-Abers,
                one bin.
            delta: Venn-ADMIT only: band radius in standard deviations of d; 1 by default; inf for bands that depend on
                q only.
            kappa: Venn-ADMIT only: least number of points of each class in a band; 1000 by default, unless that leaves
                nearly nothing to admit; then nothing is stored, and the answer says what other settings leave.
            score: Venn-Abers only: what ranks predictions: network, reliability or auto; auto by default: whichever
                admits more of split mc.
            certify: Venn-Abers only: classes for which thresholds are certified by a test on split vp: predicted, true
                or both; if no thresholds pass the test, everything is rejected.
            confidence: Venn-Abers only: confidence of the certificate in (0, 1), an exact decimal; 0.95 by default.
            test: Venn-Abers only: how the certificate tests documents of several points: finite-sample or asymptotic;
                finite-sample by default; asymptotic passes with fewer documents and is valid for very many only.

        Raises:
            InvalidInputError: A setting is out of range, or the method has no such setting.
            NotReadyError: Data or the fit are missing, or the default kappa leaves nearly nothing to admit.
            JobError: Points have to be approximated first, and no worker did.
        """
        body = {
            "method": method,
            "alpha": str(alpha),
            "thresholds": None if thresholds is None else [str(one) for one in thresholds],
            "q_bins": None if q_bins is None else [_whole(one) for one in q_bins],
            "delta": None if delta is None else float(delta) if isfinite(delta) else str(float(delta)),
            "kappa": None if kappa is None else _whole(kappa),
            "score": score,
            "certify": certify.split(",") if isinstance(certify, str) else certify and list(certify),
            "confidence": None if confidence is None else str(confidence),
            "test": test,
        }
        made = self._transport.post(*self._path("calibrations"), body=body)
        shown = self._transport.get(*self._path("calibrations", made["calibration"]))
        return answers.calibration_of(made, shown)

    def recalibrate(self) -> list[int]:
        """Recalibrate if labels or data have arrived since, under every setting in use; the new calibrations' numbers.

        The key needs the scope `write`.

        Raises:
            NotReadyError: A setting cannot be recalibrated; the message says why.
            JobError: Points have to be approximated first, and no worker did.
        """
        served = self._transport.post(*self._path("recalibrate"))["recalibrations"]
        return [one["calibration"] for one in served if one["calibration"] is not None]

    def decide(
        self,
        vector: Any = None,
        *,
        logits: Any = None,
        weighted: bool | None = None,
        require_full_match: bool = False,
        extractor: str | None = None,
        neighbours: int | None = None,
    ) -> Decision:
        """Decide on one prediction at once, by the current calibration; nothing is stored.

        The key needs the scope `score`.

        Args:
            vector: (D,) floats; None if the classifier has logits only.
            logits: (C,) floats, the network's; a calibration by Venn-Abers needs them.
            weighted: Whether probabilities are weighted towards calibration points near to the point; by default they
                are for Venn-ADMIT, not for Venn-Abers.
            require_full_match: Whether predictions with q < K are rejected.
            extractor: The version of what the vector comes from; required if one was stated for the classifier.
            neighbours: How many of the nearest training exemplars the decision names; all K by default.

        Raises:
            InvalidInputError: The vector has another length, or holds what is not finite.
            ConflictError: The vector comes from another extractor, or the request has to state one.
            NotReadyError: There is no calibration yet.
        """
        one, own = floats(vector, "vector", self.dimension, ndim=1), floats(logits, "logits", len(self.classes), ndim=1)
        point = {"vector": None if one is None else one[None], "logits": None if own is None else own[None]}
        rest = {"weighted": weighted, "require_full_match": require_full_match, "extractor": extractor}
        return next(self._decided(point, rest | {"neighbours": neighbours}))

    def decide_many(
        self,
        vectors: Any = None,
        *,
        logits: Any = None,
        ids: Any = None,
        weighted: bool | None = None,
        require_full_match: bool = False,
        extractor: str | None = None,
        neighbours: int = 0,
        progress: Progress | None = None,
    ) -> Decisions:
        """Decide on any number of predictions at once, by the current calibration; nothing is stored.

        All points of a block of 1,000 are decided on by the same calibration.

        Args:
            vectors: (n, D) floats; None if the classifier has logits only.
            logits: (n, C) floats; as in `decide`.
            ids: n texts or integers, what the decisions call the points.
            weighted: As in `decide`.
            require_full_match: As in `decide`.
            extractor: As in `decide`.
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
        rest = {"weighted": weighted, "require_full_match": require_full_match, "extractor": extractor}
        return Decisions(tuple(self._decided(columns, rest | {"neighbours": neighbours}, progress)))

    def _decided(
        self, columns: Mapping[str, Any], rest: Mapping[str, Any], progress: Progress | None = None
    ) -> Iterator[Decision]:
        for answer in self._sent("decide", "points", rows(columns), rest, MOST_ROWS, progress):
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
        attributes: Mapping[str, Any] | None = None,
        source: str | None = None,
        extractor: str | None = None,
        out: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """Decide on each of many predictions, and store the decisions.

        The key needs the scope `score`. The predictions are sent in one request, workers of the service decide, and
        this waits for them. It needs pyarrow.

        Args:
            data: A file or table, as the class describes it.
            weighted: As in `decide`.
            require_full_match: As in `decide`.
            calibration: The number of a calibration; by default the current one.
            vectors: As in `ingest`.
            logits: As in `ingest`.
            labels: As in `ingest`; they serve evaluation alone.
            ids: As in `ingest`.
            documents: As in `ingest`.
            attributes: As in `ingest`.
            source: As in `ingest`.
            extractor: As in `ingest`.
            out: A .parquet file to write the decisions to as well.
            progress: Is called with the rows that are done and all rows, while workers decide.

        Returns:
            A table of pyarrow with a row for each exemplar, in their order. `decided_class` is the admitted class, or
            null if the prediction is rejected; `reason` says why. `lower` and `upper` bound the probability that
            `predicted_class` is right.

        Raises:
            InvalidInputError: A row is invalid.
            ConflictError: The data come from another extractor.
            NotReadyError: There is no calibration yet.
            JobError: The job failed or was cancelled.
        """
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
