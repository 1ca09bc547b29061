"""The table of all methods at one glance: what each admits, how much of it is right, and whether every class holds."""

from dataclasses import dataclass
from decimal import Decimal

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.promises import Promised, promised
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.comparison.methods import LOCAL
from venn_admit.core.comparison.selective import (
    CERTIFIED,
    GUARANTEED,
    ON_AVERAGE,
    SOFTMAX,
    VENN_ABERS,
    certified_for,
    is_by_loss,
    is_in_shares,
)
from venn_admit.core.evaluation.measures import Admission, ClassTallies, MethodMeasures
from venn_admit.core.evaluation.points import ADMIT, KNN, NETWORK, WEIGHTED_ADMIT
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.table import NONE_MARK, Cell, Column, ColumnGroup, EvaluationTable, Note, Row
from venn_admit.report.evaluation.wording import (
    PREDICTED,
    SIDE_BY_SIDE,
    TRUE,
    counts_text,
    few_text,
    interval_note,
    interval_text,
    kind_tallies,
    short_names,
    target_text,
    verdict_on_all,
)
from venn_admit.report.wording import share_text

NAME_WIDTH = 8
"""Columns of the name of a class, beside its share or over it."""
EACH_CLASS = {TRUE: ColumnGroup("true", "per true class"), PREDICTED: ColumnGroup("as", "per predicted class")}
"""Shorter than in other tables, so that a terminal holds the table in one part."""
WORST_CLASS = {kind: ColumnGroup(kind, group.words) for kind, group in EACH_CLASS.items()}
MOST_SINGLE_CLASSES = 4
"""Up to this many classes, each has its columns; of more, the class with the lowest share is shown."""


_PROMISES = {
    KNN: Promised.NONE,
    NETWORK: Promised.NONE,
    SOFTMAX: Promised.NONE,
    # Its sets are taken without the mass at infinity that its coverage rests on.
    LOCAL: Promised.NONE,
    GUARANTEED: Promised.OVERALL,
    ON_AVERAGE: Promised.AVERAGE,
    **{certified_for(kinds): promised(kinds) for kinds in ([ClassKind.PREDICTED], [ClassKind.TRUE], tuple(ClassKind))},
}


@dataclass(frozen=True, slots=True)
class EveryClass:
    """How many classes meet the target, how many have something admitted, and the verdict on these together.

    True and predicted classes are counted apart.
    """

    met: int
    admitted: int
    verdict: Verdict


OTHERS_THAT_MATTER = frozenset(
    {SOFTMAX, "APS", GUARANTEED, WEIGHTED_ADMIT, VENN_ABERS[ScoreKind.NETWORK], ON_AVERAGE, CERTIFIED}
)
"""Beside the method of the calibration and what admits everything: for each kind of promise one that stands for it."""


def matters(method: str) -> bool:
    """Whether a rival of this name is shown first; the details show the others too."""
    return method in OTHERS_THAT_MATTER


def methods_that_matter(report: DatasetReport) -> list[MethodMeasures]:
    """Return the method of the calibration, what admits everything, and the rivals that matter, in the order shown."""
    return [row for row in _in_order(report) if row.name in (report.own, report.baseline) or matters(row.name)]


def promise_of(method: str, report: DatasetReport) -> Promised:
    """Return what the method of this name promises; a method that is not known here gives sets."""
    if method == ADMIT and not report.bands_part:
        # A point's band is not that of the points in it, so that a set may miss the label more often.
        return Promised.NONE
    if method.startswith(("Venn-ADMIT", "Venn-Abers")):
        return Promised.POINTWISE
    if is_by_loss(method):
        return Promised.LOSS_IN_SHARES if is_in_shares(method) else Promised.LOSS
    if is_in_shares(method):
        return Promised.SHARES
    if method.startswith(f"{CERTIFIED}, ") and "group:" in method:
        return Promised.GROUPS
    return _PROMISES.get(method, Promised.SETS)


def every_class(measured: ClassTallies, report: DatasetReport) -> EveryClass:
    """Return whether every true and every predicted class holds among what a method admits."""
    tallies = (*measured.per_true_class, *measured.per_predicted_class)
    verdicts = [tally.verdict(report.alpha) for tally in tallies if tally.count]
    return EveryClass(verdicts.count(Verdict.MET), len(verdicts), verdict_on_all(verdicts))


def glance_table(report: DatasetReport, *, every: bool) -> EvaluationTable:
    """Return a row per method: first that of the calibration, then the others in the order of `Promised`.

    every: whether all methods have a row, or only those that matter; the notes stand with these. Variants with q = K
    have none.

    Two classes have their columns each. If there are more, the worst of the true and of the predicted classes is shown:
    one that misses the target if any does, otherwise one that cannot be told, and of these that with the lowest share.
    """
    methods = _in_order(report) if every else methods_that_matter(report)
    each = len(report.class_names) <= SIDE_BY_SIDE

    def columns(kind: str) -> list[Column]:
        if not each:
            return [Column("the worst", WORST_CLASS[kind])]
        return [Column(name, EACH_CLASS[kind], NAME_WIDTH) for name in report.class_names]

    def of_kind(measured: ClassTallies, kind: str) -> list[Cell]:
        tallies = kind_tallies(measured, kind)
        return [_share(tally, report) for tally in tallies] if each else [_worst(tallies, report)]

    def cells(row: MethodMeasures) -> tuple[Cell, ...]:
        measured = row.singletons
        return (
            Cell(str(promise_of(row.name, report))),
            Cell(share_text(measured.overall.portion), hint=counts_text(measured.overall)),
            _share(measured.overall, report),
            *of_kind(measured, TRUE),
            *of_kind(measured, PREDICTED),
            _holds(every_class(measured, report)),
        )

    return EvaluationTable(
        f"{'All' if every else 'The'} methods{'' if every else ' that matter'} at a glance: "
        "how much is admitted, and how much of it is right",
        ("method",),
        (Column("promise"), Column("admitted"), Column("right"), *columns(TRUE), *columns(PREDICTED), Column("met")),
        tuple(Row((row.name,), cells(row), is_own=row.name == report.own) for row in methods),
        () if every else _notes(report, methods),
    )


