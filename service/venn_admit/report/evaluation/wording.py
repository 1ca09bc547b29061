"""The words and figures that the terminal, the charts and the page share."""

from collections.abc import Collection
from functools import lru_cache
from itertools import accumulate, takewhile
from math import floor, isnan, log10
from unicodedata import east_asian_width

from venn_admit.core.evaluation.curves import AccuracyGrid
from venn_admit.core.evaluation.measures import ClassTallies, MethodMeasures
from venn_admit.core.evaluation.points import KNN, LOCALIZER
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, Tally, Verdict
from venn_admit.report.evaluation.dataset import CalibrationFigures, DatasetReport
from venn_admit.report.evaluation.evaluated import edge_names
from venn_admit.report.wording import counted

TRUE, PREDICTED = "true class", "predicted as"
"""Headings for the two kinds of class that shares are shown for."""

SIDE_BY_SIDE = 2
"""Up to this many classes, both kinds share one table."""

MARKS = {Verdict.MET: "✓", Verdict.MISSED: "✗", Verdict.CANNOT_TELL: "?"}
FEW_MARK = MARKS[Verdict.CANNOT_TELL]
"""Marks figures of too few points in tables without verdicts."""


def score_text(score: float) -> str:
    """Return a score or probability with four digits, or more where it would be rounded to 1.

    >>> [score_text(score) for score in (0.90712, 0.999964, 1.0, 0.0)]
    ['0.9071', '0.999964', '1', '0']
    """
    return f"{score:.{1 - floor(log10(1 - score))}f}" if 0.9995 <= score < 1 else f"{score:.4g}"


def admits_from_text(threshold: float | None) -> str:
    """Return the score from which a class is admitted."""
    return "never" if threshold is None else score_text(threshold)


def interval_text(interval: tuple[float, float]) -> str:
    """Return the ends of an interval, rounded to three digits, without leading zeros.

    >>> [interval_text((0.9074, 0.9931)), interval_text((0.99, 1.0)), interval_text((float("nan"), float("nan")))]
    ['.907-.993', '.990-1.00', '-']
    """
    if isnan(interval[0]):
        return "-"
    return "-".join("1.00" if end >= 0.9995 else f"{end:.3f}".removeprefix("0") for end in interval)


def verdict_on_all(verdicts: Collection[Verdict]) -> Verdict:
    """Return missed if any is missed, met if all of one or more are met, and otherwise cannot tell."""
    if Verdict.MISSED in verdicts:
        return Verdict.MISSED
    return Verdict.MET if set(verdicts) == {Verdict.MET} else Verdict.CANNOT_TELL


def counts_text(tally: Tally) -> str:
    """The counts behind a share, such as `190 of 200 points; N = 488`."""
    documents = "" if tally.documents is None else f" of {counted(tally.documents, 'document')}"
    return f"{tally.correct} of {counted(tally.count, 'point')}{documents}; N = {tally.total}"


def note_text(part: str | Verdict) -> str:
    """A part of a note as text: of a verdict, its mark and its words."""
    return f"{MARKS[part]} {part.words}" if isinstance(part, Verdict) else part


def kind_tallies(measured: ClassTallies, kind: str) -> tuple[Tally, ...]:
    """Return the tallies (C,) of `TRUE` or of `PREDICTED` classes."""
    return measured.per_true_class if kind == TRUE else measured.per_predicted_class


def size_strata(report: DatasetReport) -> list[tuple[int, int]]:
    """Return the strata of set sizes, least and most, that some method which gives sets has sets in, ascending."""
    rows = (row for row in report.methods if row.name in report.set_methods)
    return sorted({(stratum.least, stratum.most) for row in rows for stratum in row.by_size})


def size_tally(measures: MethodMeasures, stratum: tuple[int, int]) -> Tally:
    """Return the coverage of the sets of one method in a stratum."""
    of_stratum = {(size.least, size.most): size.covered for size in measures.by_size}
    return of_stratum.get(stratum, Tally(0, 0, measures.coverage.overall.total))


def size_name(stratum: tuple[int, int]) -> str:
    """Return a stratum as a heading.

    >>> [size_name((1, 1)), size_name((2, 3))]
    ['size 1', 'sizes 2-3']
    """
    least, most = stratum
    return f"size {least}" if least == most else f"sizes {least}-{most}"


