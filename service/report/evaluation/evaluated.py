"""The calibration that was evaluated, in words and for programs: its number, date and settings."""

from datetime import UTC
from typing import Any

from venn_admit.service.report.evaluation.dataset import EvaluatedCalibration
from venn_admit.service.report.evaluation.wording import edge_names


def calibration_text(calibration: EvaluatedCalibration, neighbour_count: int) -> str:
    """Two sentences, for the terminal."""
    settings = calibration.settings
    return (
        f"Calibration {calibration.id}, made {_created(calibration)}: alpha {settings.alpha}, thresholds "
        f"{_thresholds(calibration)}, kappa {settings.kappa:,}, delta {settings.delta:g}, bins of q "
        f"{_bins(calibration, neighbour_count)}. The verdicts judge its weighted decisions; plain ones are "
        "shown beside them."
    )


def calibration_facts(calibration: EvaluatedCalibration, neighbour_count: int) -> dict[str, str]:
    """Name and value, for the head of the page."""
    settings = calibration.settings
    return {
        "Calibration": f"{calibration.id}, made {_created(calibration)}",
        "alpha": f"{settings.alpha}",
        "thresholds": _thresholds(calibration),
        "kappa": f"{settings.kappa:,}",
        "delta": f"{settings.delta:g}",
        "bins of q": _bins(calibration, neighbour_count),
        "points": f"{calibration.mc_count:,} in mc, {calibration.vp_count:,} in vp",
        "verdicts on": "weighted decisions",
    }


def calibration_payload(calibration: EvaluatedCalibration) -> dict[str, Any]:
    """For programs; bin_edges are the lower edges of the bins of q."""
    settings = calibration.settings
    return {
        "id": calibration.id,
        "created_at": calibration.created_at.astimezone(UTC).isoformat(),
        "alpha": str(settings.alpha),
        "thresholds": [str(threshold) for threshold in settings.thresholds],
        "kappa": settings.kappa,
        "delta": settings.delta,
        "bin_edges": list(settings.bin_edges),
        "mc_count": calibration.mc_count,
        "vp_count": calibration.vp_count,
        "weighted": True,
    }


def _created(calibration: EvaluatedCalibration) -> str:
    return f"{calibration.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _thresholds(calibration: EvaluatedCalibration) -> str:
    least, most = min(calibration.settings.thresholds), max(calibration.settings.thresholds)
    return f"{least}" if least == most else f"{least} to {most}"


def _bins(calibration: EvaluatedCalibration, neighbour_count: int) -> str:
    edges = calibration.settings.bin_edges
    if len(edges) == neighbour_count + 1:
        return f"0 to {neighbour_count}, each alone"
    return ", ".join(edge_names([*edges, neighbour_count + 1]))
