"""The words and figures that the terminal, the charts and the page have in common."""

from collections.abc import Iterable
from itertools import accumulate, pairwise
from math import isnan
from unicodedata import east_asian_width

from venn_admit.service.core.evaluation.curves import AccuracyGrid
from venn_admit.service.core.evaluation.measures import ClassTallies, MethodMeasures
from venn_admit.service.core.evaluation.tallies import MINIMUM_TO_JUDGE, Tally, Verdict
from venn_admit.service.report.evaluation.dataset import RECOMMENDED, DatasetReport

TRUE, PREDICTED = "true class", "predicted as"
"""The two kinds of class a share is shown for, as headings."""

SIDE_BY_SIDE = 2
"""Up to so many classes, both kinds share one table."""

SETS_NOTE = (
    "The KNN's sets hold its prediction alone. What Venn-ADMIT rejects it says nothing about: such a point counts "
    "as a set of all classes."
)
"""What the sets are of methods that give none themselves."""

MARKS = {Verdict.MET: "✓", Verdict.MISSED: "✗", Verdict.CANNOT_TELL: "?"}
FEW_MARK = MARKS[Verdict.CANNOT_TELL]
"""Marks figures of too few points where nothing is judged."""


def share_text(share: float) -> str:
    """A share at three digits without the leading zero; never rounded onto 0 or 1; a dash for NaN.

    >>> [share_text(share) for share in (0.9734, 1.0, 0.99996, 0.0001, 0.0, float("nan"))]
    ['.973', '1.00', '>.999', '<.001', '.000', '-']
    """
    if isnan(share):
        return "-"
    if 0.9995 <= share <= 1:
        return "1.00" if share == 1 else ">.999"
    if 0 < share < 0.0005:
        return "<.001"
    return f"{share:.3f}".removeprefix("0")


def interval_text(interval: tuple[float, float]) -> str:
    """The ends of an interval, rounded to three digits, without leading zeros.

    >>> [interval_text((0.9074, 0.9931)), interval_text((0.99, 1.0)), interval_text((float("nan"), float("nan")))]
    ['.907-.993', '.990-1.00', '-']
    """
    if isnan(interval[0]):
        return "-"
    return "-".join("1.00" if end >= 0.9995 else f"{end:.3f}".removeprefix("0") for end in interval)


def note_text(part: str | Verdict) -> str:
    """A part of a note as text: of a verdict, its mark and its words."""
    return f"{MARKS[part]} {part.words}" if isinstance(part, Verdict) else part


def kind_tallies(measured: ClassTallies, kind: str) -> tuple[Tally, ...]:
    """The tallies (C,) of `TRUE` or of `PREDICTED` classes."""
    return measured.per_true_class if kind == TRUE else measured.per_predicted_class


def size_strata(report: DatasetReport) -> list[tuple[int, int]]:
    """The strata of set sizes, least and most, that a set of some method falls into, ascending."""
    return sorted({(stratum.least, stratum.most) for row in report.methods for stratum in row.by_size})


def size_tally(measures: MethodMeasures, stratum: tuple[int, int]) -> Tally:
    """Coverage of the sets of one method in a stratum."""
    of_stratum = {(size.least, size.most): size.covered for size in measures.by_size}
    return of_stratum.get(stratum, Tally(0, 0, measures.coverage.overall.total))


def size_name(stratum: tuple[int, int]) -> str:
    """A stratum as a heading.

    >>> [size_name((1, 1)), size_name((2, 3))]
    ['size 1', 'sizes 2-3']
    """
    least, most = stratum
    return f"size {least}" if least == most else f"sizes {least}-{most}"


def shorten(name: str, width: int) -> str:
    """The name, cut with an ellipsis to `width` columns, of which a wide character, as in Chinese, takes two.

    >>> shorten("mitochondrion", 8)
    'mitocho…'
    >>> shorten("线粒体基质", 8)
    '线粒体…'
    """
    if sum(map(_columns, name)) <= width:
        return name
    ends = list(accumulate(map(_columns, name)))
    return name[: sum(end <= width - 1 for end in ends)].rstrip() + "…"


def _columns(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1


def target_text(report: DatasetReport) -> str:
    """1 - alpha, in as few digits as it has."""
    return f"{report.target.normalize():f}"


def few_text(report: DatasetReport) -> str:
    """What is too few to judge."""
    return f"under {MINIMUM_TO_JUDGE} {'points' if report.document_count is None else 'documents'}"


def interval_note(report: DatasetReport) -> str:
    """Which intervals of shares are shown."""
    if report.document_count is None:
        return "95 % Wilson intervals"
    return f"95 % intervals from {report.document_count:,} resampled documents"


def accuracy_note(report: DatasetReport) -> str:
    """Which intervals of accuracies and of F0.5 are shown."""
    note = interval_note(report)
    return f"{note}; of F0.5, from resampled points" if report.document_count is None else note


def extent(report: DatasetReport) -> str:
    """How much was evaluated.

    Documents are named where the points of one are not independent.
    """
    points = f"{report.point_count:,} labelled point{'' if report.point_count == 1 else 's'}"
    if report.document_count is None:
        return points
    return f"{points} of {report.document_count:,} document{'' if report.document_count == 1 else 's'}"


def left_out(report: DatasetReport) -> str:
    """One sentence where rows of the evaluation set were not evaluated; else nothing."""
    if report.left_out == 0:
        return ""
    subject = "1 row is left out: it is" if report.left_out == 1 else f"{report.left_out:,} rows are left out: they are"
    return f"{subject} training or calibration data of this calibration."


def parameters_text(report: DatasetReport) -> str:
    """The parameters of the comparison methods, or nothing."""
    named = "; ".join(f"{name} {text}" for name, text in report.parameters)
    return f"Parameters of the comparison methods: {named}." if named else ""


def hidden_classes(report: DatasetReport, shown: tuple[int, ...]) -> str:
    """Which classes a table leaves out, or nothing."""
    if len(shown) == len(report.class_names):
        return ""
    return (
        f"{len(shown)} of {len(report.class_names)} classes shown: those that miss the target, then those with the "
        f"lowest share correct under {RECOMMENDED}."
    )


def match_bin_names(grid: AccuracyGrid) -> list[str]:
    """Names of the bins of q in a grid."""
    return edge_names(int(edge) for edge in grid.match_edges)


def edge_names(edges: Iterable[int]) -> list[str]:
    """Names of the bins of q from their lower edges and, last, K + 1.

    >>> edge_names([0, 1, 6, 25, 26])
    ['0', '1-5', '6-24', '25']
    """
    return [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(edges)]
