"""What calibrations changed, one after another, and what happened day by day, as a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from venn_admit.core.calibrators.certification import class_document
from venn_admit.core.monitoring.history import COUNTED_LABELS, ChainHistory, Day, SnapshotChange
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import Picture, Section, TextTable
from venn_admit.report.wording import share_text

QUERY = "history"


def history_section(report: CalibrationReport) -> Section:
    """Return the newest calibrations up to the one reported on, the newest first."""
    heads = ("calibration", "made (UTC)", "reason", "mc", "vp", "admitted", "changed against the one before")
    rows = tuple(
        (
            f"{made.calibration}, {report.state_text(made.calibration, made.state)}",
            f"{made.created_at:%Y-%m-%d %H:%M}",
            made.reason,
            f"{made.mc_count:,}",
            f"{made.vp_count:,}" if made.vp_count else "",
            "" if made.admitted is None else share_text(made.admitted),
            change_text(made),
        )
        for made in report.history
    )
    return Section(
        "History of calibrations",
        (TextTable(heads, rows, words=(2, 6), query=QUERY),),
        (
            "Calibrations of all settings that are still kept, up to this one. admitted: the share of vp that the "
            "calibration would admit by plain probabilities, or of mc if the method is Venn-Abers, by its policy or "
            "its own bounds; left empty if there are too many points to count them at once.",
        ),
    )


def change_text(made: SnapshotChange) -> str:
    """Return what a calibration changed.

    >>> from datetime import datetime
    >>> from venn_admit.core.monitoring.history import PointChanges
    >>> points = PointChanges(arrived=1200, changed=1, left=0, moved=7)
    >>> made = (9, datetime(2026, 3, 1), "labels", "venn-admit", "current", 10, 10, 8)
    >>> change_text(SnapshotChange(*made, points, False, True, ("kappa",), None))
    '1,200 points arrived, 1 label changed; training data; kappa'
    >>> change_text(SnapshotChange(*made, PointChanges(0, 0, 0, forgotten=3), False, False, (), None))
    '3 points forgotten'
    >>> change_text(SnapshotChange(*made, PointChanges(0, 0, 0), False, False, (), None))
    'nothing'
    """
    return "; ".join(_changes(made)) or "nothing"


def history_payload(report: CalibrationReport) -> list[dict[str, Any]]:
    """Return the history for programs."""
    return [
        {
            "number": made.calibration,
            "created_at": made.created_at.isoformat(),
            "reason": made.reason,
            "method": made.method,
            "state": made.state,
            "in_use": made.calibration == report.in_use,
            "mc": made.mc_count,
            "vp": made.vp_count,
            "admitted": made.admitted,
            "previous": made.previous,
            "arrived": None if made.points is None else made.points.arrived,
            "relabelled": None if made.points is None else made.points.changed,
            "left": None if made.points is None else made.points.left,
            "forgotten": None if made.points is None else made.points.forgotten,
            "moved": None if made.points is None else made.points.moved,
            "other_parameters": made.other_parameters,
            "other_training": made.other_training,
            "other_settings": list(made.other_settings),
        }
        for made in report.history
    ]


def _changes(made: SnapshotChange) -> Iterator[str]:
    if made.points is None:
        yield "the first that is kept"
        return
    counts = (
        (made.points.arrived, "point{} arrived"),
        (made.points.changed, "label{} changed"),
        (made.points.left, "point{} left"),
        (made.points.forgotten, "point{} forgotten"),
    )
    if counted := [f"{count:,} {what.format('' if count == 1 else 's')}" for count, what in counts if count]:
        yield ", ".join(counted)
    if made.other_parameters:
        yield "KNN parameters"
    if made.other_training:
        yield "training data"
    if made.other_settings:
        named = (f"method, now {made.method}" if name == "method" else name for name in made.other_settings)
        yield ", ".join(named)


def days_picture(days: Sequence[Day]) -> Picture:
    """Return the picture of some days, the oldest first."""

    def draw() -> Any:
        from venn_admit.report.charts.drawn_calibration import days_figure

        return days_figure(days)

    decisions, labels = sum(day.decisions for day in days), sum(day.labels for day in days)
    return Picture(
        "days",
        f"The last {len(days)} days in UTC: the share of the decisions that was admitted, with the 95 % interval if a "
        f"sample was looked at; how many decisions there were, {decisions:,} in all; and how many labels arrived "
        f"outside the training data, {labels:,} among the newest {COUNTED_LABELS:,} labels of all classifiers.",
        draw,
    )


def days_payload(days: Sequence[Day]) -> list[dict[str, Any]]:
    """Return the days for programs."""
    return [{**asdict(day), "day": day.day.isoformat()} for day in days if day.decisions or day.labels]


def chains_picture(history: ChainHistory, class_names: Sequence[str]) -> Picture:
    """Return the picture of what chains came to; there is an advance."""

    def draw() -> Any:
        from venn_admit.report.charts.drawn_chains import chains_figure

        return chains_figure(history, class_names)

    newest = history.advances[-1]
    return Picture(
        "chains",
        "What the certificate that stands came to, in UTC: the share of the labelled points that it admits; the labels "
        f"that count for its chain, {newest.labels:,} at last; and what the next threshold of each predicted class, "
        "or the next policy for all classes, has of what it needs, which falls back whenever one is certified. A "
        "dashed line is the start of a chain, and hatched is the time of an alarm of the promise.",
        draw,
    )


def chains_payload(history: ChainHistory) -> dict[str, Any]:
    """Return the same for programs."""
    return {
        "advances": [
            {
                **asdict(one),
                "created_at": one.created_at.isoformat(),
                "evidence": {"all" if of is None else of: part for of, part in one.evidence.items()},
            }
            for one in history.advances
        ],
        "alarms": [
            {
                **class_document(one.about),
                "created_at": one.created_at.isoformat(),
                "ended_at": None if one.ended_at is None else one.ended_at.isoformat(),
            }
            for one in history.alarms
        ],
    }
