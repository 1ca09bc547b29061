"""The words and figures that the terminal, the charts and the page have in common."""

from itertools import pairwise
from math import isnan

from service.core.curves import AccuracyGrid
from service.core.tallies import FEW, SelectiveAccuracy, Tally, Verdict
from service.report.dataset import RECOMMENDED, DatasetReport

TRUE, PREDICTED = "true class", "predicted as"
"""The two kinds of class a share is shown for, as headings."""

SIDE_BY_SIDE = 2
"""Up to so many classes, both kinds share one table."""

ONE_LINE = 4
"""Up to so many classes, a judged cell keeps its two figures on one line."""

MARKS = {Verdict.WELL: "✓", Verdict.UNDER: "✗", Verdict.FEW: "?"}


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


def tally_text(tally: Tally) -> str:
    """Share correct and, in brackets, n/N.

    >>> tally_text(Tally(73, 75, 500))
    '.973 (.150)'
    """
    return f"{share_text(tally.share)} ({share_text(tally.portion)})"


def judged_text(tally: Tally, report: DatasetReport, separator: str = " ") -> str:
    """Mark, share correct and n/N of a cell, the figures parted by `separator`; a dash without points."""
    if tally.count == 0:
        return "-"
    return f"{MARKS[tally.verdict(report.alpha)]} {tally_text(tally).replace(' ', separator)}"


def kind_tallies(selective: SelectiveAccuracy, kind: str) -> tuple[Tally, ...]:
    """The tallies (C,) of `TRUE` or of `PREDICTED` classes."""
    return selective.per_true_class if kind == TRUE else selective.per_predicted_class


def method_label(name: str) -> str:
    """The name of a method; a "q = K" variant stands under its method and says only how it differs.

    >>> method_label("Venn-ADMIT weighted, q = K")
    '  and q = K'
    """
    return "  and q = K" if name.endswith(", q = K") else name


def shorten(name: str, width: int) -> str:
    """The name, cut with an ellipsis to `width` characters.

    >>> shorten("mitochondrion", 8)
    'mitocho…'
    """
    return name if len(name) <= width else name[: width - 1].rstrip() + "…"


def target_text(report: DatasetReport) -> str:
    """1 - alpha, in as few digits as it has."""
    return f"{report.target.normalize():f}"


def legend(report: DatasetReport) -> str:
    """What the marks of a judged cell mean."""
    return (
        f"{MARKS[Verdict.WELL]} at least {target_text(report)} correct,  "
        f"{MARKS[Verdict.UNDER]} less,  {MARKS[Verdict.FEW]} under {FEW} points,  - none"
    )


def hidden_classes(report: DatasetReport, shown: tuple[int, ...]) -> str:
    """Which classes a table leaves out, or nothing."""
    if len(shown) == len(report.class_names):
        return ""
    return (
        f"{len(shown)} of {len(report.class_names)} classes shown: those with the lowest share correct under "
        f"{RECOMMENDED}."
    )


def headline(report: DatasetReport) -> str:
    """One sentence: what the recommended method admits, and how much of it is right."""
    admitted = report.method(RECOMMENDED).overall
    if admitted.count == 0:
        return f"{RECOMMENDED} admits none of {report.point_count:,} points."
    return (
        f"{RECOMMENDED} admits {admitted.count:,} of {report.point_count:,} points ({admitted.portion:.1%}); "
        f"{admitted.share:.1%} of these are correct, against a target of {float(report.target * 100):g}% "
        f"and {report.method('KNN').overall.share:.1%} when every point is admitted."
    )


def class_gap(report: DatasetReport) -> str:
    """One sentence where every judged predicted class holds and a true class does not; else nothing."""
    measured = report.method(RECOMMENDED)
    by_prediction = {tally.verdict(report.alpha) for tally in measured.per_predicted_class}
    short = [
        (tally.share, f"{name} ({share_text(tally.share)} of {tally.count:,})")
        for name, tally in zip(report.class_names, measured.per_true_class, strict=True)
        if tally.verdict(report.alpha) is Verdict.UNDER
    ]
    if not short or Verdict.UNDER in by_prediction or Verdict.WELL not in by_prediction:
        return ""
    _, worst = min(short)
    others = f" and {len(short) - 1} more" if len(short) > 1 else ""
    return (
        f"Every predicted class holds the target, yet among points of true class {worst}{others} it is missed: "
        "what is calibrated is the share correct among points predicted alike, which a rare true class can "
        "fail; higher thresholds for the classes it is mistaken for ask for more."
    )


def match_bin_names(grid: AccuracyGrid) -> list[str]:
    """Names of the bins of q, such as "0", "1-5" and "25"."""
    edges = [int(edge) for edge in grid.match_edges]
    return [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(edges)]
