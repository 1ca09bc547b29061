"""The calibration that was evaluated, in words and for programs: its number, date and settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from venn_admit.core.calibrators.arguments import json_settings, setting_words
from venn_admit.core.calibrators.certification import Certification
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import AUTO, CalibratorSettings, ScoreKind, VennAbersSettings
from venn_admit.report.wording import time_text
from venn_admit_client.records.calibrations import thresholds_text


@dataclass(frozen=True, slots=True)
class SettingsShown:
    """The settings of a calibration, as its method has them.

    words: name and value, in the order shown. stored: for programs. note: what the verdicts judge.
    """

    words: Mapping[str, str]
    stored: Mapping[str, Any]
    note: str


@dataclass(frozen=True, slots=True)
class EvaluatedCalibration:
    """The snapshot whose decisions were evaluated, by its number: when it was made, how, and with how many points.

    weighted: whether the decisions that the verdicts judge are weighted.
    """

    id: int
    created_at: datetime
    method: str
    settings: SettingsShown
    weighted: bool
    mc_count: int
    vp_count: int


def settings_of_bands(settings: CalibratorSettings, neighbour_count: int) -> SettingsShown:
    """Return the settings of Venn-ADMIT."""
    return SettingsShown(
        {
            "alpha": f"{settings.alpha}",
            "thresholds": thresholds_text(settings.thresholds),
            **setting_words(settings, "kappa", "delta"),
            "bins of q": bins_text(settings.q_bins, neighbour_count),
        },
        {**json_settings(settings, "alpha", "thresholds", "kappa", "delta"), "bin_edges": list(settings.q_bins)},
        "The verdicts judge its decisions, which are plain; Venn-ADMIT as mc and vp divide it stands beside them."
        if settings.undivided
        else "The verdicts judge its weighted decisions; plain ones are shown beside them.",
    )


def settings_of_cells(settings: VennAbersSettings, kind: ScoreKind, neighbour_count: int | None) -> SettingsShown:
    """Return the settings of Venn-Abers and the score of the snapshot; neighbour_count: None with logits only."""
    certification = settings.certification
    by_name = certification is not None and settings.promise is AskedPromise.POINTWISE
    certified = {"certified": certification_text(certification)} if certification is not None and by_name else {}
    thresholds = "of the policy" if settings.has_policy else thresholds_text(settings.thresholds)
    return SettingsShown(
        {
            "alpha": f"{settings.alpha}",
            "thresholds": thresholds,
            **certified,
            "score": f"{kind}, chosen by {AUTO}" if settings.score is None else str(kind),
            **setting_words(settings),
            **(
                {}
                if neighbour_count is None or len(settings.q_bins) == 1
                else {"bins of q": bins_text(settings.q_bins, neighbour_count)}
            ),
        },
        {
            **json_settings(settings, "alpha", "thresholds"),
            "asked_score": str(settings.score or AUTO),
            "score": str(kind),
            "bin_edges": list(settings.q_bins),
            "certified": json_settings(settings, "certify")["certify"],
            **json_settings(settings, "confidence", "test"),
        },
        "The verdicts judge its decisions, which are on the network's prediction.",
    )


def calibration_text(calibration: EvaluatedCalibration) -> str:
    """Two sentences, for the terminal."""
    words = ", ".join(f"{name} {value}" for name, value in calibration.settings.words.items())
    return (
        f"Calibration {calibration.id} by the method {calibration.method}, made {time_text(calibration.created_at)}: "
        f"{words}. {calibration.settings.note}"
    )


def calibration_facts(calibration: EvaluatedCalibration) -> dict[str, str]:
    """Name and value, for the head of the page."""
    points = {"mc": calibration.mc_count, "vp": calibration.vp_count}
    return {
        "Calibration": f"{calibration.id}, made {time_text(calibration.created_at)}",
        "method": calibration.method,
        **calibration.settings.words,
        "points": ", ".join(f"{count:,} in {split}" for split, count in points.items() if count),
        "verdicts on": f"{'weighted' if calibration.weighted else 'plain'} decisions",
    }


def calibration_payload(calibration: EvaluatedCalibration) -> dict[str, Any]:
    """For programs; bin_edges are the lower edges of the bins of q."""
    return {
        "id": calibration.id,
        "created_at": calibration.created_at.astimezone(UTC).isoformat(),
        "method": calibration.method,
        **calibration.settings.stored,
        "mc_count": calibration.mc_count,
        "vp_count": calibration.vp_count,
        "weighted": calibration.weighted,
    }


def certification_text(certification: Certification) -> str:
    """Return what a certificate is asked for."""
    kinds = " and ".join(certification.kinds)
    return f"{kinds} classes, confidence {certification.confidence}, {certification.test} test"


def bins_text(edges: Sequence[int], neighbour_count: int) -> str:
    """Return the bins of q in words; edges: their lower edges."""
    if len(edges) == neighbour_count + 1:
        return f"0 to {neighbour_count}, each alone"
    return ", ".join(edge_names([*edges, neighbour_count + 1]))


def edge_names(edges: Iterable[int]) -> list[str]:
    """Return the names of the bins of q, from their lower edges and, last, K + 1.

    >>> edge_names([0, 1, 6, 25, 26])
    ['0', '1-5', '6-24', '25']
    """
    return [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(edges)]
