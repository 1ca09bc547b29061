"""Answers of the service as results."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from .members import from_json
from .records import Ingestion, Labelling, Neighbour
from .results import (
    Alarm,
    Calibration,
    Decision,
    Monitor,
    Policy,
    Replay,
    StoredDecision,
)

Stored = TypeVar("Stored", Ingestion, Labelling)

_DECISION_NAMES = ("external_id", "neighbours", "class_names", "predicted_class", "decided_class", "calibration")


def stored_of(of: type[Stored], answers: Iterable[Mapping[str, Any]]) -> Stored:
    """Return what became of exemplars or labels that were sent in several requests."""
    total: dict[str, Any] = {}
    for answer in answers:
        for name, value in answer.items():
            if name == "recalibrations_due":
                total[name] = max(value, total.get(name, 0))
            elif name == "training_waiting":  # earlier ones are counted in it
                total[name] = value
            elif isinstance(value, Mapping):
                total[name] = Counter(total.get(name, {})) + Counter(value)
            else:
                total[name] = value + total.get(name, 0)
    return from_json(of, total | {name: dict(value) for name, value in total.items() if isinstance(value, Counter)})


def calibration_of(made: Mapping[str, Any], shown: Mapping[str, Any]) -> Calibration:
    """Return a calibration from what making it and what showing it answered."""
    asked = shown["asked"]
    usable, singletons = made.get("vp_in_usable_bands"), made.get("vp_singletons")
    return Calibration(
        id=made["calibration"],
        method=asked["method"],
        alpha=Decimal(asked["alpha"]),
        thresholds=tuple(None if one is None else Decimal(one) for one in asked["thresholds"]),
        q_bins=tuple(asked["q_bins"]),
        mc_points=made["mc"],
        vp_points=made["vp"],
        delta=None if asked["delta"] is None else float(asked["delta"]),
        kappa=asked["kappa"],
        usable_share=None if usable is None else usable / made["vp"],
        singleton_share=None if singletons is None else singletons / made["vp"],
        score=made.get("chosen_score"),
        certificate=made.get("certificate"),
    )


def decision_of(answer: Mapping[str, Any]) -> Decision:
    """Return a decision that was made at once."""
    return Decision(
        id=answer["external_id"],
        admitted=answer["decided_class"],
        predicted=answer["predicted_class"],
        reason=answer["reason"],
        lower=answer["lower"],
        upper=answer["upper"],
        match_count=answer["match_count"],
        distance=answer["distance"],
        neighbours=_neighbours(answer),
        calibration=answer["calibration"],
        evidence={name: value for name, value in answer.items() if name not in _DECISION_NAMES},
    )


def stored_decision_of(answer: Mapping[str, Any]) -> StoredDecision:
    """Return a decision of a list."""
    return StoredDecision(
        number=answer["decision"],
        id=answer["external_id"],
        admitted=answer["decided_class"],
        predicted=answer["predicted_class"],
        reason=answer["reason"],
        lower=answer["lower"],
        upper=answer["upper"],
        calibration=answer["calibration"],
        weighted=answer["weighted"],
        require_full_match=answer["require_full_match"],
        created_at=datetime.fromisoformat(answer["created_at"]),
    )


def replay_of(answer: Mapping[str, Any]) -> Replay:
    """Return a decision that was computed again."""
    return Replay(
        number=answer["decision_id"],
        id=answer["external_id"],
        calibration=answer["calibration"],
        differing=tuple(answer["differing"]),
        stored=answer["stored"],
        computed=answer["computed"],
        neighbours=_neighbours(answer),
        document=answer,
    )


def monitor_of(answer: Mapping[str, Any]) -> Monitor:
    """Return what a monitor says."""
    return Monitor(
        classifier=answer["classifier"],
        alarm=answer["alarm"],
        alarms=tuple(map(alarm_of, answer["alarms"])),
        documents=answer["documents"],
        points=answer["points"],
        document=answer,
    )


def alarm_of(answer: Mapping[str, Any]) -> Alarm:
    """Return an alarm, or a notice, that stands."""
    return Alarm(
        id=answer["alarm"],
        lamp=answer["lamp"],
        harmful=answer["harmful"],
        label=answer["class" if "class" in answer else "predicted_class"],
        match_counts=answer.get("q"),
        target=Decimal(answer["target"]),
        since=datetime.fromisoformat(answer["since"]),
        document=answer,
    )


def policy_of(answer: Mapping[str, Any]) -> Policy:
    """Return the outcome of a certification."""
    thresholds = answer["thresholds"]
    return Policy(
        classifier=answer["classifier"],
        calibration=answer["calibration"],
        is_certified=answer["certified"],
        kinds=tuple(answer["kinds"]),
        confidence=Decimal(answer["confidence"]),
        test=answer["test"],
        thresholds=None if thresholds is None else dict(zip(answer["classes"], thresholds, strict=True)),
        document=answer,
    )


def _neighbours(answer: Mapping[str, Any]) -> tuple[Neighbour, ...]:
    return tuple(from_json(Neighbour, one) for one in answer["neighbours"])