def shorten(name: str, width: int) -> str:
    """Return the name, cut in the middle to `width` columns; a wide character, as in Chinese, takes two.

    >>> shorten("mitochondrion", 8)
    'mito…ion'
    >>> shorten("线粒体基质", 8)
    '线粒…质'
    """
    if len(name) <= width and sum(map(_columns, name)) <= width:
        return name
    start = _fitting(name[:width], width // 2)
    end = _fitting(name[: -width - 1 : -1], (width - 1) // 2)
    return f"{name[:start].rstrip()}…{name[len(name) - end :].lstrip()}"


_LEAST_WIDTH = 4
"""Names that are alike in so few columns stay so."""


@lru_cache(maxsize=64)
def short_names(names: tuple[str, ...], width: int) -> dict[str, str]:
    """Return names as `shorten` cuts them; those that are alike then begin where they differ.

    >>> short_names(("refund asked for", "refund granted", "outage"), 8)
    {'refund asked for': 'refu…for', 'refund granted': 'refu…ted', 'outage': 'outage'}
    >>> list(short_names(("refund, first half", "refund, other half"), 8).values())
    ['…fir…alf', '…oth…alf']
    """
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(shorten(name, width), []).append(name)
    found: dict[str, str] = {}
    for cut, same in alike.items():
        if len(same) == 1 or width <= _LEAST_WIDTH:
            found |= dict.fromkeys(same, cut)
        else:
            start = len(list(takewhile(lambda letters: len(set(letters)) == 1, zip(*same, strict=False))))
            rest = short_names(tuple(name[start:] for name in same), width - 1)
            found |= {name: "…" + rest[name[start:]].removeprefix("…") for name in same}
    return found


def _fitting(name: str, width: int) -> int:
    """How many characters of the start of a name fit in some columns."""
    return sum(end <= width for end in accumulate(map(_columns, name)))


def _columns(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1


def target_text(report: DatasetReport) -> str:
    """Return 1 - alpha without trailing zeros."""
    return f"{report.target.normalize():f}"


def few_text(report: DatasetReport) -> str:
    """Say what is too few to judge."""
    return f"under {MINIMUM_TO_JUDGE} {'points' if report.document_count is None else 'documents'}"


def interval_note(report: DatasetReport) -> str:
    """Say which intervals of shares are shown."""
    return _intervals_of(report.document_count)


def _intervals_of(document_count: int | None) -> str:
    if document_count is None:
        return "95 % Wilson intervals"
    return f"95 % intervals from {document_count:,} resampled documents"


def accuracy_note(document_count: int | None) -> str:
    """Say which intervals of accuracies and of F0.5 are shown; document_count: None if points are independent."""
    note = _intervals_of(document_count)
    return f"{note}; of F0.5, from resampled points" if document_count is None else note


def calibration_data_note(data: CalibrationFigures) -> str:
    """Say what the calibration data are, and how they were predicted."""
    names = [row.name for row in data.accuracy]
    sentence = f"The calibration data are the {data.point_count:,} points of mc and vp"
    fitted = "neither network nor KNN was" if KNN in names else "the network was not"
    localized = ", and the localizer predicts each point of vp from the other folds of it" if LOCALIZER in names else ""
    return f"{sentence}; {fitted} fitted on them{localized}."


def extent(report: DatasetReport) -> str:
    """Say how many points were evaluated, and in how many documents if points of one are not independent."""
    points = f"{report.point_count:,} labelled point{'' if report.point_count == 1 else 's'}"
    if report.document_count is None:
        return points
    return f"{points} of {report.document_count:,} document{'' if report.document_count == 1 else 's'}"


def reservations(report: DatasetReport) -> tuple[str, ...]:
    """Return in a sentence each what limits the evaluation: rows that were left out, labels, methods."""
    return tuple(filter(None, (_left_out(report), _chosen(report), _without_vectors(report))))


def _left_out(report: DatasetReport) -> str:
    """Return one sentence if rows of the evaluation set were not evaluated; otherwise nothing."""
    if report.left_out == 0:
        return ""
    subject = "1 row is left out: it is" if report.left_out == 1 else f"{report.left_out:,} rows are left out: they are"
    return f"{subject} training or calibration data of this calibration."


def _chosen(report: DatasetReport) -> str:
    """Return one sentence if labels are not those of a random sample; otherwise nothing."""
    if report.chosen == 0:
        return ""
    return (
        f"{report.chosen:,} of the labels were selected or given in a review. Each counts as one here, so the shares "
        "are not those of the traffic; the monitor counts each as it was chosen."
    )


def _without_vectors(report: DatasetReport) -> str:
    """Return one sentence if the classifier has logits only, which leaves methods out; otherwise nothing."""
    if report.neighbour_count is not None:
        return ""
    return (
        "The classifier has logits only, so what needs its vectors is left out: KNN, Conf_BASE, LocalConf, ADMIT, "
        "Venn-ADMIT, Venn-Abers with the reliability score, and whatever is shown by q and d."
    )


def sets_note(report: DatasetReport) -> str:
    """Return what the sets are of methods that do not give sets."""
    if report.neighbour_count is None:
        return "A set of the network holds only its prediction."
    return (
        "A set of the KNN holds only its prediction. Venn-ADMIT says nothing about a point that it rejects, so such a "
        "point counts as a set of all classes."
    )


def parameters_text(report: DatasetReport) -> str:
    """Return the parameters of the comparison methods, or nothing."""
    named = "; ".join(f"{name} {text}" for name, text in report.parameters)
    return f"Parameters of the comparison methods: {named}." if named else ""


def hidden_classes(report: DatasetReport, shown: tuple[int, ...]) -> str:
    """Say which classes a table leaves out, or nothing."""
    if len(shown) == len(report.class_names):
        return ""
    return (
        f"{len(shown)} of {len(report.class_names)} classes shown: those that miss the target, then those with the "
        f"lowest share right under {report.own}; those of which {few_text(report)} are admitted come last."
    )


def match_bin_names(grid: AccuracyGrid) -> list[str]:
    """Return the names of the bins of q in a grid."""
    return edge_names(int(edge) for edge in grid.match_edges)
