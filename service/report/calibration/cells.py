"""What a report says of a calibration by Venn-Abers: its method, its score, and the points of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class CellsReport:
    """A snapshot of Venn-Abers.

    asked, score: the score asked for, which may be auto, and the one that the snapshot has. network_share,
    reliability_share: what each admits of mc by cross-fitting; None if a score was asked for. points, right: by
    predicted class, those of mc, and how many are predicted right. steps: of all cells.
    """

    classifier: str
    class_names: tuple[str, ...]
    calibration: int
    is_current: bool
    created_at: datetime
    reason: str
    method: str
    alpha: Decimal
    thresholds: tuple[Decimal, ...]
    bin_edges: tuple[int, ...]
    asked: str
    score: str
    network_share: float | None
    reliability_share: float | None
    points: Sequence[int]
    right: Sequence[int]
    steps: int


def cells_lines(report: CellsReport) -> list[str]:
    """Return the report as lines of text."""
    state = "current" if report.is_current else "retired"
    thresholds = ", ".join(dict.fromkeys(map(str, report.thresholds)))
    lines = [
        f"{report.classifier}: calibration {report.calibration}, {state}, of {report.created_at:%Y-%m-%d %H:%M}",
        f"method {report.method}, alpha {report.alpha}, thresholds {thresholds}, bins of q from "
        f"{', '.join(map(str, report.bin_edges))}; reason: {report.reason}.",
        f"Score: {report.score} (asked for: {report.asked}); {report.steps:,} steps.",
    ]
    if report.network_share is not None and report.reliability_share is not None:
        lines.append(
            f"By cross-fitting on mc, the network's score admits {report.network_share:.1%}, the reliability score "
            f"{report.reliability_share:.1%}."
        )
    lines.append(f"Points in mc: {sum(report.points):,}.")
    lines += [
        f"Predicted {name}: {points:,}, of which {right:,} right."
        for name, points, right in zip(report.class_names, report.points, report.right, strict=True)
    ]
    return lines


def cells_payload(report: CellsReport) -> dict[str, Any]:
    """Return the report as JSON has it."""
    return {
        "classifier": report.classifier,
        "calibration": {
            "number": report.calibration,
            "state": "current" if report.is_current else "retired",
            "created_at": report.created_at.isoformat(),
            "reason": report.reason,
            "method": report.method,
            "alpha": str(report.alpha),
            "thresholds": [str(threshold) for threshold in report.thresholds],
            "q_bins": list(report.bin_edges),
            "asked_score": report.asked,
            "score": report.score,
            "network_share": report.network_share,
            "reliability_share": report.reliability_share,
            "mc": sum(report.points),
            "steps": report.steps,
        },
        "cells": [
            {"predicted_class": name, "points": points, "right": right}
            for name, points, right in zip(report.class_names, report.points, report.right, strict=True)
        ],
    }
