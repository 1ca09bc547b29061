"""A classifier: its data, its calibrations, and the decisions on its predictions."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from venn_admit.core.calibrators.declaration import parse_decimal
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.files.output.tables import check_table_output
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.data import label as labels_flow
from venn_admit.flows.data.catalogue import count_waiting, find
from venn_admit.flows.data.export import check_export
from venn_admit.flows.data.export import export as export_file
from venn_admit.flows.data.ingest import require_extractor
from venn_admit.flows.decisions.score_one import GivenPoint, as_logits
from venn_admit.flows.reports.report import report
from venn_admit.flows.reviews.claims import check_reviewer, queue
from venn_admit.flows.reviews.labels import disagreements
from venn_admit.interface.advice import advising, call
from venn_admit.interface.arguments import checking_arguments
from venn_admit.interface.comparison import Comparison, SettingsWhatIf, comparison_of
from venn_admit.interface.hooks.outputs import HookedBatches
from venn_admit.interface.inputs import exemplar_source, label_source, vector_of
from venn_admit.interface.reports import (
    Evaluation,
    Evaluations,
    Monitor,
    Report,
    SharesWhatIf,
    TrainingWhatIf,
    monitor_of,
    report_of,
)
from venn_admit.interface.reviews import Reviewer
from venn_admit.interface.shell import ProcessShell, log
from venn_admit.report.wording import admits_nothing_text, ignored_text, rows_in_use_text
from venn_admit.results import calibrated_json, decided_json, registered
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.audit import Origin
from venn_admit.store.decisions.decisions import rows_in_use
from venn_admit.store.exemplars import classifiers
from venn_admit_client.answers import calibration_of, decision_of
from venn_admit_client.given import attributes_by_name, listed_ids, whole_number
from venn_admit_client.interface import ClassifierInterface, Progress, Rows
from venn_admit_client.records.calibrations import Calibration, Fit, PutInUse
from venn_admit_client.records.data import Audits, Forgetting, Ingestion, Labelling
from venn_admit_client.records.decisions import Decision
from venn_admit_client.records.reviews import Disagreement, ReviewQueue


@checking_arguments
class Classifier(ClassifierInterface):
    """A classifier that is stored. It is made by `Connection.create` or `Connection.classifier`.

    Data are given in one of two forms. Either `data`, which is the path of an .npz or .parquet file, a pyarrow Table or
    RecordBatchReader, or a pandas or polars DataFrame, with the columns that such a file has: `vector`, `logits`, and
    optionally `label`, `external_id`, `document_id`, `attributes` and any others; or what a model makes of batches, as
    `hook` returns it. Or arrays: `vectors` (n, D) and `logits` (n, C), NumPy arrays or tensors, with `labels`, `ids`,
    `documents` and `attributes` (columns by name, or a DataFrame) of n values each. A classifier with logits only takes
    no vectors.

    It stays with the generation that its name stood for when it was made, whichever is switched to; look the name up
    again for the one that it stands for then.

    `wait` is whether `forget` waits for jobs of the classifier that score, fit or certify a cascade, and `restart`
    whether `monitor` ends the alarms that stand and starts again, with what is decided on from now on. `label_deadline`
    is the time after its decision by which a document is labelled, if a monitor is started; by default that of the
    monitor before, and `timedelta(0)` for none.
    """

    def __init__(self, runtime: Runtime, stored: classifiers.Classifier) -> None:
        """Use a runtime that is open, and a classifier that is stored."""
        super().__init__(registered(stored))
        self._runtime = runtime
        self._stored = stored
        self._shell = ProcessShell(runtime)

    @advising()
    def training_waiting(self) -> int:
        return count_waiting(self._runtime.engine, self._stored.address)

    @advising()
    def _ingest(self, rows: Rows, *, split: str, progress: Progress | None, **how: Any) -> Ingestion:
        from venn_admit.flows.data.ingest import ingest

        given, shell = self._source(rows), self._shell.following(progress)
        shell.show(f"Ingesting {given.name}", given.count_rows())
        return ingest(self._runtime.engine, self._stored.address, given, split, on_rows=shell.advance, **how)

    @advising()
    def _label(self, labels: Any, *, progress: Progress | None, source: str | None = None, **how: Any) -> Labelling:
        given = label_source(labels, name=source, memory_budget=self._runtime.memory_budget)
        done = labels_flow.label(self._runtime.engine, self._stored.address, given, **how)
        if done.ignored:
            log.warning(ignored_text(given.name, done.ignored))
        if progress is not None:
            progress(done.rows, done.rows)
        return done

    @advising()
    def forget(
        self,
        ids: Collection[str] = (),
        *,
        documents: Collection[str] = (),
        missing_ok: bool = False,
        dry_run: bool = False,
        wait: bool = False,
    ) -> Forgetting:
        from venn_admit.flows.removal.forget import forget

        self._shell.show("Forgetting")
        done = forget(
            self._runtime,
            self._stored.address,
            listed_ids("ids", ids, InvalidInputError),
            listed_ids("documents", documents, InvalidInputError),
            missing_ok=missing_ok,
            dry_run=dry_run,
            wait=wait,
            by=Origin.PYTHON,
        )
        for job_id in done.jobs:
            self._shell.run_job(job_id, "Searching neighbours again")
        if done.is_done:
            self._runtime.remove_abandoned()
        return done

    @advising()
    def choose_k(self) -> int:
        """Try several numbers of neighbours on split knn, before the first fit, and keep the one that serves best.

        It is the smallest whose q tells right predictions from wrong ones about as well as that of any, among those
        whose KNN follows the network about as well. Returns K.

        Raises:
            NotReadyError: Data are missing.
            ConflictError: The classifier has been fitted, or a job of it is under way: what is stored has its K.
        """
        from venn_admit.flows.calibration.neighbour_count import choose_neighbour_count

        tried = choose_neighbour_count(self._runtime, self._stored.address, on_tried=lambda _: None)
        return tried.neighbour_count

    @advising()
    def fit(self, *, progress: Progress | None = None) -> Fit:
        from venn_admit.flows.calibration.fit import fit

        shell = self._shell.following(progress)
        done = fit(self._runtime, self._stored.address, shell=shell, on_epoch=lambda _model, _line: None)
        return done.figures

    @advising()
    def _calibrate(self, method: str, given: Mapping[str, Any], *, dry_run: bool) -> Calibration:
        from venn_admit.flows.calibration.calibrate import NearlyNothingUsable, calibrate, settings_for

        classifier = find(self._runtime.engine, self._stored.address)
        settings = settings_for(classifier, method, given)
        done = calibrate(
            self._runtime,
            classifier,
            settings,
            shell=self._shell,
            reason="asked for in Python",
            by=Origin.PYTHON,
            even_if_nearly_nothing_is_usable=given["kappa"] is not None,
            dry_run=dry_run,
        )
        if isinstance(done, NearlyNothingUsable):
            raise NotReadyError(done.refusal(call))
        return calibration_of(calibrated_json(done))

    @advising()
    def compare(self, *, alpha: Decimal | str | float = "0.1") -> Comparison:
        """Show what settings of each method admit of split mc, to choose one before split vp is looked at.

        Folds of whole documents are decided on by the other folds, weighted if that is the default of the method; the
        labels of vp are not read, and no calibration is stored. `calibrate(**comparison.proposal.settings)` takes up
        the proposal. With logits only there is one setting: Venn-Abers by the network's score.

        Args:
            alpha: Error level in (0, 1). A float stands for the decimal that it prints as.

        Raises:
            InvalidInputError: Alpha is out of range.
            NotReadyError: Data or the fit are missing.
        """
        from venn_admit.flows.calibration.compare import compare

        return comparison_of(
            compare(self._runtime, self._stored.address, parse_decimal("alpha", str(alpha)), shell=self._shell)
        )

    @advising()
    def recalibrate(self) -> list[int]:
        from venn_admit.flows.calibration.recalibrate import recalibrate

        served = recalibrate(self._runtime, self._stored.address, shell=self._shell, by=Origin.PYTHON)
        steps = [step for _, step in served if step is not None]
        errors = [step.error for step in steps if step.error is not None]
        if errors:
            raise NotReadyError(f"{len(errors)} of {len(served)} recalibrations of {self.name!r} failed: {errors[0]}")
        return [step.calibrated.calibration_id for step in steps if step.calibrated is not None]

    @advising()
    def audits(self) -> Audits:
        from venn_admit.flows.data.audits import show_audits

        return show_audits(self._runtime.engine, self._stored.address)

    @advising()
    def _audit(self, **how: Any) -> Audits:
        from venn_admit.flows.data.audits import set_audits

        return set_audits(self._runtime.engine, self._stored.address, **how)

    @advising()
    def use(self, calibration: int, *, reason: str | None = None) -> PutInUse:
        from venn_admit.flows.calibration.in_use import use

        done = use(self._runtime.engine, self._stored.address, calibration, reason=reason, by=Origin.PYTHON)
        if done.admits_nothing:
            log.warning(admits_nothing_text(done.calibration_id))
        return PutInUse(self.name, done.calibration_id, done.before, done.is_changed, done.admits_nothing)

    @advising()
    def _score(
        self, rows: Rows, *, out: Path | None, progress: Progress | None, calibration: int | None, **how: Any
    ) -> pa.Table:
        from venn_admit.flows.decisions.score import read_scores
        from venn_admit.flows.decisions.score_file import score

        if isinstance(rows.data, HookedBatches):
            rows.data.check_order()
        if out is not None:
            check_table_output(out, *([Path(rows.data)] if isinstance(rows.data, (str, PathLike)) else ()))
        scored = score(
            self._runtime,
            self._stored.address,
            self._source(rows),
            calibration_id=calibration,
            shell=self._shell.following(progress),
            out=out,
            **how,
        )
        if said := rows_in_use_text(rows_in_use(scored.counted.counts)):
            log.warning(said)
        return read_scores(self._runtime.engine, scored.request.job_id)

    @advising()
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
        how["neighbours"] = whole_number("neighbours", how["neighbours"], InvalidInputError)
        if how["neighbours"] is not None and how["neighbours"] < 0:
            raise InvalidInputError(f"neighbours: expected 0 or more, got {how['neighbours']}")
        if extractor is not None:
            require_extractor(find(self._runtime.engine, self._stored.address), extractor, "the vector")
        given = GivenPoint(
            None if vector is None else vector_of(vector, self.dimension),
            None if logits is None else vector_of(logits, len(self.classes), "logits"),
            attributes_by_name(attributes, InvalidInputError),
        )
        points = as_logits([given], probabilities)
        (found,) = self._runtime.point_scorer.score_each(self._stored.address, points, **how)
        return decision_of(decided_json(found))

    @advising()
    def evaluate(
        self,
        data: Any = None,
        *,
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
    ) -> Evaluation:
        """Compare what each method admits of labelled data, and how often it is right.

        With logits only, the methods that need vectors are left out, which the evaluation says.

        Args:
            data: A file, a table or hooked batches, as the class describes it; without data or arrays, everything
                labelled that the calibration has decided on.
            calibration: As in `score`.
            vectors: As in `ingest`.
            logits: As in `ingest`.
            labels: As in `ingest`.
            ids: As in `ingest`.
            documents: As in `ingest`.
            attributes: As in `ingest`.
            source: What the report calls the data; by default the file's name.
            extractor: As in `ingest`.
            probabilities: As in `ingest`.

        Raises:
            InvalidInputError: A row is invalid, or there is nothing labelled.
            NotReadyError: There is no calibration yet.
        """
        from venn_admit.flows.reports.evaluate import evaluate

        rows = Rows(data, vectors, logits, labels, ids, documents, attributes, source, extractor, probabilities)
        is_given = any(one is not None for one in (data, vectors, logits, labels, ids, documents, attributes))
        given = self._source(rows) if is_given else None
        found = evaluate(
            self._runtime, self._stored.address, given, title=source, calibration_id=calibration, shell=self._shell
        )
        return Evaluation(self.name, source or ("its decisions" if given is None else given.name), found)

    @advising()
    def evaluate_sets(self, sets: Mapping[str, Any], *, calibration: int | None = None) -> Evaluations:
        """Evaluate several sets of labelled data by the same calibration, such as a shifted one beside one like it.

        Args:
            sets: What `evaluate` takes as `data`, by names that the report calls them.
            calibration: As in `score`.

        Raises:
            InvalidInputError: There is no set, a row is invalid, or there is nothing labelled in a set.
            NotReadyError: There is no calibration yet.
        """
        from venn_admit.flows.reports.evaluate import evaluate_sets

        if not sets:
            raise InvalidInputError("expected at least one set to evaluate, got none; name it and its data")
        sources = {name: self._source(Rows(data, source=name)) for name, data in sets.items()}
        found = evaluate_sets(
            self._runtime, self._stored.address, sources, calibration_id=calibration, shell=self._shell
        )
        return Evaluations(self.name, found)

    @advising()
    def report(self, *, calibration: int | None = None) -> Report:
        return report_of(report(self._runtime, self._stored.address, calibration_id=calibration))

    @advising()
    def monitor(self, *, restart: bool = False, label_deadline: timedelta | None = None) -> Monitor:
        from venn_admit.flows.reports.monitor import update_monitor

        return monitor_of(
            update_monitor(self._runtime.engine, self._stored.address, restart=restart, label_deadline=label_deadline)
        )

    @advising()
    def reviewer(self, name: str) -> Reviewer:
        check_reviewer(name)
        return Reviewer(self._runtime, self._stored.address, name)

    @advising()
    def review_queue(self) -> ReviewQueue:
        return queue(self._runtime.engine, self._stored.address)

    @advising()
    def disagreements(self) -> tuple[Disagreement, ...]:
        return tuple(disagreements(self._runtime.engine, self._stored.address))

    @advising()
    def what_if_training(
        self, *, relabel: Mapping[str, str | int] | None = None, leave_out: Collection[str] = ()
    ) -> TrainingWhatIf:
        """Show what would change if training exemplars had other labels or were left out; nothing is stored.

        The parameters of the KNN, the localizer and the reliability score stay as they are fitted. What is found is
        what `label` and `recalibrate` would make of it, bit for bit: the next calibration, and what it would decide on
        each exemplar that the one in use has decided on.

        Args:
            relabel: Class names or numbers, by the ids of training exemplars.
            leave_out: Ids of training exemplars; together at most 1,000.

        Raises:
            InvalidInputError: An exemplar does not train, or there is no such class.
            NotFoundError: An id is not stored.
            NotReadyError: There is no calibration yet, labels or data have arrived since, or none could follow.
        """
        from venn_admit.flows.reports.what_if_training import what_if_training

        relabelled = {str(one): label for one, label in (relabel or {}).items()}
        return TrainingWhatIf(
            what_if_training(
                self._runtime,
                self._stored.address,
                relabel=relabelled,
                leave_out=listed_ids("leave_out", leave_out, InvalidInputError),
            )
        )

    @advising()
    def what_if_settings(
        self,
        *,
        alpha: Sequence[Decimal | str | float] = (),
        kappa: Sequence[int] = (),
        delta: Sequence[float] = (),
        q_bins: Sequence[Sequence[int]] = (),
        thresholds: Sequence[Decimal | str | float] = (),
    ) -> SettingsWhatIf:
        """Show what the setting in use would admit with one part of it varied; nothing is stored.

        Each document of split mc is decided on by the other ones, weighted if that is the default of the method; split
        vp stays unseen, so that a value may be chosen by this. Give values of one part; the value in use is added.

        Args:
            alpha: Error levels; a threshold that is 1 - alpha follows.
            kappa: Venn-ADMIT only: least numbers of points of each class in a band.
            delta: Venn-ADMIT only: band radii in standard deviations of d.
            q_bins: Lower edges of the bins of q.
            thresholds: Least lower probabilities, each for every predicted class.

        Raises:
            InvalidInputError: No part or several are varied, a value is out of range, or the method has no such part.
            NotReadyError: There is no calibration yet, or points of split mc have no approximation yet.
        """
        from venn_admit.flows.reports.what_if_settings import what_if_settings

        asked: dict[str, list[Any]] = {
            "alpha": [parse_decimal("alpha", str(one)) for one in alpha],
            "kappa": list(kappa),
            "delta": list(delta),
            "q_bins": [tuple(one) for one in q_bins],
            "thresholds": [parse_decimal("thresholds", str(one)) for one in thresholds],
        }
        given = [part for part, values in asked.items() if values]
        if len(given) != 1:
            raise InvalidInputError(
                f"expected values of one of {', '.join(asked)}, got {' and '.join(given) if given else 'none'}"
            )
        return SettingsWhatIf(what_if_settings(self._runtime, self._stored.address, given[0], asked[given[0]]))

    @advising()
    def what_if_class_shares(self, shares: Sequence[Sequence[Decimal | str | float]]) -> SharesWhatIf:
        """Show what the certified policy in use would do in traffic with other class shares; nothing is stored.

        The bounds of what could be wrong hold together, for every predicted class and under all shares at once, with
        the confidence of the certificate, if points of each class are like those of the calibration data.

        Args:
            shares: To try, each with one share for each class, in their order, which sum to 1.

        Raises:
            InvalidInputError: Shares are none, or the calibration has no certificate that was made once, of the share
                right, without groups, of documents of one point.
            NotReadyError: There is no calibration yet, or points of it were forgotten.
        """
        from venn_admit.flows.reports.what_if_shares import what_if_shares

        asked = [tuple(parse_decimal("class_shares", str(one)) for one in each) for each in shares]
        return SharesWhatIf(what_if_shares(self._runtime, self._stored.address, asked))

    @advising()
    def export(self, what: str, out: str | PathLike[str], *, calibration: int | None = None) -> int:
        """Write what is stored to a file.

        Args:
            what: `exemplars`, `neighbours`, `approximations`, `calibration`, `parameters`, `policy`, which is the
                certificate with all that was proposed, or `unlabelled`, which is recent traffic that does
                not calibrate yet, in random order, with the labels of those of its points that were chosen.
            out: The file: .json for parameters and policy, otherwise .parquet or .csv.
            calibration: The id of a calibration; by default the one in use.

        Returns:
            The number of rows. Points of a calibration that were forgotten since are not among them.

        Raises:
            InvalidInputError: It does not exist, or the file cannot be written.
            NotReadyError: It does not exist yet.
        """
        path = Path(out)
        kind = check_export(what, path)
        return export_file(self._runtime.engine, self._stored.address, kind, path, calibration_id=calibration).rows

    def _source(self, rows: Rows) -> ExemplarSource:
        return exemplar_source(rows, memory_budget=self._runtime.memory_budget)
