"""Cells of a table of what settings admit: the share admitted, and the shares right by class."""

from decimal import Decimal

from venn_admit.core.evaluation.measures import Admission, ClassTallies
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.report.evaluation.glance import EACH_CLASS, NAME_WIDTH, WORST_CLASS
from venn_admit.report.evaluation.table import Cell, Column
from venn_admit.report.evaluation.wording import PREDICTED, TRUE, interval_text, kind_tallies, share_text

MOST_SINGLE_CLASSES = 4
"""Up to this many classes, each has its columns; of more, the class with the lowest share is shown."""


def admission_columns(class_names: tuple[str, ...]) -> tuple[Column, ...]:
    """Return the columns of `admission_cells`."""
    columns = [Column("admitted")]
    for kind in (TRUE, PREDICTED):
        if len(class_names) <= MOST_SINGLE_CLASSES:
            columns += [Column(name, EACH_CLASS[kind], NAME_WIDTH) for name in class_names]
        else:
            columns.append(Column("the lowest", WORST_CLASS[kind]))
    return tuple(columns)


def admission_cells(admission: Admission, class_names: tuple[str, ...], alpha: Decimal) -> tuple[Cell, ...]:
    """Return the cells of one setting; alpha: the error level that shares right are judged by."""
    right = [_right(admission.right, kind, class_names, alpha) for kind in (TRUE, PREDICTED)]
    return (_share(admission.admitted), *right[0], *right[1])


def intervals_text(point_count: int, judged_count: int, document_count: int) -> str:
    """Return of how many points a table is, and how the intervals of its shares come about.

    point_count: of mc. judged_count, document_count: points that are decided on, and their documents.
    """
    documents = document_count < judged_count
    of_points = f" of {point_count:,}, drawn at random" if judged_count < point_count else ""
    of_documents = f", {document_count:,} documents" if documents else ""
    drawn = "documents drawn again" if documents else "Wilson's formula"
    return f"{judged_count:,} points of mc{of_points}{of_documents}; 95 % intervals by {drawn}"


def _share(tally: Tally, beside: str = "") -> Cell:
    if not tally.count:
        return Cell()
    words = f"{interval_text(tally.interval)}{beside}"
    return Cell(share_text(tally.share), words, few=tally.is_few, hint=f"{tally.correct:,} of {tally.count:,}")


def _right(right: ClassTallies, kind: str, class_names: tuple[str, ...], alpha: Decimal) -> list[Cell]:
    """Return the cells of each class, or of that with the lowest share alone."""
    tallies = kind_tallies(right, kind)
    if len(class_names) <= MOST_SINGLE_CLASSES:
        return [_judged(tally, alpha) for tally in tallies]
    known = [number for number, tally in enumerate(tallies) if tally.count]
    worst = min(known, key=lambda number: tallies[number].share, default=None)
    return [Cell() if worst is None else _judged(tallies[worst], alpha, f" {class_names[worst]}")]


def _judged(tally: Tally, alpha: Decimal, beside: str = "") -> Cell:
    cell = _share(tally, beside)
    verdict = None if tally.is_few else tally.verdict(alpha)
    return Cell(cell.figure, cell.beside, verdict=verdict, few=cell.few, hint=cell.hint)


def class_payload(tallies: tuple[Tally, ...], names: tuple[str, ...]) -> list[dict[str, object]]:
    """Return how much is right of what is admitted of each class, as JSON has it."""
    return [
        {
            "label": number,
            "name": name,
            "admitted": tally.count,
            "right": tally.correct,
            "share_right": tally.share if tally.count else None,
            "interval": list(tally.interval),
        }
        for number, (name, tally) in enumerate(zip(names, tallies, strict=True))
    ]
