"""What is right of what a calibration admits of its own data, class by class."""

from collections.abc import Iterator
from typing import Any

from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.core.monitoring.traffic import Traffic
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import ROW_NAME_WIDTH, Picture, Section, TextTable, listed, ratio_text
from venn_admit.report.evaluation.dataset import MOST_CLASSES
from venn_admit.report.evaluation.wording import MARKS, interval_text, short_names, verdict_on_all
from venn_admit.report.wording import share_text

QUERY = "class_coverage"

MOST_NAMED = 3
"""At most this many classes are named in a sentence."""


def coverage_pictures(report: CalibrationReport) -> list[Picture]:
    """Return the picture of coverage against the admitted share; none if that has no target."""
    if not _has_target(report):
        return []

    def draw() -> Any:
        from venn_admit.report.charts.charts import class_coverage_figure

        return class_coverage_figure(report.coverage, report.class_names, report.snapshot.alpha)

    return [Picture("coverage", _caption(report), draw)]


def _caption(report: CalibrationReport) -> str:
    target, deciding = 1 - report.snapshot.alpha, report.part.deciding
    said = (
        f"Share right of what plain probabilities would admit of {report.part.reference}, as the least that admits "
        f"falls, by true class and by predicted class, with 95 % intervals; the dotted line is 1 - alpha = {target}. A "
        f"mark shows what {deciding.by} would admit ({deciding.apart}): a disc if the interval lies above the line, a "
        "cross if it lies below, a ring if this sample cannot tell."
    )
    return " ".join([said, *_hidden(report)])


def _hidden(report: CalibrationReport) -> list[str]:
    """What is said if some classes are neither drawn nor listed."""
    classes = len(report.class_names)
    if classes <= MOST_CLASSES:
        return []
    return [f"{len(report.coverage.shown)} of {classes} classes shown: those of which the worst is admitted."]


def verdict(report: CalibrationReport) -> tuple[Verdict, str]:
    """Return what is certified, or whether what is admitted of the data meets the target in every predicted class."""
    if report.part.certified is not None:
        return Verdict.MET, report.part.certified
    alpha, tallies = report.snapshot.alpha, report.coverage.admitted.per_predicted_class
    by = report.part.deciding.by
    judged = [(c, tally.verdict(alpha)) for c, tally in enumerate(tallies) if tally.count]
    if not judged:
        return Verdict.CANNOT_TELL, f"{by.capitalize()} would admit nothing."
    overall = verdict_on_all([found for _, found in judged])
    if overall is Verdict.MET:
        return overall, f"Every predicted class meets the target of {1 - alpha} by {by}."
    named = _named(report, [c for c, found in judged if found is overall])
    if overall is Verdict.MISSED:
        return overall, f"Predictions of {named} miss the target of {1 - alpha} by {by}."
    return overall, f"This sample cannot judge predictions of {named} by {by}."


def key_figures(report: CalibrationReport) -> list[tuple[str, str]]:
    """Return the figures that stand with the verdict: each as text, and what it is."""
    found, target = report.coverage, 1 - report.snapshot.alpha
    overall, every = found.admitted.overall, sum(curve.total for curve in found.curves_by_true_class)
    decided = (_percent(overall.count, every), f"of the calibration data admitted by {report.part.deciding.by}")
    right = f"of these right (target {float(target):.1%})" if _has_target(report) else "of these right"
    if (weighted := report.part.weighted) is None:
        figures = [decided, (_percent(overall.correct, overall.count), right)]
    else:
        figures = [
            (
                _percent(weighted.admitted, weighted.points),
                "of the calibration data admitted with weights, the default",
            ),
            (_percent(weighted.right, weighted.admitted), right),
            decided,
        ]
    if report.traffic is not None:
        points = sum(outcome.points for outcome in report.traffic.outcomes)
        admitted = sum(outcome.admitted for outcome in report.traffic.outcomes)
        figures.append((_percent(admitted, points), f"of traffic admitted{_by_others(report, report.traffic)}"))
    return figures


