"""What a program does with classifiers: in its own process by `venn_admit`, and by this client over HTTP.

Signatures and their words stand here once. Both packages derive from these classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .cascade_interface import CascadeInterface
from .records.calibrations import Calibration, Fit, PutInUse
from .records.data import Audits, Deletion, Forgetting, Ingestion, Labelling, Registered
from .records.decisions import Decision
from .records.reports import Monitor, Report
from .records.reviews import Disagreement, ReviewQueue
from .reviewer_interface import ReviewerInterface

Progress = Callable[[int, int], object]
"""Is told the rows that are done, and all rows, 0 if their number is not known."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Exemplars as a program has them, by the names of `ingest`: `data`, or arrays and lists of n rows."""

    data: Any = None
    vectors: Any = None
    logits: Any = None
    labels: Any = None
    ids: Any = None
    documents: Any = None
    attributes: Any = None
    source: str | None = None
    extractor: str | None = None
    probabilities: bool | None = None


class ClassifierInterface(ABC):
    """A classifier that is stored. A method that both shells take arguments for is declared here, and done by each."""

    def __init__(self, registered: Registered) -> None:
        """Describe it as it was registered."""
        self._registered = registered

    def __repr__(self) -> str:
        size = "logits only" if self.dimension is None else f"D = {self.dimension}, K = {self._registered.neighbours}"
        return f"<Classifier {self.name!r}: {len(self.classes)} classes, {size}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._registered.name

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its C classes, in the order of the logits."""
        return self._registered.classes

    @property
    def dimension(self) -> int | None:
        """D, the length of a vector; None if it has logits only."""
        return self._registered.dimension

    @property
    def generation(self) -> int:
        """Its number among the generations of the classifier when it was looked up."""
        return self._registered.generation

    @property
    def extractor(self) -> str | None:
        """The version of the extractor that its vectors come from; None if it was not stated when it was looked up."""
        return self._registered.extractor

    @abstractmethod
    def training_waiting(self) -> int:
        """Return how many training exemplars wait for jobs that are running, and train afterwards.

        They wait for ten minutes at most. Until then, searches leave them out.
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
        """Store labelled exemplars: all of them, or none if one is refused. Storing them again is a no-op.

        Args:
            data: Exemplars in one of the forms that the class describes, unless they are arrays.
            split: `train` for what the network was trained on; `held-out` for labelled data that it has not seen,
                a random sample of the traffic, which is divided by a hash; or `knn`, `mc`, `vp` for data that were
                divided before.
            vectors: (n, D) floats, the network's last hidden layer, r; None if the classifier has logits only.
            logits: (n, C) floats, f(x).
            labels: n class numbers or class names.
            ids: n texts or integers; without them, each exemplar gets one that follows from its content.
            documents: n texts or integers, None for an exemplar of no document; exemplars of one document, such as the
                tokens of a sentence, stay in one split, and so do those with the same vector and logits.
            attributes: Columns of n values each, kept with the exemplars and shown with decisions.
            source: A name to be recorded with them.
            extractor: The version of what the vectors come from, if the data do not state it; required if one was
                stated for the classifier.
            probabilities: Whether what is given as logits are probabilities, whose logarithms are taken; False: they
                are logits, whatever they look like. By default, they are refused if every row lies in [0, 1] and sums
                to 1.
            allow_training_rows: Whether exemplars are held out that have the vector and logits, or the document, of one
                that trains.
            progress: Is called with the rows that are done and all rows, as they are done; the latter are 0 if their
                number is not known, as of a stream.

        Raises:
            InvalidInputError: A row is invalid; the message names it.
            ConflictError: A row contradicts what is stored, the data come from another extractor, or exemplars would be
                held out that train too.
        """
        rows = Rows(data, vectors, logits, labels, ids, documents, attributes, source, extractor, probabilities)
        return self._ingest(rows, split=split, allow_training_rows=allow_training_rows, progress=progress)

    @abstractmethod
    def _ingest(self, rows: Rows, *, split: str, progress: Progress | None, **how: Any) -> Ingestion:
        """Store rows; how: the other arguments by their names."""

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
        """Record labels that arrived for stored exemplars; `recalibrate` takes them up.

        Args:
            labels: A mapping of ids to class numbers or names; or a table with the columns `external_id`, `label` and
                optionally `selection`, as the path of a .csv or .parquet file, a pyarrow Table or a DataFrame.
            selection: How the rows were chosen: `random` ones calibrate, `review` ones of points that were drawn to be
                audited count by the probability, and some of them calibrate, `selected` ones, chosen by somebody or by
                a rule, never do either.
            retract: Whether a missing label takes the stored one back.
            join_train: Whether the exemplars, whose labels are selected, train the KNN.
            source: A name to be recorded with them.
            progress: As in `ingest`.

        Raises:
            InvalidInputError: A row is invalid.
            NotFoundError: An id is not stored.
            ConflictError: An exemplar calibrates and would train.
        """
        return self._label(
            labels, progress=progress, selection=selection, retract=retract, join_train=join_train, source=source
        )

    @abstractmethod
    def _label(self, labels: Any, *, progress: Progress | None, **how: Any) -> Labelling:
        """Record labels; how: the other arguments by their names."""

    @abstractmethod
    def audits(self) -> Audits:
        """Return by which rule points are drawn to be audited, and how many were so far."""

    def audit(self, rate: float | None, *, classes: Mapping[str, float] | None = None, rejected: float = 1.0) -> Audits:
        """State by which rule points are drawn to be audited that are first decided on from now on.

        A keyed hash of its id draws a point, so that nobody can foretell or choose it. `label` with the
        selection `review` then counts labels of drawn points by the probability.

        Args:
            rate: With which probability admitted points are drawn, in (0, 1]; None: nothing is drawn any more.
            classes: Rates of some predicted classes, by their names.
            rejected: With which probability rejected points are drawn, in [0, 1].

        Raises:
            InvalidInputError: A rate is out of range, or a class is unknown.
        """
        return self._audit(rate=rate, classes=dict(classes or {}), rejected=rejected)

    @abstractmethod
    def _audit(self, **how: Any) -> Audits:
        """State the rule; how: the arguments by their names."""

    @abstractmethod
    def forget(
        self,
        ids: Collection[str] = (),
        *,
        documents: Collection[str] = (),
        missing_ok: bool = False,
        dry_run: bool = False,
    ) -> Forgetting:
        """Remove all that is stored of exemplars, in every generation, for good; again, it changes nothing.

        A tombstone stays, by which an id that comes back is refused. `recalibrate` afterwards if the result says so.

        Args:
            ids: Ids of exemplars.
            documents: Ids of documents, all of whose exemplars are meant.
            missing_ok: Whether unknown ids are left out; otherwise nothing is removed if there is one.
            dry_run: Whether to count only what would be removed.

        Raises:
            InvalidInputError: No id is given, or too many.
            NotFoundError: An id is unknown.
            ConflictError: A job of the classifier that scores, fits or certifies a cascade is running.
        """

    @abstractmethod
    def fit(self, *, progress: Progress | None = None) -> Fit:
        """Fit the approximation of the network by its nearest training exemplars, and the localizer.

        Args:
            progress: As in `ingest`, for the points whose neighbours are searched.

        Raises:
            NotReadyError: Data are missing.
            JobError: No worker is up where one is needed, or the fit failed.
        """

    def calibrate(
        self,
        *,
        method: str = "venn-abers",
        alpha: Decimal | str | float = "0.1",
        thresholds: Sequence[Decimal | str | float] | None = None,
        q_bins: Sequence[int] | None = None,
        delta: float | None = None,
        kappa: int | None = None,
        score: str | None = None,
        certify: Sequence[str] | str | None = None,
        confidence: Decimal | str | float | None = None,
        test: str | None = None,
        promise: str | None = None,
        loss: Any = None,
        standing: bool | None = None,
        family: bool | None = None,
        class_shares: Sequence[Decimal | str | float] | None = None,
        class_shares_within: Decimal | str | float | None = None,
        class_shares_estimated: bool | None = None,
        undivided: bool | None = None,
        dry_run: bool = False,
    ) -> Calibration:
        """Calibrate on the held-out data, and make the result what new decisions are made by.

        If it admits less than half of what the calibration in use does, it is stored and not put in use, unless other
        settings were asked for and it admits something. The result says so; `use` puts it in use all the same.

        kappa and q_bins may be chosen by the labels of split mc, but never by those of split vp.

        Args:
            method: `venn-abers`, which decides on the network's own prediction, or `venn-admit`, the paper's, which
                decides on the KNN's prediction in bands of q and d.
            alpha: Error level in (0, 1), an exact decimal. A float stands for the decimal that it prints as.
            thresholds: Least lower probability for each predicted class, in the order of the classes; each at least 1 -
                alpha, which is the default.
            q_bins: Lower edges of the bins of q, the first of them 0; by default one bin for each q; for Venn-Abers,
                one bin.
            delta: Venn-ADMIT only: band radius in standard deviations of d; 1 by default; inf for bands that depend on
                q only.
            kappa: Venn-ADMIT only: least number of points of each class in a band; 1000 by default, unless that leaves
                nearly nothing to admit; then nothing is stored, and the answer says what other settings leave.
            score: Venn-Abers only: what ranks predictions: network, reliability or auto; auto by default: reliability
                if that clearly admits more of split knn, or with the pointwise promise of mc; otherwise network.
            certify: Venn-Abers only: what thresholds are certified for by tests on splits mc and vp: predicted or true
                classes, group:COLUMN for the values of an attribute, predicted*group:COLUMN, or several of these;
                promised then: with confidence 1 - eps (0.95 unless another is asked for) over the calibration labels,
                at least 1 - alpha are right among the admitted of each class asked for; if no thresholds pass,
                everything is rejected. The result says how many labels are lacking.
            confidence: Venn-Abers only: confidence of the certificate in (0, 1), an exact decimal; 0.95 by default.
            test: Venn-Abers only: how the certificate tests documents of several points: finite-sample or asymptotic;
                finite-sample by default; asymptotic passes with fewer documents and is valid for very many only.
            promise: Venn-Abers only: what is promised unless certify says it: strongest, average or pointwise;
                strongest by default: certified for predicted and true classes if the labels show it, otherwise for
                predicted classes alone; otherwise, or if that admits less than the softmax at 1 - alpha and than the
                average promise, the latter: over calibrations and batches, on average at most alpha are wrong among the
                admitted of each predicted class; with thresholds, pointwise by default.
            loss: Venn-Abers only: what errors cost: for each true class, a row with the loss of each predicted class, 0
                for itself; promised then: with confidence 1 - eps (0.95 unless another is asked for) over the
                calibration labels, the mean loss is at most alpha among the admitted of each class asked for; by
                default every error costs 1, and the mean loss is the share wrong.
            standing: Venn-Abers only: whether the certificate stands while labels arrive, for predicted classes unless
                others are asked for: recalibrating advances it; false by default; promised then: with confidence 1 -
                eps (0.95 unless another is asked for), whenever one looks, at least 1 - alpha are right among the
                admitted of each class asked for; calibrating again begins another one, with a smaller part of eps.
            family: Venn-Abers only: whether the confidence is that of the family: this certificate holds together with
                every one before it that looked at labels of the classifier, if none was tried because of what another
                showed; false by default; the k-th certificate then has 1 / (k + 1) of what those before it left of 1 -
                confidence.
            class_shares: Venn-Abers only: the share of each true class in traffic, if it has the classes in other
                shares than the calibration data, one for each class, in their order; promised then: with confidence 1 -
                eps (0.95 unless another is asked for) over the calibration labels, at least 1 - alpha are right among
                the admitted of each class asked for, in traffic that has the classes in the shares declared or
                estimated and points of each class like those of the calibration data; by default traffic is like the
                calibration data.
            class_shares_within: Venn-Abers only: by how much each of class_shares may be off; the promise holds for all
                shares that are as near; 0 by default.
            class_shares_estimated: Venn-Abers only: whether class_shares are estimated from recent traffic, which needs
                no labels, with how much each may be off; false by default; promised is the same then, for all shares
                that recent traffic may have; every calibration estimates them again.
            undivided: Venn-ADMIT only: whether all points of mc and vp calibrate sets and probabilities alike, so that
                nothing is owed to their division; false by default; decisions are plain then, and the width of bands
                comes from knn.
            dry_run: Whether to compute everything and store no calibration, so that the result has no number.

        Raises:
            InvalidInputError: A setting is out of range, or the method has no such setting.
            NotReadyError: Data or the fit are missing, as are two documents or a true class for a certificate; or the
                default kappa leaves nearly nothing to admit: the message proposes others. Nothing is stored then.
            JobError: Points have to be approximated first, and no worker did.
        """
        given = {name: value for name, value in locals().items() if name not in ("self", "method", "dry_run")}
        return self._calibrate(method, given, dry_run=dry_run)

    @abstractmethod
    def _calibrate(self, method: str, given: Mapping[str, Any], *, dry_run: bool) -> Calibration:
        """Calibrate; given: the settings by their names, None for the default."""

    @abstractmethod
    def recalibrate(self) -> list[int]:
        """Recalibrate under every setting that is not retired, if labels or data have arrived since.

        Returns:
            The numbers of the new calibrations; two of a setting if a newer chain waits beside the one in use.

        Raises:
            NotReadyError: A setting cannot be recalibrated; the message says why.
            JobError: Points have to be approximated first, and no worker did.
        """

    @abstractmethod
    def use(self, calibration: int, *, reason: str | None = None) -> PutInUse:
        """Put a stored calibration in use, whatever it admits; its setting is kept current from now on.

        Args:
            calibration: Its number. Using the one in use changes nothing.
            reason: Why, for the history of what was in use.

        Raises:
            NotFoundError: There is no such calibration.
            OutdatedError: Points of it were forgotten.
        """

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
        """Decide on each of many predictions, and store the decisions.

        Args:
            data: As in `ingest`.
            weighted: Whether probabilities are weighted towards calibration points near to the point, which rejects
                more of what is unlike the calibration data; by default they are for Venn-ADMIT, not for Venn-Abers.
                A calibration with a certificate or the average promise decides without weights only, and so does an
                undivided one.
            require_full_match: Whether predictions with q < K are rejected.
            calibration: The number of a calibration; by default the one in use.
            vectors: As in `ingest`.
            logits: As in `ingest`.
            labels: As in `ingest`; they serve evaluation alone.
            ids: As in `ingest`.
            documents: As in `ingest`.
            attributes: As in `ingest`.
            source: As in `ingest`.
            extractor: As in `ingest`.
            probabilities: As in `ingest`.
            out: A file to write the decisions to as well: .parquet or, except over HTTP, .csv.
            progress: As in `ingest`.

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
        rows = Rows(data, vectors, logits, labels, ids, documents, attributes, source, extractor, probabilities)
        return self._score(
            rows,
            out=None if out is None else Path(out),
            progress=progress,
            weighted=weighted,
            require_full_match=require_full_match,
            calibration=calibration,
        )

    @abstractmethod
    def _score(
        self, rows: Rows, *, out: Path | None, progress: Progress | None, calibration: int | None, **how: Any
    ) -> Any:
        """Decide on rows, and store the decisions; how: the other arguments by their names."""

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
        """Decide on one prediction at once, by the calibration in use; nothing is stored.

        Args:
            vector: (D,) floats; None if the classifier has logits only.
            logits: (C,) floats, the network's; a calibration by Venn-Abers needs them.
            attributes: What else is known of it, by name; a certificate for groups decides by some of them.
            weighted: As in `score`.
            require_full_match: As in `score`.
            extractor: The version of what the vector comes from. Over HTTP it is required if one was stated for the
                classifier; otherwise the vector is taken to come from that.
            probabilities: As in `ingest`.
            neighbours: How many of the nearest training exemplars the decision names; all K by default.

        Raises:
            InvalidInputError: The vector has another length, or holds what is not finite.
            ConflictError: The vector comes from another extractor, or the request has to state one.
            NotReadyError: There is no calibration yet.
        """
        return self._decide(
            vector,
            logits,
            attributes or {},
            extractor=extractor,
            probabilities=probabilities,
            weighted=weighted,
            require_full_match=require_full_match,
            neighbours=neighbours,
        )

    @abstractmethod
    def _decide(
        self,
        vector: Any,
        logits: Any,
        attributes: Mapping[str, Any],
        *,
        extractor: str | None,
        probabilities: bool | None,
        **how: Any,
    ) -> Decision:
        """Decide on one prediction; how: the other arguments by their names."""

    @abstractmethod
    def report(self, *, calibration: int | None = None) -> Report:
        """Show how a calibration stands: partitions, drift, discrepancies, the labels it lacks, and what to do next.

        With logits only, it shows neither discrepancies nor anything by q or d.

        Args:
            calibration: The number of a calibration; by default the one in use.

        Raises:
            NotReadyError: There is no calibration yet.
        """

    @abstractmethod
    def monitor(self) -> Monitor:
        """Show whether the promise still holds, by the random labels that came for points that were decided on.

        It may be looked at after every label: the chance of a false alarm is limited over all looks together. With
        logits only, its partitions are predicted classes.

        Raises:
            NotReadyError: There is no calibration yet.
        """

    @abstractmethod
    def reviewer(self, name: str) -> ReviewerInterface:
        """Return somebody who labels points of the queue: what was rejected and has no label, or drawn to be audited.

        Args:
            name: 1 to 100 printable characters, by which claims and labels are told apart.
        """

    @abstractmethod
    def review_queue(self) -> ReviewQueue:
        """Return how the queue for reviewers stands; claiming fills it."""

    @abstractmethod
    def disagreements(self) -> Sequence[Disagreement]:
        """Return points of which the newest labels of two reviewers differ, the one labelled last first.

        They are at most 1,000. A point is no longer among them once a label resolves it, or the reviewers agree.
        """


class ConnectionInterface(ABC):
    """Classifiers, which a program creates and looks up."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the connections to the database or the service; what is stored stays."""

    @abstractmethod
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
    ) -> ClassifierInterface:
        """Register a classifier.

        Args:
            name: 1 to 100 printable characters.
            classes: The names of the C >= 2 classes, in the order of the logits.
            dimension: D, the length of a vector, 1 to 16,000; required unless there are logits only.
            neighbours: K, the nearest training exemplars that a decision looks at; 25 by default.
            logits_only: Whether there are no vectors: nothing is fitted then, and decisions are plain ones by the
                method venn-abers with the network's score.
            seed: The seed of the division of held-out data, and of training.
            extractor: The version of what its vectors come from; by default the one that the first data state.

        Raises:
            InvalidInputError: A value is out of range.
            ConflictError: There is a classifier of this name.
        """

    @abstractmethod
    def classifier(self, name: str) -> ClassifierInterface:
        """Return a classifier that is stored; by NAME@NUMBER, one of its generations, otherwise the current one.

        Raises:
            NotFoundError: There is none of this name.
        """

    @abstractmethod
    def create_generation(
        self, name: str, *, dimension: int | None = None, extractor: str | None = None
    ) -> ClassifierInterface:
        """Add a generation to a classifier, for the vectors of another extractor; the current one stays in use.

        It has the classes, K and seed of the others, so that the same documents fall in the same splits. Ingest its
        exemplars, fit and calibrate it; then `switch` to it.

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
        """

    @abstractmethod
    def switch(self, generation: str) -> ClassifierInterface:
        """Have a classifier's name stand for another of its generations from now on; switching back is the same.

        Args:
            generation: NAME@NUMBER.

        Returns:
            The generation, which is current.

        Raises:
            InvalidInputError: It says no generation.
            NotFoundError: There is no such generation.
            NotReadyError: The generation has no calibration, or one by which everything would be rejected.
        """

    @abstractmethod
    def state_extractor(self, name: str, extractor: str) -> ClassifierInterface:
        """State which extractor the vectors come from, or correct that while no exemplars are stored.

        Args:
            name: The classifier's name, or NAME@NUMBER.
            extractor: The version.

        Raises:
            InvalidInputError: It is not a valid version.
            NotFoundError: There is no such classifier.
            ConflictError: There are exemplars, and another one was stated for them.
        """

    @abstractmethod
    def delete(self, name: str, *, dry_run: bool = False) -> Deletion:
        """Delete a classifier with all that belongs to it, or a generation of it that is not current, for good.

        The classifier cannot be used from then on, and keys for it alone are revoked. After an interruption, call it
        again.

        Args:
            name: The classifier's name, for all its generations; or NAME@NUMBER, for that one.
            dry_run: Whether to count only what would be deleted.

        Raises:
            NotFoundError: There is no such classifier.
            ConflictError: The generation is current, or jobs are running.
        """

    @abstractmethod
    def classifiers(self) -> Sequence[ClassifierInterface]:
        """Return all classifiers and all their generations, by name."""

    @abstractmethod
    def create_cascade(self, name: str, stages: Mapping[str, float] | Sequence[str]) -> CascadeInterface:
        """Create a cascade: classifiers that are asked one after the other, until one admits a point.

        Args:
            name: 1 to 100 printable characters.
            stages: The names of the classifiers in the order in which they are asked, `person` for a last stage that is
                one; as a mapping, with what a point costs that reaches each, in any unit.

        Raises:
            InvalidInputError: A name or a cost is invalid.
            NotFoundError: There is no such classifier.
            ConflictError: There is a cascade of this name, or the classifiers have other classes.
        """

    @abstractmethod
    def cascade(self, name: str) -> CascadeInterface:
        """Return a cascade that is stored.

        Raises:
            NotFoundError: There is none of this name.
        """

    @abstractmethod
    def cascades(self) -> Sequence[CascadeInterface]:
        """Return all cascades, by name."""
