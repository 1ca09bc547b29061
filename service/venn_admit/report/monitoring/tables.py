"""What a monitor says, for a terminal of 80 columns or more."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from venn_admit.core.monitoring.anytime.plan import CONFIDENCE, EARLY, LEVEL, RUN_LENGTH, Lamp, Watched
from venn_admit.core.monitoring.anytime.readings import Reading
from venn_admit.report.fitted import FittedTable, fitted
from venn_admit.report.monitoring.report import MonitorReport, RowName, deadline_text
from venn_admit.report.standing import standing_text
from venn_admit.report.wording import class_text, counted, listed_text, share_text
from venn_admit_client.records.certificates import labels_needed_text

_SHARES = {
    Lamp.PROMISE: "share right of the admitted, by predicted class",
    Lamp.TRUE_CLASSES: "share right of the admitted, by true class",
    Lamp.GROUPS: "share right of the admitted, by group",
}
_QUESTIONS = {
    Lamp.PARTITIONS: "Inside {partitions}: are predictions wrong more often than on the calibration data?",
    Lamp.MIX: "The mix of {partitions}: is the traffic made up differently from the calibration data?",
}
_OF_SAMPLE = {
    Lamp.LABELLED_CLASSES: "The sample: are labelled points predicted so more, or less, often than those beside them?",
    Lamp.LABELLED_SCORES: "The sample: are labelled points surer, or less sure, than those beside them?",
}


def monitor_tables(report: MonitorReport) -> RenderableType:
    """Return everything that a monitor says; whether an alarm stands comes last, next to the prompt."""
    of_documents = f", of {counted(report.documents, 'document')}" if report.documents < report.points else ""
    heading = Group(
        Text(f"{report.classifier}: setting {report.setting} by {report.method}, watched", style="bold"),
        Text(
            f"Random or drawn labels that came after the decision: {report.points:,}{of_documents}. At least "
            f"{report.target} of the admitted should be right."
        ),
    )
    parts = [heading]
    for lamp in (one for one in Lamp if one.warned_of is None):
        rows = [reading for reading in report.readings if reading.about.lamp is lamp]
        if rows:
            parts.append(Group(Text(_title(report, lamp), style="bold"), _table(report, lamp, rows)))
    beside = (deadline_lines(report), group_lines(report), chain_lines(report))
    parts += [Group(*map(Text, lines)) for lines in beside if lines]
    parts += [Group(Text(f"Calibration {one} is not in use because {why}.")) for one, why in report.withheld.items()]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in (*parts, _verdict(report))))


def _title(report: MonitorReport, lamp: Lamp) -> str:
    if lamp in _OF_SAMPLE:
        return _OF_SAMPLE[lamp]
    if lamp in _QUESTIONS:
        partitions = "predicted classes" if report.neighbour_count is None else "partitions"
        return _QUESTIONS[lamp].format(partitions=partitions)
    return f"{'The promise' if report.is_harmful(lamp) else 'Not promised'}: {_SHARES[lamp]}"


def verdict_lines(report: MonitorReport) -> list[str]:
    """Return a sentence for each alarm and notice that stands, or one that says that there is none."""
    if not report.documents and not report.alarms:
        waits = "" if report.deadline is None else ", and wait until its deadline has passed"
        return [f"No label counts yet: label a random sample of the points that were decided on{waits}."]
    alarms = [f"ALARM: {_sentence(report, alarm.about)}" for alarm in report.harmful]
    if not alarms:
        alarms = [
            f"No alarm stands. If nothing is amiss, each lamp is ever lit with a chance of {LEVEL:.0%} at most, "
            f"however often one looks{_early_chance(report)}."
        ]
    if report.on_average:
        alarms.append(
            "What is promised is an average over calibrations: an alarm says that this one has more wrong, as one "
            "may have now and then."
        )
    if not report.from_starts:
        alarms.append(
            f"This monitor was started before its games started again with every {report.unit}: harm after good times "
            "is seen late, and there are no early warnings. Start it again to have both."
        )
    lit = {(alarm.about.lamp, alarm.about.number) for alarm in report.alarms}
    # An early warning says no more once its lamp is lit.
    notes = [of for of in (alarm.about for alarm in report.notices) if (of.lamp.warned_of, of.number) not in lit]
    mix = [report.name(about) for about in notes if about.lamp is Lamp.MIX]
    notices = [f"Notice: {_sentence(report, about)}" for about in notes if about.lamp is not Lamp.MIX]
    if mix:
        listed = ", ".join(map(_partition, mix))
        notices.append(
            "Notice: some predictions are more or less frequent than on the calibration data, by which the share right "
            f"of what is admitted of a class can change too: {listed}."
        )
    return alarms + notices


def _early_chance(report: MonitorReport) -> str:
    if not report.from_starts:
        return ""
    return f"; the first false early warning of a lamp comes after at least {RUN_LENGTH:,} {report.unit}s on average"


def deadline_lines(report: MonitorReport) -> list[str]:
    """Return what a label deadline leaves out, in a sentence; none without a deadline."""
    if report.deadline is None:
        return []
    within = (
        f"{report.unit.capitalize()}s count in the order of their decisions, by labels within "
        f"{deadline_text(report.deadline.time)}"
    )
    if not report.deadline.decided:
        return [f"{within}: no deadline has passed yet."]
    without = max(report.deadline.decided - report.points, 0)
    return [
        f"{within}. The deadline of {report.deadline.decided:,} points has passed; {without:,} of them "
        f"({without / report.deadline.decided:.1%}) had no label by then and are left out."
    ]


def chain_lines(report: MonitorReport) -> list[str]:
    """Return how far a certificate came that stands while labels arrive, and what alarms change; none for others."""
    if report.standing is None:
        return []
    said = [standing_text(report.standing, report.class_names, has_ended=report.chain_has_ended, later=report.later)]
    for classes, what in (
        (report.to_withdraw, "withdraws what is certified, as an alarm stands for"),
        (report.to_give_back, "gives back what was certified, as no alarm stands any more for"),
    ):
        if classes:
            listed = listed_text([class_text(of, report.class_names) for of in classes])
            said.append(f"The next recalibration {what} {listed}.")
    return said


def group_lines(report: MonitorReport) -> list[str]:
    """Return what the lamp of groups does not show, a sentence each."""
    beside, said = report.groups, []
    if beside.not_promised:
        texts = [
            f"{class_text(of, report.class_names)} ({labels_needed_text(needed)})"
            for of, needed in beside.not_promised.items()
        ]
        said.append(f"Nothing is promised for these groups, and nothing of them is admitted: {listed_text(texts)}.")
    if beside.not_tested:
        texts = [class_text(of, report.class_names) for of in beside.not_tested]
        said.append(
            f"Certified and not tested, as the monitor was started with too few labels of them: {listed_text(texts)}. "
            "Start it again to test them."
        )
    said += [
        f"{count:,} of {report.points:,} labelled points have no {name}, or one that the monitor does not know."
        for name, count in beside.unknown.items()
        if count
    ]
    return said


def _sentence(report: MonitorReport, about: Watched) -> str:
    name, lamp = report.name(about), about.lamp.warned_of or about.lamp
    few, kind = f"fewer than {report.target} are right{_since(report, about)}", ""
    match lamp:  # the mix has one sentence for all its partitions
        case Lamp.PROMISE:
            said, kind = f"of what is admitted as {name.class_name!r}, {few}", "predicted"
        case Lamp.TRUE_CLASSES:
            said, kind = f"of the admitted points whose class is {name.class_name!r}, {few}", "true"
        case Lamp.GROUPS:
            said = f"of what is admitted of {name.text}, {few}"
        case _:
            if lamp in _OF_SAMPLE:
                return _sample_sentence(report, about)
            return f"predictions of {_partition(name)} are wrong more often than on the calibration data."
    early = "" if lamp is about.lamp else "early warning: "
    return f"{early}{said}{_promised(report, lamp, kind) if kind else ''}."


def _sample_sentence(report: MonitorReport, about: Watched) -> str:
    row = next(one for one in report.readings if one.about == about)
    assert row.labelled is not None, "pairs of the sample are counted"
    often, name = 2 * row.labelled > row.points, report.name(about)
    if about.lamp is Lamp.LABELLED_CLASSES:
        said = f"labelled points are predicted as {name.class_name!r} {'more' if often else 'less'} often than those"
    else:
        sure = "surer" if often else "less sure"
        said = f"labelled points that are predicted as {name.class_name!r} are {sure} than those"
    return (
        f"{said} beside them ({row.labelled:,} of {row.points:,} pairs), so that they are not the random sample that "
        "all figures on what is right rest on."
    )


def _since(report: MonitorReport, about: Watched) -> str:
    since = next((reading.since for reading in report.readings if reading.about == about), None)
    return "" if since is None else f" since about {report.unit} {since:,}"


def _partition(name: RowName) -> str:
    return repr(name.text) if name.q is None else f"{name.text!r} with q {name.q}"


def _promised(report: MonitorReport, lamp: Lamp, kind: str) -> str:
    return "" if report.is_harmful(lamp) else f"; nothing is promised about {kind} classes"


def _verdict(report: MonitorReport) -> Group:
    style = "red" if report.harmful else "yellow" if report.notices else "green" if report.documents else ""
    return Group(*(Text(line, style=style) for line in verdict_lines(report)))


def _table(report: MonitorReport, lamp: Lamp, rows: list[Reading]) -> FittedTable:
    by_q, of_shares = lamp in _QUESTIONS and report.neighbour_count is not None, lamp not in {Lamp.MIX, *_OF_SAMPLE}
    first = {Lamp.TRUE_CLASSES: "class", Lamp.GROUPS: "group"}.get(lamp, "predicted")
    early = {row.about.number: row for row in report.readings if row.about.lamp is EARLY.get(lamp)}
    heads = [
        first,
        *(["q"] if by_q else []),
        *(["pairs", "labelled"] if lamp in _OF_SAMPLE else ["labels" if of_shares else f"{report.unit}s"]),
        *(["right", f"at least ({CONFIDENCE:.0%})"] if of_shares else []),
        "evidence",
        "needed",
        *([f"early\n({RUN_LENGTH:,})"] if early else []),
        "lamp",
    ]
    cells = []
    for row in rows:
        name = report.name(row.about)
        figures = [
            name.text,
            *([name.q or ""] if by_q else []),
            f"{row.points:,}",
            *([] if row.labelled is None else [f"{row.labelled:,}"]),
            *([_share(row.share_right), _share(row.lower_bound)] if of_shares else []),
            evidence_text(row.most),
            f"{row.needed:,.0f}",
            *([evidence_text(early[row.about.number].most)] if early else []),
        ]
        cells.append([*map(Text, figures), _lamp(report, row, early.get(row.about.number))])
    return fitted(heads, cells, words=[0, len(heads) - 1])


def _lamp(report: MonitorReport, row: Reading, early: Reading | None) -> Text:
    if row.e_value is None:
        return Text("not tested", style="dim")
    if row.lit_at is None:
        return Text("early" if early is not None and early.lit_at is not None else "", style="yellow")
    return Text("ALARM", style="bold red") if report.is_harmful(row.about.lamp) else Text("notice", style="yellow")


def _share(share: float | None) -> str:
    return "" if share is None else share_text(share)


def evidence_text(value: float | None) -> str:
    """Return an e-value in few characters: it may be 10 to the power of 300, or infinite.

    >>> [evidence_text(value) for value in (None, 0.034, 2.5, 1234.0, 1e9, float("inf"))]
    ['', '0.03', '2.50', '1,234', '1e+09', 'inf']
    """
    if value is None:
        return ""
    if value < 100:
        return f"{value:.2f}"
    return f"{value:,.0f}" if value < 1e6 else f"{value:.0e}"
