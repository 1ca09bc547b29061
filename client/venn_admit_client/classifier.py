"""A classifier of the service: its data, its calibrations, and the decisions on its predictions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from . import answers
from .errors import InvalidInputError
from .inputs import bodies, floats, rows, texts
from .inputs import column as column_of
from .results import (
    Calibration,
    Decision,
    Decisions,
    Ingestion,
    Labelling,
    ListedCalibration,
    Replay,
    Report,
    StoredDecision,
)
from .transport import Transport

# What one request takes.
MOST_ROWS = 1000
MOST_LABELS = 5000

Progress = Callable[[int, int], object]


class Classifier:
    """A classifier that is stored. It is made by `Connection.create` or `Connection.classifier`.

    Data are NumPy arrays, tensors or lists: `vectors` (n, D) and `logits` (n, C) of finite numbers, of which float32 is
    sent, with `labels`, `ids` and so on of n values each. They may be of any length, and are sent in blocks; `progress`
    is called after each block with the rows that are done and all rows.
    """

    def __init__(self, transport: Transport, name: str, classes: tuple[str, ...], dimension: int | None) -> None:
        """Use a transport, and what the service says of the classifier."""
        self._transport = transport
        self._name, self._classes, self._dimension = name, classes, dimension

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

    def ingest(
        self,
        *,
        logits: Any,
        labels: Any,
        vectors: Any = None,
        split: str = "held-out",
        ids: Any = None,
        documents: Any = None,
        attributes: Mapping[str, Any] | None = None,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Ingestion:
        """Store labelled exemplars; the key needs the scope `write`. Storing them again is a no-op.

        Of each block all exemplars are stored, or none. If a block is refused, the ones before it are stored: correct
        the data and send all of them again.

        Args:
            logits: (n, C) floats, f(x).
            labels: n class numbers or class names.
            vectors: (n, D) floats, the network's last hidden layer, r; None if the classifier has logits only.
            split: `train` for what the network was trained on; `held-out` for labelled data that it has not seen,
                a random sample of the traffic, which is divided by a hash; or `knn`, `mc`, `vp` for data that were
                divided before.
            ids: n texts or integers; without them, each exemplar gets one that follows from its content.
            documents: n texts or integers, None for an exemplar of no document; exemplars of one document stay in one
                split.
            attributes: Columns of n values each, kept with the exemplars and shown with decisions.
            source: A name to be recorded with them.
            progress: Is called after each block.

        Raises:
            InvalidInputError: A row is not as it must be; the message names it.
            ConflictError: A row contradicts what is stored.
        """
        columns = {
            "external_id": texts(ids),
            "document_id": texts(documents),
            "vector": floats(vectors, "vectors", self.dimension),
            "logits": floats(logits, "logits", len(self.classes)),
            "label": column_of(labels),
        }
        rest = {"split": split, "source": source}
        sent = self._sent("exemplars", "exemplars", rows(columns, attributes), rest, MOST_ROWS, progress)
        return answers.ingestion_of(sent)

    def label(
        self,
        labels: Mapping[Any, Any],
        *,
        selection: str = "random",
        retract: bool = False,
        join_train: bool = False,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> Labelling:
        """Record labels that arrived for stored exemplars; the key needs the scope `write`.

        The next recalibration takes them up. Of each block of 5,000, all labels are recorded or none.

        Args:
            labels: Class numbers or names, by the ids of exemplars.
            selection: How the rows were chosen: `random` ones calibrate, `selected` ones, chosen by somebody or by a
                rule, never do.
            retract: Whether None as a label takes the stored one back.
            join_train: Whether the exemplars, whose labels are selected, train the KNN.
            source: A name to be recorded with them.
            progress: Is called after each block.

        Raises:
            InvalidInputError: A row is not as it must be.
            NotFoundError: An id is not stored.
            ConflictError: An exemplar calibrates and would train.
        """
        given = rows({"external_id": texts(list(labels)), "label": column_of(list(labels.values()))})
        rest = {"selection": selection, "retract": retract, "join_train": join_train, "source": source}
        return answers.labelling_of(self._sent("labels", "labels", given, rest, MOST_LABELS, progress))

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
            alpha: Error level in (0, 1). A float stands for the decimal that it prints as.
            thresholds: Least lower probability for each predicted class, at least 1 - alpha, which is the default.
            q_bins: Lower edges of the bins of q, the first of them 0.
            delta: Of venn-admit: the band radius in standard deviations of d, 1 by default; inf for bands of q alone.
            kappa: Of venn-admit: the least number of points of each class in a band; 1000 by default, unless that
                leaves nearly nothing to admit.
            score: Of venn-abers: what ranks predictions, `network`, `reliability` or `auto`, which is the default.
            certify: Of venn-abers: `predicted`, `true` or both.
            confidence: Of a certificate, in (0, 1); 0.95 by default.
            test: Of a certificate: `finite-sample`, the default, or `asymptotic`.

        Raises:
            InvalidInputError: A setting is out of range, or the method has no such setting.
            NotReadyError: Data or the fit are missing, or the default kappa leaves nearly nothing to admit.
            JobError: Points have to be approximated first, and no worker did.
        """
        body = {
            "method": method,
            "alpha": _decimal(alpha),
            "thresholds": None if thresholds is None else [_decimal(one) for one in thresholds],
            "q_bins": None if q_bins is None else [int(one) for one in q_bins],
            "delta": None if delta is None else "inf" if delta == float("inf") else float(delta),
            "kappa": kappa,
            "score": score,
            "certify": certify.split(",") if isinstance(certify, str) else certify and list(certify),
            "confidence": None if confidence is None else _decimal(confidence),
            "test": test,
        }
        made = self._transport.post(*self._path("calibrations"), body=body)
        shown = self._transport.get(*self._path("calibrations", made["calibration"]))
        return answers.calibration_of(made, shown)

    def calibrations(self) -> Iterator[ListedCalibration]:
        """Return the stored calibrations, the newest first; pages are asked for as they are needed."""
        return map(answers.listed_calibration_of, self._pages("calibrations"))

    def decide(
        self, vector: Any = None, *, logits: Any = None, weighted: bool | None = None, require_full_match: bool = False
    ) -> Decision:
        """Decide on one prediction at once, by the current calibration; nothing is stored.

        The key needs the scope `score`.

        Args:
            vector: (D,) floats; None if the classifier has logits only.
            logits: (C,) floats, the network's; a calibration by venn-abers needs them.
            weighted: Whether probabilities are weighted towards calibration points near to the point; by default they
                are for venn-admit, not for venn-abers.
            require_full_match: Whether predictions with q < K are rejected.

        Raises:
            InvalidInputError: The vector has another length, or holds what is not finite.
            NotReadyError: There is no calibration yet.
        """
        one, own = floats(vector, "vector", self.dimension, ndim=1), floats(logits, "logits", len(self.classes), ndim=1)
        decided = self.decide_many(
            None if one is None else one[None],
            logits=None if own is None else own[None],
            weighted=weighted,
            require_full_match=require_full_match,
        )
        return decided.decisions[0]

    def decide_many(
        self,
        vectors: Any = None,
        *,
        logits: Any = None,
        ids: Any = None,
        weighted: bool | None = None,
        require_full_match: bool = False,
        progress: Progress | None = None,
    ) -> Decisions:
        """Decide on any number of predictions at once, by the current calibration; nothing is stored.

        All points of a block of 1,000 are decided on by the same calibration.

        Args:
            vectors: (n, D) floats; None if the classifier has logits only.
            logits: (n, C) floats; as for `decide`.
            ids: n texts or integers, what the decisions call the points.
            weighted: As for `decide`.
            require_full_match: As for `decide`.
            progress: Is called after each block.

        Raises:
            InvalidInputError: A row is not as it must be.
            NotReadyError: There is no calibration yet.
        """
        columns = {
            "external_id": texts(ids),
            "vector": floats(vectors, "vectors", self.dimension),
            "logits": floats(logits, "logits", len(self.classes)),
        }
        rest = {"weighted": weighted, "require_full_match": require_full_match}
        sent = self._sent("decide", "points", rows(columns), rest, MOST_ROWS, progress)
        return Decisions(tuple(answers.decision_of(one) for answer in sent for one in answer["decisions"]))

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
        found = self._pages("decisions", calibration=calibration, external_id=id_, admitted=admitted)
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

    def _path(self, *segments: str | int) -> tuple[str | int, ...]:
        return "classifiers", self.name, *segments

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

    def _pages(self, what: str, **query: Any) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self._transport.get(*self._path(what), cursor=cursor, **query)
            yield from page[what]
            cursor = page["next_cursor"]
            if cursor is None:
                return


def _decimal(value: Decimal | str | float) -> str:
    """Return an exact decimal as the service reads it.

    >>> _decimal(0.1), _decimal("1e-2")
    ('0.1', '0.01')
    """
    try:
        return format(Decimal(str(value)), "f")
    except ArithmeticError as error:
        raise InvalidInputError(f"expected a decimal such as 0.1, got {value!r}") from error
