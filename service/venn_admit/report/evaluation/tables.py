"""The tables of one evaluation set: what is admitted, what the sets cover, accuracy, partitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from venn_admit.core.evaluation.groups import GroupShare
from venn_admit.core.evaluation.losses import MeanLoss, MeanLosses
from venn_admit.core.evaluation.measures import MethodMeasures, PointAccuracy
from venn_admit.core.evaluation.partitions import PartitionCell, PartitionTable
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.report.evaluation.dataset import AccuracyRow, DatasetReport
from venn_admit.report.evaluation.glance import glance_table
from venn_admit.report.evaluation.table import NONE_MARK, Cell, Column, ColumnGroup, EvaluationTable, Note, Row
from venn_admit.report.evaluation.wording import (
    FEW_MARK,
    PREDICTED,
    SIDE_BY_SIDE,
    TRUE,
    accuracy_note,
    calibration_data_note,
    counts_text,
    few_text,
    hidden_classes,
    interval_note,
    interval_text,
    kind_tallies,
    parameters_text,
    sets_note,
    size_name,
    size_strata,
    size_tally,
    target_text,
)
from venn_admit.report.wording import share_text

GROUPS = {TRUE: ColumnGroup(TRUE, "per true class"), PREDICTED: ColumnGroup(PREDICTED, "per predicted class")}
ACCURACY = "Accuracy of every prediction, none rejected"
PARTITIONS = "Partitions of the KNN by q (matching neighbours) and d (distance to training)"
LOSS_COLUMNS = (Column("mean loss"), Column("95 % interval"), Column("verdict"))
SET_SIZE = ColumnGroup("sets", "per set size")


@dataclass(frozen=True, slots=True)
class EvaluationTables:
    """All tables of one evaluation set.

    losses: None unless the mean loss is promised. groups: None if its certificate is for none. partitions: None if the
    method that is judged has no bands. calibration_accuracy, calibration_partitions: of the calibration data, if given.
    """

    glance: EvaluationTable
    losses: EvaluationTable | None
    groups: EvaluationTable | None
    every_method: EvaluationTable
    selective: EvaluationTable
    covered: EvaluationTable
    accuracy: EvaluationTable
    partitions: EvaluationTable | None
    calibration_accuracy: EvaluationTable | None
    calibration_partitions: EvaluationTable | None

    @property
    def first(self) -> tuple[EvaluationTable, ...]:
        """What is shown first."""
        return tuple(table for table in (self.losses, self.glance, self.groups) if table is not None)

    @property
    def details(self) -> tuple[EvaluationTable, ...]:
        """All others, in the order shown."""
        every = (
            self.every_method,
            self.selective,
            self.covered,
            self.accuracy,
            self.calibration_accuracy,
            self.partitions,
            self.calibration_partitions,
        )
        return tuple(table for table in every if table is not None)


def evaluation_tables(report: DatasetReport) -> EvaluationTables:
    """Every table, whose classes are those that the report shows."""
    return EvaluationTables(
        glance_table(report, every=False),
        None if report.losses is None else _losses(report, report.losses),
        _groups(report) if report.groups else None,
        glance_table(report, every=True),
        _selective(report),
        _covered(report),
        _accuracy(report, report.accuracy, ACCURACY, (accuracy_note(report.document_count),)),
        None if report.partitions is None else _partitions(report, report.partitions, PARTITIONS),
        *_of_calibration_data(report),
    )


def _of_calibration_data(report: DatasetReport) -> tuple[EvaluationTable | None, EvaluationTable | None]:
    """Accuracy and partitions of the points that the calibration rests on."""
    data = report.calibration_data
    if data is None:
        return None, None
    notes = (accuracy_note(data.document_count), calibration_data_note(data))
    return (
        _accuracy(report, data.accuracy, f"{ACCURACY}, on the calibration data", notes),
        None
        if data.partitions is None
        else _partitions(report, data.partitions, f"{PARTITIONS}, on the calibration data"),
    )


def _losses(report: DatasetReport, losses: MeanLosses) -> EvaluationTable:
    """What the admitted points cost on average, which the certificate is about."""
    shown = report.shown_classes()
    of_classes = (("true", losses.per_true_class), (PREDICTED, losses.per_predicted_class))
    rows = [("all", "", losses.overall)]
    rows += [(kind, report.class_names[c], found[c]) for kind, found in of_classes for c in shown]

    return EvaluationTable(
        "What the admitted points cost on average",
        ("class", ""),
        (Column("admitted"), *LOSS_COLUMNS),
        tuple(Row((kind, name), (Cell(f"{one.count:,}"), *_loss_cells(one, report))) for kind, name, one in rows),
        _notes(
            (
                f"The calibration promises a mean loss of at most {report.alpha}, not a share right, which the other "
                "tables show. The intervals are of resampled documents or points.",
            )
        ),
    )


def _loss_cells(one: MeanLoss, report: DatasetReport) -> tuple[Cell, ...]:
    if not one.count:
        return (Cell(NONE_MARK),) * len(LOSS_COLUMNS)
    (low, high), verdict = one.interval, one.verdict(report.alpha)
    return Cell(f"{one.mean:.4g}"), Cell(f"{low:.3g} to {high:.3g}"), Cell(verdict.words, verdict=verdict)


def _groups(report: DatasetReport) -> EvaluationTable:
    """What is admitted of each group, and how much of it is right, or what it costs."""
    of_loss = report.losses is not None
    what = "mean loss: of what is admitted" if of_loss else f"right: of what is admitted, below {interval_note(report)}"

    def cells(group: GroupShare) -> tuple[Cell, ...]:
        if group.loss is not None:
            return _loss_cells(group.loss, report)
        return (judged(group.right, report, portion=False),)

    return EvaluationTable(
        "Groups that the certificate was asked for",
        ("attribute", "value"),
        (Column("points"), Column("admitted"), *(LOSS_COLUMNS if of_loss else (Column("right"),))),
        tuple(
            Row(
                (group.attribute, "none" if group.value is None else group.value),
                (Cell(f"{group.points:,}"), Cell(share_text(group.admitted)), *cells(group)),
            )
            for group in report.groups
        ),
        _notes(
            (f"admitted: of the points of the group; {what}. A group that is not certified is never admitted.",),
            *(() if of_loss else (legend(report, "right"),)),
        ),
    )


def _selective(report: DatasetReport) -> EvaluationTable:
    """Share right among singletons, methods as rows."""
    shown, kinds = report.shown_classes(), (TRUE, PREDICTED)

    def cells(row: MethodMeasures) -> tuple[Cell, ...]:
        measured = row.singletons
        tallies = [measured.overall, *(kind_tallies(measured, kind)[c] for kind in kinds for c in shown)]
        return tuple(judged(tally, report) for tally in tallies)

    return EvaluationTable(
        "Share right among singletons (admitted points)",
        ("method",),
        (Column("all"), *(column for kind in kinds for column in _classes(report, kind))),
        tuple(_method_row(row, cells(row)) for row in report.methods),
        _notes(
            (f"Cells: share right, (n/N), below {interval_note(report)}.",),
            legend(report, "right"),
            (parameters_text(report),),
            (hidden_classes(report, shown),),
        ),
    )


def _covered(report: DatasetReport) -> EvaluationTable:
    """Share of sets that hold the label, over all, per class and by size, and their mean size; methods as rows.

    Methods that only admit or reject are left out: what they admit is all that there is to say of them.
    """
    shown, strata = report.shown_classes(), size_strata(report)
    kinds = (TRUE, PREDICTED) if len(shown) <= SIDE_BY_SIDE else (TRUE,)

    def cells(row: MethodMeasures) -> tuple[Cell, ...]:
        measured = row.coverage
        tallies = [measured.overall, *(kind_tallies(measured, kind)[c] for kind in kinds for c in shown)]
        return (
            *(judged(tally, report, portion=False) for tally in tallies),
            Cell(f"{row.mean_size:.2f}"),
            *(judged(size_tally(row, stratum), report) for stratum in strata),
        )

    return EvaluationTable(
        "What the sets cover",
        ("method",),
        (
            Column("all"),
            *(column for kind in kinds for column in _classes(report, kind)),
            Column("mean size", SET_SIZE),
            *(Column(size_name(stratum), SET_SIZE) for stratum in strata),
        ),
        tuple(_method_row(row, cells(row)) for row in report.methods if row.name in report.set_methods),
        _notes(
            (f"Cells: share of sets that hold the label, by size also (n/N), below {interval_note(report)}.",),
            legend(report, "covered"),
            (sets_note(report),),
            (hidden_classes(report, shown),),
        ),
    )


def _accuracy(report: DatasetReport, rows: Sequence[AccuracyRow], title: str, notes: Sequence[str]) -> EvaluationTable:
    """Accuracy and F0.5 of the network, the KNN and the localizer, over all and per true class.

    notes: which intervals are shown, and then what else is to be said of the points.
    """
    intervals, *others = notes
    shown = report.shown_classes()

    def cells(measured: PointAccuracy) -> tuple[Cell, ...]:
        overall, per_class = measured.tallies.overall, measured.tallies.per_true_class
        return (
            plain_share(overall.share, overall.interval, overall.is_few),
            plain_share(measured.f_half_macro, measured.f_half_interval, overall.is_few),
            *(plain_share(per_class[c].share, per_class[c].interval, per_class[c].is_few) for c in shown),
        )

    return EvaluationTable(
        title,
        ("prediction",),
        (Column("accuracy"), Column("F0.5"), *_classes(report, TRUE)),
        tuple(Row((row.name,), cells(row.accuracy)) for row in rows),
        _notes(
            (f"Cells: accuracy, below {intervals}.",),
            (
                "F0.5 weighs precision over recall and is the mean over the classes. "
                f"{FEW_MARK}: {few_text(report)}; {NONE_MARK}: none.",
            ),
            *((note,) for note in others),
            (hidden_classes(report, shown),),
        ),
    )


def _partitions(report: DatasetReport, partitions: PartitionTable, title: str) -> EvaluationTable:
    """Accuracy, n/N and threshold of the KNN for every q by d partition, over all and per true class."""
    shown = report.shown_classes()

    def cell(measured: PartitionCell) -> Cell:
        tally = measured.tally
        if tally.count == 0:
            return Cell(few=True)
        portion = f"({share_text(tally.portion)})"
        return Cell(
            share_text(tally.share), portion, share_text(measured.threshold), few=tally.is_few, hint=counts_text(tally)
        )

    return EvaluationTable(
        title,
        ("q", "d"),
        (Column("all"), *_classes(report, TRUE)),
        tuple(
            Row(
                (row.matches, row.distances.replace(">=", "≥")),
                (cell(row.overall), *(cell(row.per_class[c]) for c in shown)),
            )
            for row in partitions.rows
        ),
        _notes(
            (
                f"Cells: accuracy, (n/N), below the threshold, which is the {float(report.alpha):g}-quantile of the "
                "KNN's probability of the true class.",
            ),
            (
                f"K = {report.neighbour_count}, median of d = {partitions.median:.4g}; {FEW_MARK}: {few_text(report)}; "
                f"{NONE_MARK}: none.",
            ),
            (hidden_classes(report, shown),),
        ),
    )


def _classes(report: DatasetReport, kind: str) -> list[Column]:
    return [Column(report.class_names[c], GROUPS[kind]) for c in report.shown_classes()]


def _method_row(measured: MethodMeasures, cells: tuple[Cell, ...]) -> Row:
    """A "q = K" variant stands under its method, where it says only how it differs."""
    return Row((measured.name,), cells, "and q = K" if measured.name.endswith(", q = K") else "")


def judged(tally: Tally, report: DatasetReport, *, portion: bool = True) -> Cell:
    """Share, n/N if asked for, and interval."""
    verdict = tally.verdict(report.alpha)
    if tally.count == 0:
        return Cell(verdict=verdict, few=True, hint=counts_text(tally))
    beside = f"({share_text(tally.portion)})" if portion else ""
    return Cell(
        share_text(tally.share), beside, interval_text(tally.interval), verdict, tally.is_few, hint=counts_text(tally)
    )


def plain_share(share: float, interval: tuple[float, float], few: bool) -> Cell:
    """A figure that nothing is promised of, and its interval."""
    if isnan(share):
        return Cell(few=True)
    return Cell(share_text(share), "", interval_text(interval), few=few)


def legend(report: DatasetReport, what: str) -> Note:
    """What the marks of a judged cell mean; what: that the share is of, such as "right"."""
    target = target_text(report)
    return (
        Verdict.MET,
        f": the interval lies at or above {target} {what}; ",
        Verdict.MISSED,
        ": it lies below; ",
        Verdict.CANNOT_TELL,
        f": it contains {target}, or {few_text(report)}; {NONE_MARK}: none.",
    )


def _notes(*notes: Note) -> tuple[Note, ...]:
    return tuple(note for note in notes if any(note))
