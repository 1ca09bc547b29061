"""What a report on a calibration advises: errors first, then what keeps points from being admitted, then upkeep."""

from collections.abc import Iterator

from venn_admit.service.core.calibrators.usable_bands import NEARLY_NOTHING
from venn_admit.service.core.monitoring.traffic import Accuracy, Comparison, Traffic
from venn_admit.service.core.types import Reason
from venn_admit.service.report.calibration.contents import CalibrationReport
from venn_admit.service.report.calibration.setting_command import calibrate_command
from venn_admit.service.report.evaluation.wording import share_text

ENOUGH_REJECTED = 10
"""So many points that are all rejected are a finding; fewer happen to be, since to reject one point is not rare."""
HARDLY_ANY = 0.05
"""Less than this share admitted of recent traffic, where at least twice as much of vp would be, is worth a word."""


def advice(report: CalibrationReport) -> list[str]:
    """What to do next, a paragraph each, what matters most first; nothing where all is as it should be."""
    if not report.snapshot.is_current:
        return [f"This calibration is retired: `venn-admit report {report.classifier}` shows what is current."]
    return [*_errors(report), *_rejections(report), *_unlike_vp(report), *_upkeep(report)]


def _errors(report: CalibrationReport) -> Iterator[str]:
    """Labels say that what was admitted is wrong too often."""
    target = 1 - float(report.snapshot.settings.alpha)
    below = [found for found in report.traffic.accuracy if found.is_below(target)] if report.traffic else []
    if below:
        shares = "; ".join(f"{_whose(report, found)}, {accuracy_text(found)}" for found in below)
        yield (
            f"Admitted predictions are wrong too often: 1 - alpha = {target:g} were promised right, and by the labels "
            f"that are known this share is lower: {shares}. Do not act on them before you have recalibrated: "
            f"{_label_sample(report)}"
        )


def _rejections(report: CalibrationReport) -> Iterator[str]:
    """Everything is rejected, or nearly, of vp or of recent traffic."""
    name, snapshot, usable = report.classifier, report.snapshot, int(report.partitions.usable.sum())
    if report.other_settings is not None:
        proposed, share = report.other_settings.proposal()
        yield (
            f"Nearly everything is rejected: {share_text(usable / snapshot.vp_count)} of vp lie in usable bands, which "
            f"hold at least kappa = {snapshot.settings.kappa:,} points of each class in mc. "
            f"`{calibrate_command(name, proposed, report.neighbour_count)}` would leave {share_text(share)} of the "
            "points usable; or ingest more held-out data."
        )
    elif report.admitted_of_vp < NEARLY_NOTHING * snapshot.vp_count:
        everything = "Nearly everything" if report.admitted_of_vp else "Everything"
        yield (
            f"{everything} is rejected: {share_text(usable / snapshot.vp_count)} of vp lie in usable bands, and yet "
            f"{share_text(report.admitted_of_vp / snapshot.vp_count)} of its points would be admitted, because sets "
            "hold several classes or too few of a category are right. A larger alpha, coarser bins of q, more held-out "
            "data or a better network would admit more."
        )
    elif report.traffic is not None and _nearly_all_rejected(report.traffic):
        admitted = share_text(report.admitted_of_vp / snapshot.vp_count)
        yield (
            f"{_how_many_rejected(report.traffic)} points of recent traffic that this calibration decided on were "
            "rejected, most of them as "
            f"'{_main_reason(report.traffic)}', though {admitted} of vp would be admitted: {_label_sample(report)}"
        )


def _unlike_vp(report: CalibrationReport) -> Iterator[str]:
    comparison = report.traffic.comparison if report.traffic else None
    if comparison is not None and comparison.is_unlike_vp:
        yield (
            f"Recent traffic is unlike vp: {'; '.join(_differences(comparison))}. Nothing is promised for traffic that "
            f"is unlike the calibration data: {_label_sample(report)}"
        )


def _differences(comparison: Comparison) -> Iterator[str]:
    """Those large enough to act on."""
    for name, shift in (("q", comparison.match_count), ("d", comparison.distance)):
        if shift.is_large:
            statistic, least = share_text(shift.test.statistic), share_text(shift.test.least)
            yield f"the distributions of {name} differ by {statistic} (at least {least} if chance is allowed for)"
    pairs = (("lie in usable bands", comparison.usable), ("would be admitted", comparison.admitted))
    for what, pair in pairs:
        if pair.is_lost:
            yield f"{share_text(pair.recent.share)} of it {what}, of vp {share_text(pair.vp.share)}"


def _upkeep(report: CalibrationReport) -> Iterator[str]:
    """Labels and parameters that came since, and discrepancies that have grown."""
    name = report.classifier
    again = f"`{calibrate_command(name, report.snapshot.settings, report.neighbour_count)}`"
    if report.changes.total:
        yield f"{report.changes.total:,} labelled points arrived, changed or left: {again} takes them up."
    if not report.snapshot.parameters_are_current:
        yield f"Newer KNN parameters are in use than this calibration's: {again} calibrates with them."
    elif report.agreement.grown(report.agreement.held_out):
        yield (
            "KNN and network differ more often on mc and vp than at the fit, by more than chance: "
            f"`venn-admit fit {name}`, then calibrate."
        )
    elif report.agreement.grown(report.agreement.scored):
        yield (
            "KNN and network differ more often on scored exemplars than at the fit, by more than chance: label a "
            f"random sample of them, then `venn-admit fit {name}` and calibrate."
        )


def _label_sample(report: CalibrationReport) -> str:
    """How to let recent traffic calibrate."""
    name = report.classifier
    taken_up = f"`venn-admit label {name} labels.csv` and `venn-admit recalibrate {name}`."
    if report.traffic is not None and not report.traffic.unlabelled:
        return (
            "every point of recent traffic has a label already, so score newer traffic; or, if the labels came with "
            f"the scored file and do not calibrate yet, give those of a random sample again by {taken_up}"
        )
    return (
        "label a random sample of recent traffic "
        f"(`venn-admit export {name} --what unlabelled --out unlabelled.parquet` lists it in random order: take the "
        f"first rows), then run {taken_up}"
    )


def _whose(report: CalibrationReport, accuracy: Accuracy) -> str:
    return "of all" if accuracy.predicted is None else f"of those predicted {report.class_names[accuracy.predicted]!r}"


def accuracy_text(accuracy: Accuracy) -> str:
    """The share, its interval, and of how many points."""
    return (
        f"{share_text(accuracy.right / accuracy.points)} of {accuracy.points:,} (99 % interval "
        f"{share_text(accuracy.low)} to {share_text(accuracy.high)})"
    )


def _nearly_all_rejected(traffic: Traffic) -> bool:
    """By this calibration: what another rejected may have been the reason for recalibrating."""
    points = sum(found.points for found in traffic.own_outcomes)
    if points < ENOUGH_REJECTED or _admitted(traffic) >= HARDLY_ANY * points:
        return False
    # If it is unlike vp, that is the reason, and it is said with the same remedy.
    return not _admitted(traffic) or traffic.comparison is None or not traffic.comparison.is_unlike_vp


def _how_many_rejected(traffic: Traffic) -> str:
    return "Nearly all" if _admitted(traffic) else "All"


def _admitted(traffic: Traffic) -> int:
    return sum(found.admitted for found in traffic.own_outcomes)


def _main_reason(traffic: Traffic) -> str:
    counts = [sum(found.rejected[i] for found in traffic.own_outcomes) for i in range(len(Reason))]
    return list(Reason)[counts.index(max(counts))]
