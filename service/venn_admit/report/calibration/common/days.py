"""What happened day by day, as a picture: the share admitted, decisions, and labels."""

from collections.abc import Sequence
from typing import Any

from venn_admit.core.monitoring.history import Day
from venn_admit.report.calibration.sections import Picture


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
        f"outside the training data, {labels:,} in all.",
        draw,
    )


def days_payload(days: Sequence[Day]) -> list[dict[str, Any]]:
    """Return the days for programs."""
    return [
        {
            "day": day.day.isoformat(),
            "decisions": day.decisions,
            "decided": day.decided,
            "admitted": day.admitted,
            "labels": day.labels,
        }
        for day in days
        if day.decisions or day.labels
    ]
