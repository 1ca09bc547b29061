"""What a report on a calibration advises: first about errors, then about rejections, then about upkeep."""

from collections.abc import Iterable, Iterator

from venn_admit.advice import Render, Verb
from venn_admit.core.monitoring.traffic import Accuracy, Comparison, Traffic
from venn_admit.core.reasons import Reason
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import Finding
from venn_admit.report.wording import counted, share_text
from venn_admit_client.records.certificates import looks_text

ENOUGH_REJECTED = 10
"""From this many points on, it is a finding if all of them are rejected; with fewer, it may happen by chance."""
MANY_LOOKS = 5
"""From this many certificates on that looked at the same labels, one that stands is advised."""
HARDLY_ANY = 0.05
"""It is a finding if less than this share of recent traffic is admitted, but at least twice as much of vp would be."""


def advice(report: CalibrationReport, render: Render) -> list[str]:
    """Return what to do next, a paragraph each, the most important first; nothing if all is as it should be.

    render: words a step as the shell that shows it takes it.
    """
    if report.snapshot.state == "withheld":
        return [_withheld(report, report.snapshot.id, render)]
    if report.state == "retired":
        return [f"This calibration is retired: `{render(report.step(Verb.REPORT))}` shows the one in use."]
    findings = [*_errors(report, render), *_rejections(report, render), *_unlike(report, render)]
    return [*_with_sample(findings, _label_sample(report, render)), *_upkeep(report, render)]


def _with_sample(findings: Iterable[Finding], how: str) -> Iterator[str]:
    """How to label a sample is said once, behind the first finding that needs one."""
    is_said = False
    for found in findings:
        remedy = "" if not found.needs_sample else "; recalibrate with that sample." if is_said else f": {how}"
        is_said = is_said or found.needs_sample
        yield f"{found.text}{remedy}"


def _errors(report: CalibrationReport, render: Render) -> Iterator[Finding]:
    """Labels show that admitted predictions are wrong too often."""
    if report.watch.said is not None and report.watch.said.harmful:
        yield Finding(
            "The monitor has raised an alarm, which does not depend on how often one looks: "
            f"`{render(report.step(Verb.MONITOR))}` says what is wrong. Do not act on what is admitted before you have "
            "recalibrated with labels of recent traffic, or know why.",
            needs_sample=False,
        )
    target = 1 - float(report.snapshot.alpha)
    below = [found for found in report.traffic.accuracy if found.is_below(target)] if report.traffic else []
    if below:
        shares = "; ".join(f"{_whose(report, found)}, {accuracy_text(found)}" for found in below)
        yield Finding(
            f"Admitted predictions are wrong too often: a share of at least 1 - alpha = {target:g} should be right, "
            f"but the known labels show less: {shares}. Do not act on them before you have recalibrated",
            needs_sample=True,
        )


def _rejections(report: CalibrationReport, render: Render) -> Iterator[Finding]:
    """All or nearly all points of the calibration data or of recent traffic are rejected."""
    found = list(report.part.rejections(report, render))
    if found:
        yield from found
    elif report.traffic is not None and _nearly_all_rejected(report.traffic):
        yield Finding(
            f"{_how_many_rejected(report.traffic)} points of recent traffic that this calibration decided on were "
            f"rejected, most of them as '{_main_reason(report.traffic)}', though {_admitted_of_reference(report)}",
            needs_sample=True,
        )


def _admitted_of_reference(report: CalibrationReport) -> str:
    plain, weighted = share_text(report.part.admitted_of_reference / report.reference_count), report.part.weighted
    if weighted is None:
        return f"{plain} of {report.part.reference} would be admitted"
    by_weights = share_text(weighted.share)
    by_default = f"{by_weights} of {report.part.reference} would be admitted with weights"
    return f"{by_default} and {plain} by {report.part.deciding.by}"


def _unlike(report: CalibrationReport, render: Render) -> Iterator[Finding]:
    yield from report.part.unlike(report, render)
    comparison = report.traffic.comparison if report.traffic else None
    if comparison is not None and comparison.is_unlike:
        differences = "; ".join(_differences(report, comparison))
        yield Finding(
            f"Recent traffic is unlike {comparison.reference}: {differences}. Nothing is "
            "promised for traffic that is unlike the calibration data",
            needs_sample=True,
        )


def _differences(report: CalibrationReport, comparison: Comparison) -> Iterator[str]:
    """The differences that are large enough to act on."""
    happens = {"usable": "lie in usable bands", "admitted": f"would be admitted by {report.part.deciding.by}"}
    for name, shift in comparison.shifts.items():
        if shift.is_large:
            statistic, least = share_text(shift.test.statistic), share_text(shift.test.least)
            yield f"the distributions of {name} differ by {statistic} (at least {least} if chance is allowed for)"
    for name, pair in comparison.shares.items():
        if pair.is_lost:
            of_reference = share_text(pair.calibrated.share)
            yield (f"{share_text(pair.recent.share)} of it {happens[name]}, of {comparison.reference} {of_reference}")