def _in_order(report: DatasetReport) -> list[MethodMeasures]:
    methods = [row for row in report.methods if not row.name.endswith(", q = K")]
    return sorted(
        methods, key=lambda row: (row.name != report.own, tuple(Promised).index(promise_of(row.name, report)))
    )


def _kinds_shown(report: DatasetReport, methods: list[MethodMeasures]) -> list[Promised]:
    return [kind for kind in Promised if kind in {promise_of(row.name, report) for row in methods}]


def _notes(report: DatasetReport, methods: list[MethodMeasures]) -> tuple[Note, ...]:
    target = target_text(report)
    areas = ", ".join(f"{one.name} {share_text(one.area)}" for one in report.risk_curves)
    return (
        (f"First the method of the calibration, {report.own}; then the others, calibrated on the same data.",),
        (
            f"Verdicts judge the share right by {interval_note(report)}. ",
            Verdict.MET,
            f": the whole interval lies at or above {target}; ",
            Verdict.MISSED,
            ": it lies below; ",
            Verdict.CANNOT_TELL,
            f": it contains {target}, or {few_text(report)}; {NONE_MARK}: nothing admitted. True: of a true class; "
            "as: of the points predicted as a class; met: in how many of both.",
        ),
        (
            "Promised, for points like the calibration data: "
            + " ".join(f"{kind}: {kind.sentence}." for kind in _kinds_shown(report, methods)),
        ),
        (f"Area under the risk-coverage curve, where less is better: {areas}.",),
    )


def _holds(every: EveryClass) -> Cell:
    if not every.admitted:
        return Cell(verdict=every.verdict, few=True)
    return Cell(f"{every.met}/{every.admitted}", verdict=every.verdict)


def _share(tally: Tally, report: DatasetReport) -> Cell:
    verdict = tally.verdict(report.alpha)
    if not tally.count:
        return Cell(verdict=verdict, few=True, hint=counts_text(tally))
    return Cell(share_text(tally.share), verdict=verdict, few=tally.is_few, hint=counts_text(tally))


def _worst(tallies: tuple[Tally, ...], report: DatasetReport) -> Cell:
    """The share of the worst class, and its name."""
    severity = {Verdict.MISSED: 0, Verdict.CANNOT_TELL: 1, Verdict.MET: 2}
    admitted = [
        (severity[tally.verdict(report.alpha)], tally.share, number)
        for number, tally in enumerate(tallies)
        if tally.count
    ]
    if not admitted:
        return Cell(verdict=Verdict.CANNOT_TELL, few=True)
    *_, number = min(admitted)
    tally, name = tallies[number], report.class_names[number]
    return Cell(
        share_text(tally.share),
        f"({short_names(report.class_names, NAME_WIDTH)[name]})",
        verdict=tally.verdict(report.alpha),
        few=tally.is_few,
        hint=f"{name}: {counts_text(tally)}",
    )


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
    return (_admitted_share(admission.admitted), *right[0], *right[1])


def intervals_text(point_count: int, judged_count: int, document_count: int) -> str:
    """Say how many points a table rests on, and how the intervals of its shares are computed.

    point_count: of mc. judged_count, document_count: points that are decided on, and their documents.
    """
    documents = document_count < judged_count
    of_points = f" of {point_count:,}, drawn at random" if judged_count < point_count else ""
    of_documents = f", {document_count:,} documents" if documents else ""
    drawn = "documents drawn again" if documents else "Wilson's formula"
    return f"{judged_count:,} points of mc{of_points}{of_documents}; 95 % intervals by {drawn}"


def _admitted_share(tally: Tally, beside: str = "") -> Cell:
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
    cell = _admitted_share(tally, beside)
    verdict = None if tally.is_few else tally.verdict(alpha)
    return Cell(cell.figure, cell.beside, verdict=verdict, few=cell.few, hint=cell.hint)


def admission_payload(admission: Admission, names: tuple[str, ...]) -> dict[str, object]:
    """Return how much is admitted, and how much of it is right in each class, as JSON has it."""
    return {
        "admitted": admission.admitted.correct,
        "admitted_share": admission.admitted.share,
        "admitted_interval": list(admission.admitted.interval),
        "per_true_class": _class_payload(admission.right.per_true_class, names),
        "per_predicted_class": _class_payload(admission.right.per_predicted_class, names),
    }


def _class_payload(tallies: tuple[Tally, ...], names: tuple[str, ...]) -> list[dict[str, object]]:
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
