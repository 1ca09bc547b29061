"""The verdict on an evaluation: whether the target is met, how much is admitted, and what cannot be told yet."""

from dataclasses import dataclass

from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.evaluation.losses import MeanLoss
from venn_admit.core.evaluation.tallies import Tally, Verdict
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.glance import promise_of
from venn_admit.report.evaluation.wording import target_text, verdict_on_all
from venn_admit.report.wording import counted, share_text

CANNOT_TELL_NOTE = (
    "“Cannot tell” means that the 95 % interval contains the target, or that there are too few points "
    "to judge. This is normal for small samples, and is neither good nor bad news. The number of further admitted "
    "points that would settle it assumes that the share right stays the same."
)

NONE_ADMITTED = "nothing admitted"
MOST_NAMED = 3
"""A sentence names at most this many classes, and counts the others."""


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """What the method that is judged admits as one class. more_to_settle: that of `Tally.more_to_settle`.

    loss: what the verdict is about, if the mean loss is promised.
    """

    name: str
    tally: Tally
    verdict: Verdict
    more_to_settle: int | None
    loss: MeanLoss | None = None


def class_verdicts(report: DatasetReport) -> tuple[ClassVerdict, ...]:
    """Return the verdict on every predicted class (C), which every method of calibration is about."""
    tallies = report.method(report.own).per_predicted_class
    return tuple(
        ClassVerdict(name, tally, tally.verdict(report.alpha), tally.more_to_settle(report.alpha))
        if loss is None
        else ClassVerdict(name, tally, loss.verdict(report.alpha), None, loss)
        for name, tally, loss in zip(report.class_names, tallies, _class_losses(report), strict=True)
    )


def overall_verdict(report: DatasetReport) -> Verdict:
    """Return the verdict on all predicted classes that have something admitted together."""
    return verdict_on_all([one.verdict for one in class_verdicts(report) if one.tally.count])


def _class_losses(report: DatasetReport) -> list[MeanLoss | None]:
    """The mean loss of every predicted class; None for each if the share right is promised."""
    return [None] * len(report.class_names) if report.losses is None else list(report.losses.per_predicted_class)


def answer(report: DatasetReport) -> str:
    """Return one or two sentences that say whether every predicted class meets the target."""
    every = class_verdicts(report)
    admitted = [one for one in every if one.tally.count]
    if not admitted:
        return "Nothing is admitted, so there is nothing to judge."
    target, overall = _target(report), overall_verdict(report)
    named = _listed([one.name for one in admitted if one.verdict is overall])
    if overall is Verdict.MET:
        first = f"Every predicted class meets the target of {target}."
    elif overall is Verdict.MISSED:
        first = f"Predictions of {named} miss the target of {target}."
    else:
        first = f"This sample cannot judge predictions of {named}."
    empty = [one.name for one in every if not one.tally.count]
    return f"{first} Nothing is admitted as {_listed(empty)}." if empty else first


def _target(report: DatasetReport) -> str:
    """What is promised of each predicted class, as a target."""
    return target_text(report) if report.losses is None else f"a mean loss of at most {report.alpha}"


def settling(one: ClassVerdict, report: DatasetReport) -> str:
    """Return what would settle an open verdict; empty if the verdict is not open."""
    if one.verdict is not Verdict.CANNOT_TELL or one.tally.count == 0 or one.loss is not None:
        return ""
    if one.more_to_settle is None:
        return "too close to the target to settle"
    unit = "point" if report.document_count is None else "document"
    return f"about {counted(_rounded_up(one.more_to_settle), f'more {unit}')} would settle it"


def headline(report: DatasetReport) -> str:
    """Return one sentence: what the method that is judged admits, and how much of it is right."""
    admitted = report.method(report.own).overall
    points = counted(report.point_count, "point")
    if admitted.count == 0:
        return f"{report.own} admits none of {points}."
    admits = f"{report.own} admits {admitted.count:,} of {points} ({admitted.portion:.1%})"
    if report.losses is not None:
        mean = f"their mean loss is {report.losses.overall.mean:.4g}"
        return f"{admits}; {mean}, and {report.alpha} is promised of each class."
    return (
        f"{admits}; {admitted.share:.1%} of these are correct, against a target of {float(report.target * 100):g}% "
        f"and {report.method(report.baseline).overall.share:.1%} when every point is admitted."
    )


def class_gap(report: DatasetReport) -> str:
    """Name a true class that misses the target although no predicted class does; empty if there is none."""
    if report.losses is not None or overall_verdict(report) is Verdict.MISSED:
        return ""
    measured = zip(report.class_names, report.method(report.own).per_true_class, strict=True)
    short = [
        (tally.share, f"{name} ({share_text(tally.share)} of {tally.count:,})")
        for name, tally in measured
        if tally.verdict(report.alpha) is Verdict.MISSED
    ]
    if not short:
        return ""
    _, worst = min(short)
    others = f" and {len(short) - 1} more" if len(short) > 1 else ""
    lead = (
        "Every predicted class meets the target"
        if overall_verdict(report) is Verdict.MET
        else "No predicted class misses the target for certain"
    )
    missing = f"{lead}, but the points of true class {worst}{others} miss it."
    promise = promise_of(report.own, report)
    if promise in (Promised.TRUE, Promised.BOTH):
        return f"{missing} The certificate is about true classes too, as long as traffic is like the calibration data."
    if promise is Promised.GROUPS:
        return f"{missing} The certificate is about the classes and groups that it was asked for."
    if promise.is_for_other_shares:
        return f"{missing} The certificate is about the classes asked for, in traffic with class shares of its own."
    return (
        f"{missing} {report.own} looks at points of the same predicted class and promises nothing of true classes; "
        "higher thresholds for the classes that it is mistaken for help, or a certificate for true classes."
    )


def _rounded_up(count: int) -> int:
    """To two significant digits, because it is an estimate.

    >>> [_rounded_up(7), _rounded_up(101), _rounded_up(15_205)]
    [7, 110, 16000]
    """
    unit = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // unit) * unit


def _listed(names: list[str]) -> str:
    """Return the first names, and how many others there are."""
    others = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {others} more" if others > 0 else "")