def _by_others(report: CalibrationReport, traffic: Traffic) -> str:
    others = traffic.decided_by.keys() - {report.snapshot.id}
    if not others:
        return ""
    part = " in part" if report.snapshot.id in traffic.decided_by else ""
    return f",{part} by {'another calibration' if len(others) == 1 else 'other calibrations'}"


def _has_target(report: CalibrationReport) -> bool:
    """Whether the promise is about the share right of such data, not about what errors cost or about other traffic."""
    return not (report.part.promised is Promised.LOSS or report.part.promised.is_for_other_shares)


def _percent(count: int, total: int) -> str:
    return f"{count / total:.1%}" if total else "-"


def _named(report: CalibrationReport, classes: list[int]) -> str:
    short = short_names(report.class_names, ROW_NAME_WIDTH)
    names = [f"'{short[report.class_names[c]]}'" for c in classes[:MOST_NAMED]]
    more = len(classes) - len(names)
    return listed([*names, *([f"{more} more"] if more else [])])


def coverage_section(report: CalibrationReport) -> Section:
    """Return what the marks of the picture say, as a table."""
    target, split, deciding = 1 - report.snapshot.alpha, report.part.reference, report.part.deciding
    judged = (f"at least\n{target}",) if _has_target(report) else ()
    heads = ("class", f"points\nof {split}", "admitted", "right", "95 % interval", *judged)
    rows = tuple(_row(report, name, points, tally) for name, points, tally in _rows(report))
    return Section(
        f"How much is right in each class by {deciding.by}",
        (TextTable(heads, rows, last_is_total=True, query=QUERY),),
        (
            f"Promised{report.part.promised.where}: {report.promise_sentence}.",
            f"admitted: the share that {deciding.by} would admit ({deciding.apart}); right: the share of these.",
            *_hidden(report),
        ),
    )


def coverage_payload(report: CalibrationReport) -> list[dict[str, Any]]:
    """Return the figures of every class for programs."""
    found = report.coverage
    kinds = (
        ("true", found.curves_by_true_class, found.admitted.per_true_class),
        ("predicted", found.curves_by_predicted_class, found.admitted.per_predicted_class),
    )
    rows = [
        (kind, report.class_names[c], curves[c].total, tallies[c])
        for kind, curves, tallies in kinds
        for c in range(len(report.class_names))
    ]
    return [
        {
            "per": kind,
            "class": name,
            "points": points,
            "admitted": tally.count,
            "right": tally.correct,
            "interval": list(tally.interval),
            "verdict": str(tally.verdict(report.snapshot.alpha)) if _has_target(report) else None,
        }
        for kind, name, points, tally in [*rows, ("all", None, found.curve_overall.total, found.admitted.overall)]
    ]


def _rows(report: CalibrationReport) -> Iterator[tuple[str, int, Tally]]:
    """Yield the name of each row, its points, and the share right of those that are admitted."""
    found, short = report.coverage, short_names(report.class_names, ROW_NAME_WIDTH)
    for c in found.shown:
        name = short[report.class_names[c]]
        yield f"predicted {name}", found.curves_by_predicted_class[c].total, found.admitted.per_predicted_class[c]
    for c in found.shown:
        name = short[report.class_names[c]]
        yield f"true {name}", found.curves_by_true_class[c].total, found.admitted.per_true_class[c]
    yield "all", found.curve_overall.total, found.admitted.overall


def _row(report: CalibrationReport, name: str, points: int, tally: Tally) -> tuple[str, ...]:
    verdict = tally.verdict(report.snapshot.alpha)
    return (
        name,
        f"{points:,}",
        ratio_text(tally.count, points),
        share_text(tally.share),
        interval_text(tally.interval) if tally.count else "",
        *((f"{MARKS[verdict]} {verdict.words}" if tally.count else "",) if _has_target(report) else ()),
    )
