"""What a report says of recent traffic."""

from collections.abc import Iterator
from textwrap import fill

from venn_admit.core.monitoring.drift import QUANTILES, OutcomeCounts, Shift
from venn_admit.core.monitoring.traffic import RECENT, Comparison, Traffic
from venn_admit.core.reasons import Reason
from venn_admit.report.calibration.advice import accuracy_text
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import Section, TextTable, listed, ratio_text
from venn_admit.report.wording import counted, share_text

SHOWN_CALIBRATIONS = 5
"""At most this many calibrations are named: the newest."""

SHOWN_CLASSES = 3
"""The accuracy of at most this many predicted classes is shown: the lowest."""

SHARE_HEADS = {"usable": "usable\nbands", "admitted": "would be\nadmitted"}

HEAD_WIDTH = 9
"""A head of a column of reasons is broken into lines of about this length."""


def traffic_section(report: CalibrationReport) -> Section:
    """Return what was decided on recent traffic, and how it compares with the calibration data."""
    title, traffic = "Recent traffic beside the calibration data", report.traffic
    left_out = (_left_out(report.seen_count),) if report.seen_count else ()
    if traffic is None:
        return Section(title, ("Nothing else has been decided yet.", *left_out))
    comparison = traffic.comparison
    return Section(
        title,
        (
            _decided_by(traffic),
            *left_out,
            *(() if comparison is None else (_quantiles(comparison), _compared_shares(comparison))),
            *report.part.traffic_tables(report),
            _outcomes(report, traffic),
            *_accuracies(report, traffic),
        ),
        (
            *_not_compared(report, traffic),
            *(() if comparison is None else (_comparison_note(comparison),)),
            *report.part.traffic_notes(),
            *(f"{reason}: {reason.meaning}" for reason in _shown_reasons(report, traffic)),
        ),
    )


def _left_out(count: int) -> str:
    are, was = ("is", "was") if count == 1 else ("are", "were")
    return (
        f"{counted(count, 'exemplar')} that {was} decided on {are} left out, as training data or calibration data of "
        "the calibration that decided."
    )


def _comparison_note(comparison: Comparison) -> str:
    return (
        f"Quantiles of {listed(list(comparison.shifts))}. difference: the largest between the two distribution "
        "functions (Kolmogorov-Smirnov); p: the probability of as large a difference by chance, if all points of a "
        "document are alike."
    )


def _decided_by(traffic: Traffic) -> str:
    newest_first = sorted(traffic.decided_by.items(), reverse=True)
    shown = ", ".join(f"{calibration} ({points:,})" for calibration, points in newest_first[:SHOWN_CALIBRATIONS])
    others = len(newest_first) - SHOWN_CALIBRATIONS
    return (
        f"{traffic.points:,} exemplar{' was' if traffic.points == 1 else 's were'} decided on recently, by "
        f"calibration{'s' if len(newest_first) > 1 else ''} {shown}"
        + (f" and {others} older" if others > 0 else "")
        + f"; of each, the newest decision counts. Recent traffic is the newest {RECENT:,} exemplars that were decided "
        "on, or all if they are fewer."
    )


def _not_compared(report: CalibrationReport, traffic: Traffic) -> tuple[str, ...]:
    missing = traffic.points - (traffic.comparison.points if traffic.comparison else 0)
    if not missing:
        return ()
    return (
        f"{missing:,} of these are not compared with {report.part.reference}: their q and d were computed "
        "with other KNN parameters or training data.",
    )


def _quantiles(comparison: Comparison) -> TextTable:
    def rows(name: str, shift: Shift) -> Iterator[tuple[str, ...]]:
        yield f"{name} of {comparison.reference}", *(f"{value:.4g}" for value in shift.calibrated), "", ""
        difference, p_value = share_text(shift.test.statistic), share_text(shift.test.p_value)
        yield f"{name} decided on", *(f"{value:.4g}" for value in shift.decided), difference, p_value

    return TextTable(
        ("", *(f"{100 * level:g} %" for level in QUANTILES), "difference", "p"),
        tuple(row for name, shift in comparison.shifts.items() for row in rows(name, shift)),
        query="quantiles",
    )


def _compared_shares(comparison: Comparison) -> TextTable:
    shares = comparison.shares.values()
    count = next(iter(shares)).calibrated.points
    return TextTable(
        ("", "points", *(SHARE_HEADS[name] for name in comparison.shares)),
        (
            (f"{comparison.reference}", f"{count:,}", *(share_text(pair.calibrated.share) for pair in shares)),
            ("compared", f"{comparison.points:,}", *(share_text(pair.recent.share) for pair in shares)),
        ),
        query="compared_shares",
    )


def _outcomes(report: CalibrationReport, traffic: Traffic) -> TextTable:
    """Counts by reason: those that the method gives, and those that another one gave to points of the traffic."""
    part, count = report.part, report.reference_count
    reasons = _shown_reasons(report, traffic)
    known, admitted = part.rejected_of_reference(report), part.admitted_of_reference
    # The counts of all reasons together may be unknown, and then the admitted points would be read as the rest.
    is_whole = admitted + sum(known.values()) == count
    return TextTable(
        ("", "points", "admitted", *(fill(reason, HEAD_WIDTH, break_long_words=False) for reason in reasons)),
        (
            (
                f"{part.reference}, plain",
                f"{count:,}",
                ratio_text(admitted, count) if is_whole else "",
                *(ratio_text(known[reason], count) if reason in known else "" for reason in reasons),
            ),
            *(_outcome_row(outcome, reasons) for outcome in traffic.outcomes),
        ),
        query="outcomes",
    )


def _shown_reasons(report: CalibrationReport, traffic: Traffic) -> list[Reason]:
    given = {reason for found in traffic.outcomes for reason, points in found.rejected.items() if points}
    return [reason for reason in Reason if reason in report.part.reasons or reason in given]


def _accuracies(report: CalibrationReport, traffic: Traffic) -> tuple[str, ...]:
    if not traffic.accuracy:
        return ()
    overall, *per_class = traffic.accuracy
    classes = "; ".join(
        f"{report.class_names[found.predicted]}, {accuracy_text(found)}"
        for found in sorted(per_class, key=lambda found: found.right / found.points)[:SHOWN_CLASSES]
        if found.predicted is not None
    )
    return (
        "Share right of what this calibration admitted, by labels of a random sample or of all points: "
        f"{accuracy_text(overall)}. "
        f"Lowest by predicted class: {classes}.",
    )


def _outcome_row(outcome: OutcomeCounts, reasons: list[Reason]) -> tuple[str, ...]:
    name = ("weighted" if outcome.weighted else "plain") + (", q = K" if outcome.require_full_match else "")
    counts = (outcome.admitted, *(outcome.rejected[reason] for reason in reasons))
    return (name, f"{outcome.points:,}", *(ratio_text(count, outcome.points) for count in counts))
