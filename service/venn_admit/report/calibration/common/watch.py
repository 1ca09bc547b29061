"""What the monitor of a calibration says, as a report shows it: its lamps, or how to start it."""

from dataclasses import dataclass
from typing import Any

from venn_admit.advice import Render, Step, Verb
from venn_admit.core.monitoring.anytime.plan import CONFIDENCE, RUN_LENGTH, Lamp, Watched
from venn_admit.core.monitoring.anytime.readings import Reading
from venn_admit.report.calibration.sections import ROW_NAME_WIDTH, Section, TextTable
from venn_admit.report.evaluation.wording import short_names, shorten
from venn_admit.report.monitoring.payload import monitor_payload
from venn_admit.report.monitoring.report import MonitorReport
from venn_admit.report.monitoring.tables import deadline_lines, evidence_text, group_lines, verdict_lines
from venn_admit.report.wording import share_text

QUERY = "lamps"
MOST_ROWS = 12
"""At most this many lamps are shown: those that are lit, then those that are nearest to it."""

_WATCHED = {
    Lamp.PROMISE: "predicted",
    Lamp.TRUE_CLASSES: "true",
    Lamp.EARLY_PROMISE: "early, predicted",
    Lamp.EARLY_TRUE_CLASSES: "early, true",
    Lamp.PARTITIONS: "errors of",
    Lamp.MIX: "mix of",
    Lamp.LABELLED_CLASSES: "sample of",
    Lamp.LABELLED_SCORES: "scores labelled of",
}


@dataclass(frozen=True, slots=True)
class Watch:
    """The monitor of a calibration.

    is_in_use: whether the setting of the calibration is the one that decides, which alone is watched. said: what the
    monitor said when it was last looked at; None if it was not started. is_behind: whether labels came since.
    is_by_loss: whether a mean loss is promised, of which there is no monitor.
    """

    is_in_use: bool
    said: MonitorReport | None
    is_behind: bool
    is_by_loss: bool = False


def watch_section(watch: Watch, classifier: str, render: Render) -> Section:
    """Return the lamps of the monitor."""
    title, step = "Lamps of the monitor", render(Step(Verb.MONITOR, classifier=classifier))
    said = watch.said
    if not watch.is_in_use:
        return Section(title, ("Not watched: a monitor watches the setting that decides, and another one does now.",))
    if watch.is_by_loss:
        return Section(
            title,
            (
                "Not watched: a mean loss is promised, and monitors bet on the share right. Evaluate the calibration "
                "on labelled traffic, which shows the mean loss.",
            ),
        )
    if said is None:
        return Section(
            title,
            (
                "Not started: nothing watches whether what is admitted stays right. A monitor does, by random labels "
                f"of points that were decided on: `{step}` starts it.",
            ),
        )
    behind = (f"Labels came since it was last looked at: `{step}` counts them.",) if watch.is_behind else ()
    rows = _nearest(said)
    heads = ("lamp", "labels", "right", f"at least\n({CONFIDENCE:.0%})", "evidence", "needed", "state")
    table = TextTable(heads, tuple(_row(said, row) for row in rows), query=QUERY, words=(6,))
    such = "such predictions" if said.neighbour_count is None else "predictions with such a q"
    groups = ", a group" if any(row.about.lamp is Lamp.GROUPS for row in said.readings) else ""
    hidden = (f"{len(rows)} of {len(said.readings)} lamps shown.",) if len(rows) < len(said.readings) else ()
    return Section(
        title,
        (*verdict_lines(said), *deadline_lines(said), *group_lines(said), *behind, *((table,) if rows else ())),
        (
            f"predicted, true{groups}: the share right of what is admitted of a class, at least 1 - alpha = "
            f"{said.target}; errors of: whether {such} are wrong more often than on the calibration "
            "data; mix of: whether they are more or less frequent; sample of, scores labelled of: whether labelled "
            "points are predicted so, or are sure, as those beside them; early: warnings that come sooner, "
            f"the first false one of a lamp after at least {RUN_LENGTH:,} {said.unit}s on average. A lamp is lit "
            "when the evidence reaches what is needed; those of what is promised and of errors are harmful.",
            *hidden,
        ),
    )


def watch_payload(watch: Watch) -> dict[str, Any]:
    """Return what the monitor says for programs."""
    return {
        "in_use": watch.is_in_use,
        "started": watch.said is not None,
        "behind": watch.is_behind,
        "said": None if watch.said is None else monitor_payload(watch.said),
    }


def lamp_name(said: MonitorReport, about: Watched) -> str:
    """Return what a lamp is about."""
    name = said.name(about)
    if name.group is not None:
        early = "early, " if about.lamp.warned_of else ""
        return early + shorten(name.text, ROW_NAME_WIDTH)
    of_class = f"{_WATCHED[about.lamp]} {short_names(said.class_names, ROW_NAME_WIDTH)[name.text]}"
    return of_class if name.q is None else f"{of_class}, q {name.q}"


def _nearest(said: MonitorReport) -> list[Reading]:
    def rank(row: Reading) -> tuple[bool, bool, float]:
        lit = row.lit_at is not None
        return (not (lit and said.is_harmful(row.about.lamp)), not lit, -(row.most or 0.0) / row.needed)

    return sorted(said.readings, key=rank)[:MOST_ROWS]


def _row(said: MonitorReport, row: Reading) -> tuple[str, ...]:
    return (
        lamp_name(said, row.about),
        f"{row.points:,}",
        "" if row.share_right is None else share_text(row.share_right),
        "" if row.lower_bound is None else share_text(row.lower_bound),
        evidence_text(row.most),
        f"{row.needed:,.0f}",
        _state(said, row),
    )


def _state(said: MonitorReport, row: Reading) -> str:
    if row.e_value is None:
        return "not tested"
    if row.lit_at is None:
        return "not lit"
    if row.about.lamp.warned_of:
        return "lit, early"
    return "LIT, alarm" if said.is_harmful(row.about.lamp) else "lit, notice"
