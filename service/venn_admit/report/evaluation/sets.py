"""Several evaluation sets side by side, each in a column, beside the data that the calibration rests on."""

from collections.abc import Callable, Sequence
from typing import Any

from venn_admit.core.evaluation.measures import PointAccuracy
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.report.evaluation.dataset import CalibrationFigures, DatasetReport
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.report.evaluation.table import NONE_MARK, Cell, Column, EvaluationTable, Row
from venn_admit.report.evaluation.tables import judged, legend, plain_share
from venn_admit.report.evaluation.wording import PREDICTED, TRUE, hidden_classes, kind_tallies

CALIBRATION_DATA = "calibration data"
_Cells = tuple[Cell, ...]


def are_alike(reports: Sequence[DatasetReport]) -> bool:
    """Whether there are several sets, decided on by one calibration."""
    made = {None if report.calibration is None else report.calibration.id for report in reports}
    return len(reports) > 1 and len(made) == 1


def sets_table(reports: Sequence[DatasetReport]) -> EvaluationTable:
    """Return the predictions without rejection, and what the calibration's method admits, of sets that are alike."""
    first = reports[0]
    shown, data = first.shown_classes(), first.calibration_data
    beside: list[CalibrationFigures] = [] if data is None else [data]
    every: list[CalibrationFigures | DatasetReport] = [*beside, *reports]

    def of_accuracy(name: str, cell: Callable[[PointAccuracy], Cell]) -> _Cells:
        rows = [row.accuracy for one in every for row in one.accuracy if row.name == name]
        return tuple(map(cell, rows))

    def accuracy(measured: PointAccuracy) -> Cell:
        overall = measured.tallies.overall
        return plain_share(overall.share, overall.interval, overall.is_few)

    def f_half(measured: PointAccuracy) -> Cell:
        return plain_share(measured.f_half_macro, measured.f_half_interval, measured.tallies.overall.is_few)

    def of_own(tally: Callable[[DatasetReport], Tally]) -> _Cells:
        return (*(Cell() for _ in beside), *(judged(tally(report), report) for report in reports))

    def of_class(kind: str, c: int) -> Callable[[DatasetReport], Tally]:
        return lambda report: kind_tallies(report.method(report.own), kind)[c]

    sizes = [(one.point_count, one.document_count) for one in every]
    names = [row.name for row in first.accuracy]
    return EvaluationTable(
        "The sets side by side",
        ("", "of"),
        tuple(Column(name, least=16) for name in (*(CALIBRATION_DATA for _ in beside), *(one.name for one in reports))),
        (
            Row(("points", "all"), tuple(Cell(f"{points:,}") for points, _ in sizes)),
            *(
                [Row(("points", "documents"), tuple(Cell(NONE_MARK if n is None else f"{n:,}") for _, n in sizes))]
                if any(n is not None for _, n in sizes)
                else []
            ),
            *(Row(("accuracy", name), of_accuracy(name, accuracy)) for name in names),
            *(Row(("F0.5", name), of_accuracy(name, f_half)) for name in names),
            Row((first.own, "all"), of_own(lambda report: report.method(report.own).overall)),
            *(
                Row((first.own, f"{kind} {first.class_names[c]}"), of_own(of_class(kind, c)))
                for kind in (PREDICTED, TRUE)
                for c in shown
            ),
        ),
        tuple(
            note
            for note in (
                (
                    "Below each figure is its 95 % interval: from resampled documents if a set has documents, "
                    "otherwise Wilson's, and of F0.5 from resampled points. Accuracy and F0.5, the mean over the "
                    f"classes, are of every prediction; rows of {first.own}, of what it admits: share right, (n/N).",
                ),
                legend(first, "right"),
                (hidden_classes(first, shown),),
            )
            if any(note)
        ),
    )


def sets_payload(reports: Sequence[DatasetReport]) -> dict[str, Any]:
    """Return every set for programs, in the order given."""
    return {"sets": [report_payload(report) for report in reports]}
