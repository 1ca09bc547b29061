"""A decision on one point as tables: the decision, its evidence per class, and the nearest training exemplars."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from venn_admit.service.cli.output import cell, output
from venn_admit.service.core.types import IntArray
from venn_admit.service.flows.methods.method import AppliedPolicy
from venn_admit.service.payloads.decisions import Near

_FIELDS = {
    "predicted": "predicted class",
    "match_count": "q, matching neighbours",
    "distance": "d, distance to training",
    "score": "score, s",
    "step_score": "step of the score, from",
    "category_size": "category size, |T|",
    "upweight": "up-weight, w",
    "lower": "lower probability",
    "upper": "upper probability",
    "decision": "decision",
    "reason": "reason of rejection",
}

# What there may be no more to say of: an admitted prediction has no reason, and logits alone no neighbours.
_LEFT_OUT_IF_NONE = frozenset({"reason", "match_count", "distance"})


def _fact(field: str, value: Any, class_names: Sequence[str]) -> Any:
    """A field as people read it; probabilities exist only for a prediction that was given a category."""
    if value is None:
        return "none (rejected)" if field == "decision" else "not computed"
    return class_names[value] if field in ("predicted", "decision") else value


def print_decision(
    title: str,
    class_names: Sequence[str],
    fields: Mapping[str, Any],
    category_counts: IntArray,
    near: Sequence[Near],
    policy: AppliedPolicy | None = None,
) -> None:
    """Print the tables.

    fields: of `venn_admit.service.flows.methods.fields`. category_counts: (C,) int64. policy: None if no certificate
    was asked for.
    """
    facts = Table(title=cell(title), title_justify="left", box=None, show_header=False)
    for field, words in _FIELDS.items():
        if field in fields and (field not in _LEFT_OUT_IF_NONE or fields[field] is not None):
            facts.add_row(words, cell(_fact(field, fields[field], class_names)))
    if policy is not None:
        facts.add_row("policy", cell(_policy_text(policy)))
    output.print(facts)

    if "admit_set" in fields:
        _print_bands(class_names, fields, category_counts)
    if near:
        _print_nearest(class_names, near)


def _print_nearest(class_names: Sequence[str], near: Sequence[Near]) -> None:
    nearest = Table(title="Nearest training exemplars", title_justify="left")
    for column in ("id", "distance", "label", "network", "attributes"):
        nearest.add_column(column)
    for neighbour, label, distance in near:
        attributes = ", ".join(f"{key} {value}" for key, value in neighbour.attributes.items())
        predicted = class_names[neighbour.network_predicted]
        cells = (neighbour.external_id, f"{distance:.6g}", class_names[label], predicted, attributes)
        nearest.add_row(*map(cell, cells))
    output.print(nearest)


def _policy_text(policy: AppliedPolicy) -> str:
    if not policy.is_certified:
        return "none is certified"
    if policy.threshold is None:
        return "certified; this class is never admitted"
    return f"certified; admits this class from a lower probability of {policy.threshold:.6g}"


def _print_bands(class_names: Sequence[str], fields: Mapping[str, Any], category_counts: IntArray) -> None:
    """Print the evidence of bands, sets and categories, which one method has."""
    evidence = Table(title="Evidence per class", title_justify="left")
    for column in ("class", "in set", "points in band", "threshold", "KNN logit", "in category"):
        evidence.add_column(column, justify="left" if column == "class" else "right")
    columns = (fields["admit_set"], fields["band_size"], fields["threshold"], fields["logits"])
    for name, bit, size, threshold, logit, count in zip(class_names, *columns, category_counts, strict=True):
        included = "yes" if bit == "1" else "no"
        evidence.add_row(cell(name), included, f"{size:,}", f"{threshold:.6g}", f"{logit:.6g}", f"{count:,}")
    output.print(evidence)
