"""What a report says of recent traffic."""

from collections.abc import Iterator

from venn_admit.service.core.monitoring.drift import QUANTILES, OutcomeCounts, Shift
from venn_admit.service.core.monitoring.traffic import Comparison, Traffic
from venn_admit.service.core.types import Reason
from venn_admit.service.report.calibration.advice import accuracy_text
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.sections import Section, TextTable, ratio_text
from venn_admit.service.report.evaluation.wording import share_text

SHOWN_CALIBRATIONS = 5
"""At most this many calibrations are named: the newest."""

SHOWN_CLASSES = 3
"""The accuracy of at most this many predicted classes is shown: the lowest."""

REASON_HEADS = {
    Reason.BAND_BELOW_KAPPA: "band\nbelow\nkappa",
    Reason.SET_NOT_SINGLETON: "set not a\nsingleton",
    Reason.PROBABILITY_BELOW_THRESHOLD: "probability\nbelow\nthreshold",
    Reason.MATCH_COUNT_BELOW_K: "q below\nK",
}


def traffic_section(report: CalibrationReport) -> Section:
    """Return what was decided on recent traffic, and how it compares with vp."""
    title, traffic = "What was decided recently, compared with vp", report.traffic
    left_out = (
        (
            f"{report.seen_count:,} exemplars that were decided on are left out, because they are training data, or "
            "calibration data of the calibration that decided on them.",
        )
        if report.seen_count
        else ()
    )
    if traffic is None:
        return Section(title, ("Nothing else has been decided yet.", *left_out))
    comparison = traffic.comparison
    return Section(
        title,
        (
            _decided_by(traffic),
            *left_out,
            *(() if comparison is None else (_quantiles(comparison), _compared_shares(comparison))),
            _outcomes(report, traffic),
            *_accuracies(report, traffic),
        ),
        (
            *_not_compared(traffic),
            *(() if comparison is None else _COMPARISON_NOTES),
            "Shares admitted, and rejected by reason, as they were decided. There are no decisions on vp, only its "
            "bands and sets.",
        ),
    )


_COMPARISON_NOTES = (
    "Quantiles of q and d. difference: the largest between the two distribution functions (Kolmogorov-Smirnov); p: the "
    "probability of as large a difference by chance, if all points of a document are alike.",
    "would be admitted: by plain Venn-ADMIT under this calibration, whatever calibration and options decided; each "
    "point of vp is left out of its category.",
)


def _decided_by(traffic: Traffic) -> str:
    newest_first = sorted(traffic.decided_by.items(), reverse=True)
    shown = ", ".join(f"{calibration} ({points:,})" for calibration, points in newest_first[:SHOWN_CALIBRATIONS])
    others = len(newest_first) - SHOWN_CALIBRATIONS
    return (
        f"{traffic.points:,} exemplar{' was' if traffic.points == 1 else 's were'} decided on recently, by "
        f"calibration{'s' if len(newest_first) > 1 else ''} {shown}"
        + (f" and {others} older" if others > 0 else "")
        + "; of each, the newest decision counts."
    )


def _not_compared(traffic: Traffic) -> tuple[str, ...]:
    missing = traffic.points - (traffic.comparison.points if traffic.comparison else 0)
    if not missing:
        return ()
    return (
        f"{missing:,} of these are not compared with vp: their q and d were computed with other KNN parameters or "
        "training data.",
    )


def _quantiles(comparison: Comparison) -> TextTable:
    def rows(name: str, shift: Shift) -> Iterator[tuple[str, ...]]:
        yield f"{name} of vp", *(f"{value:.4g}" for value in shift.calibrated), "", ""
        difference, p_value = share_text(shift.test.statistic), share_text(shift.test.p_value)
        yield f"{name} decided on", *(f"{value:.4g}" for value in shift.decided), difference, p_value

    return TextTable(
        ("", *(f"{100 * level:g} %" for level in QUANTILES), "difference", "p"),
        (*rows("q", comparison.match_count), *rows("d", comparison.distance)),
    )


def _compared_shares(comparison: Comparison) -> TextTable:
    usable, admitted = comparison.usable, comparison.admitted
    return TextTable(
        ("", "points", "usable\nbands", "would be\nadmitted"),
        (
            ("vp", f"{usable.vp.points:,}", share_text(usable.vp.share), share_text(admitted.vp.share)),
            ("compared", f"{comparison.points:,}", share_text(usable.recent.share), share_text(admitted.recent.share)),
        ),
    )


def _outcomes(report: CalibrationReport, traffic: Traffic) -> TextTable:
    vp, usable = report.snapshot.vp_count, int(report.partitions.usable.sum())
    starved, several = ratio_text(vp - usable, vp), ratio_text(usable - int(report.partitions.singleton.sum()), vp)
    return TextTable(
        ("", "points", "admitted", *REASON_HEADS.values()),
        (("vp", f"{vp:,}", "", starved, several, "", ""), *map(_outcome_row, traffic.outcomes)),
    )


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


def _outcome_row(outcome: OutcomeCounts) -> tuple[str, ...]:
    name = ("weighted" if outcome.weighted else "plain") + (", q = K" if outcome.require_full_match else "")
    shares = (ratio_text(count, outcome.points) for count in (outcome.admitted, *outcome.rejected))
    return (name, f"{outcome.points:,}", *shares)