def _withheld(report: CalibrationReport, number: int, render: Render) -> str:
    """A calibration that is stored and was never put in use."""
    why = report.withheld.get(number)
    because = "" if why is None else f" because {why}"
    how = render(report.step(Verb.USE, calibration=number))
    return f"Calibration {number} was not put in use{because}: `{how}` puts it in use all the same."


def _upkeep(report: CalibrationReport, render: Render) -> Iterator[str]:
    """Labels and parameters that are newer than the calibration, and discrepancies that have grown."""
    waiting = [number for number in report.withheld if number > report.snapshot.id]
    for number in waiting:
        yield _withheld(report, number, render)
    again = f"`{render(report.part.again(report))}`"
    if report.snapshot.chain_has_ended:
        yield (
            "The chain has ended, since its thresholds are on the reliability score of an earlier fit or of other "
            "training exemplars, and nothing is promised of what it decides now"
            f"{f'. {later}' if (later := report.later_chain(render)) else f': {again} begins the next one.'}"
        )
    elif report.changes.total:
        changed = report.changes.total
        used = "it" if changed == 1 else "them"
        yield f"{counted(changed, 'labelled point')} arrived, changed or left: {again} uses {used}."
    following = report.part.following(report)
    if following is not None:
        number, step = following
        yield (
            f"Chain {number} would admit clearly more than this one: `{render(step)}` begins it. It takes a part of "
            "the confidence, and labels from before do not count for it."
        )
    instead = report.part.standing_instead(report)
    if instead is not None and not waiting and report.looks and report.looks[0].looks >= MANY_LOOKS:
        said = looks_text(report.looks[0].looks, report.looks[0].joint_confidence)
        yield f"{said} `{render(instead)}` begins one that makes a single statement for all times, while labels arrive."
    if report.agreement is None:
        return
    if report.snapshot.chain_has_ended is None and not report.snapshot.parameters_are_current:
        yield f"Newer KNN parameters are in use than this calibration's: {again} calibrates with them."
    elif report.agreement.grown(report.agreement.held_out):
        yield (
            "KNN and network differ more often on mc and vp than at the fit, by more than chance: "
            f"`{render(report.step(Verb.FIT))}` fits them again; calibrate afterwards."
        )
    elif report.agreement.grown(report.agreement.scored):
        yield (
            "KNN and network differ more often on scored exemplars than at the fit, by more than chance: label a "
            f"random sample of them, which `{render(report.step(Verb.FIT))}` uses; calibrate afterwards."
        )


def _label_sample(report: CalibrationReport, render: Render) -> str:
    """Return how to label recent traffic so that it calibrates."""
    label, recalibrate = render(report.step(Verb.LABEL)), render(report.step(Verb.RECALIBRATE))
    taken_up = f"`{label}` records the labels, and `{recalibrate}` uses them."
    if report.traffic is not None and not report.traffic.unlabelled:
        return (
            "every point of recent traffic has a label already, so score newer traffic; or, if the labels came with "
            f"the scored file and do not calibrate yet, take those of a random sample again: {taken_up}"
        )
    return (
        "label a random sample of recent traffic "
        f"(`{render(report.step(Verb.LIST_UNLABELLED))}` lists it in random order: take the first rows); {taken_up}"
    )


def _whose(report: CalibrationReport, accuracy: Accuracy) -> str:
    return "of all" if accuracy.predicted is None else f"of those predicted {report.class_names[accuracy.predicted]!r}"


def accuracy_text(accuracy: Accuracy) -> str:
    """Return the share, the number of points and the interval."""
    return (
        f"{share_text(accuracy.right / accuracy.points)} of {accuracy.points:,} (99 % interval "
        f"{share_text(accuracy.low)} to {share_text(accuracy.high)})"
    )


def _nearly_all_rejected(traffic: Traffic) -> bool:
    """Whether this calibration rejects nearly all; what another one rejected may have been why it was retired."""
    points = sum(found.points for found in traffic.own_outcomes)
    if points < ENOUGH_REJECTED or _admitted(traffic) >= HARDLY_ANY * points:
        return False
    # If traffic is unlike vp, that is the reason, and another paragraph says so.
    return not _admitted(traffic) or traffic.comparison is None or not traffic.comparison.is_unlike


def _how_many_rejected(traffic: Traffic) -> str:
    return "Nearly all" if _admitted(traffic) else "All"


def _admitted(traffic: Traffic) -> int:
    return sum(found.admitted for found in traffic.own_outcomes)


def _main_reason(traffic: Traffic) -> str:
    return max(Reason, key=lambda reason: sum(found.rejected[reason] for found in traffic.own_outcomes))
