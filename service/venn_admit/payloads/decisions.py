"""A decision with its evidence as JSON has it, made at once or computed again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping

from venn_admit.core.evidence import VIEW, Field, Kind, decision_fields, own_fields
from venn_admit.flows.decisions.listing import ShownDecision
from venn_admit.flows.decisions.replay import Replayed
from venn_admit.flows.decisions.score_one import PointDecision
from venn_admit.methods.method import AppliedPolicy
from venn_admit.payloads.rows import plain
from venn_admit.store.exemplars.exemplars import DescribedExemplar

# A training exemplar, its label, and its distance.
Near = tuple[DescribedExemplar, int, float]


def decided_payload(external_id: str | None, decided: PointDecision) -> dict[str, Any]:
    """Return what was decided on a point, and why; external_id: None if it has none."""
    class_names = decided.classifier.class_names
    return {
        "external_id": external_id,
        "calibration": decided.calibration_id,
        "class_names": list(class_names),
        **decided.fields,
        **named_classes(decided.fields, class_names),
        "category_counts": decided.category_counts.tolist(),
        "policy": policy_payload(decided.policy),
        "neighbours": neighbour_list(decided.near, class_names),
    }


def replay_payload(replayed: Replayed) -> dict[str, Any]:
    """Return a stored decision, what it rests on, and in what it differs when computed again."""
    class_names = replayed.classifier.class_names
    return {
        "decision_id": replayed.decision_id,
        "classifier": replayed.classifier.name,
        "external_id": replayed.external_id,
        "class_names": list(class_names),
        "label": replayed.label,
        "label_class": None if replayed.label is None else class_names[replayed.label],
        **named_classes(replayed.stored, class_names),
        "calibration": replayed.calibration_id,
        "stored": replayed.stored,
        "computed": replayed.computed,
        "differing": list(replayed.differing),
        "forgotten": asdict(replayed.forgotten),
        "not_recomputed": list(replayed.not_recomputed),
        "category_counts": None if replayed.category_counts is None else replayed.category_counts.tolist(),
        "policy": policy_payload(replayed.policy),
        "attributes": replayed.attributes,
        "basis": None if replayed.basis is None else asdict(replayed.basis),
        "neighbours": neighbour_list(near_replayed(replayed), class_names),
    }


def near_replayed(replayed: Replayed) -> list[Near]:
    """Each neighbour with its label of the time and its distance."""
    labels, distances = replayed.neighbour_labels.tolist(), replayed.distances.tolist()
    return list(zip(replayed.neighbours, labels, distances, strict=True))


def neighbour_list(near: Sequence[Near], class_names: Sequence[str]) -> list[dict[str, Any]]:
    """Return neighbours for JSON."""
    return [
        {
            **neighbour._mapping,
            "label": label,
            "distance": distance,
            "label_class": class_names[label],
            "network_class": class_names[neighbour.network_predicted],
        }
        for neighbour, label, distance in near
    ]


def named_classes(fields: Mapping[str, Any] | RowMapping, class_names: Sequence[str]) -> dict[str, str | None]:
    """The classes predicted and decided on by name, as `score` writes them.

    fields: of `venn_admit.core.evidence`.
    """
    decision = fields["decision"]
    return {
        "predicted_class": class_names[fields["predicted"]],
        "decided_class": None if decision is None else class_names[decision],
    }


def policy_payload(policy: AppliedPolicy | None) -> dict[str, Any] | None:
    """Return what a policy says of a prediction; null if no certificate was asked for."""
    return None if policy is None else asdict(policy)


def listed_payload(row: Any, class_names: Sequence[str]) -> dict[str, Any]:
    """Return a stored decision at a glance."""
    return {
        **plain(row),
        "predicted_class": class_names[row.predicted],
        "decided_class": None if row.decided is None else class_names[row.decided],
    }


def shown_payload(found: ShownDecision) -> dict[str, Any]:
    """Return a stored decision with its evidence; what the other method has is left out."""
    row, class_names = found.stored, found.classifier.class_names
    return {
        "decision_id": row.id,
        "classifier": found.classifier.name,
        "external_id": row.external_id,
        "calibration": row.calibration_id,
        "weighted": row.weighted,
        "require_full_match": row.require_full_match,
        "created_at": row.created_at.isoformat(),
        "class_names": list(class_names),
        **decision_fields(row._asdict()),
        **named_classes(row._mapping, class_names),
        "label": row.label,
        "label_class": None if row.label is None else class_names[row.label],
        "attributes": found.attributes,
        "neighbours": None if found.near is None else neighbour_list(found.near, class_names),
    }


def class_table(
    stored: Mapping[str, Any],
    class_names: Sequence[str],
    category: Sequence[int] | None,
    number: Callable[[float], str],
) -> tuple[list[str], list[tuple[str, ...]]] | None:
    """Return what a decision says of each class, as heads and rows for people; None if its method says nothing.

    category: points of each label in the category; None if that is unknown. number: how numbers are written.
    """
    fields = [field for field in own_fields(stored) if field.kind.is_per_class]
    if not fields:
        return None
    fields += [field for field in VIEW if field.kind.is_per_class]
    rows = []
    for place, name in enumerate(class_names):
        cells = [_class_cell(field, stored[field.name][place], number) for field in fields]
        rows.append((name, *cells, "unknown" if category is None else f"{category[place]:,}"))
    return ["class", *(field.words for field in fields), "in category"], rows


def _class_cell(field: Field, value: Any, number: Callable[[float], str]) -> str:
    if field.kind is Kind.BITS:
        return "yes" if value == "1" else "no"
    return f"{value:,}" if field.kind is Kind.INTEGERS else number(value)
