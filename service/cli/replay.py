"""`venn-admit replay`: what a decision rests on, and whether it comes out the same today."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from service.cli.output import output, tell
from service.cli.session import open_session
from service.errors import VennAdmitError
from service.flows.replay import Replayed, replay

FIELDS = {
    "predicted": "predicted class",
    "match_count": "q, matching neighbours",
    "distance": "d, distance to training",
    "category_size": "category size, |T|",
    "upweight": "up-weight, w",
    "lower": "lower probability",
    "upper": "upper probability",
    "decision": "decision",
    "reason": "reason of rejection",
}


class ReplayDiffersError(VennAdmitError):
    """A decision did not come out as it is stored."""


def run(decision_id: int, *, as_json: bool) -> None:
    """Replay a decision and print it; ReplayDiffersError, after printing, where a field differs."""
    session = open_session()
    replayed = replay(session.engine, session.cache, decision_id)
    if as_json:
        tell(True, _payload(decision_id, replayed))
    else:
        _print(decision_id, replayed)
    if replayed.differing:
        raise ReplayDiffersError(
            f"decision {decision_id} differs from what is stored in: {', '.join(replayed.differing)}"
        )


def _payload(decision_id: int, replayed: Replayed) -> dict[str, Any]:
    return {
        "decision_id": decision_id,
        "external_id": replayed.external_id,
        "label": replayed.label,
        "calibration": replayed.calibration_id,
        "stored": replayed.stored,
        "computed": replayed.computed,
        "differing": list(replayed.differing),
        "category_counts": replayed.category_counts.tolist(),
        "neighbours": [
            {**neighbour._mapping, "label": label, "distance": distance}
            for neighbour, label, distance in _near(replayed)
        ],
    }


def _near(replayed: Replayed) -> Iterator[tuple[Any, int, float]]:
    """Each neighbour with its label of the time and its distance."""
    return zip(replayed.neighbours, replayed.neighbour_labels.tolist(), replayed.distances.tolist(), strict=True)


def _print(decision_id: int, replayed: Replayed) -> None:
    names, stored = replayed.classifier.class_names, replayed.stored
    title = f"Decision {decision_id} on {replayed.external_id}, calibration {replayed.calibration_id}"
    facts = Table(title=Text(title), title_justify="left", box=None, show_header=False)
    for field, words in FIELDS.items():
        value = stored[field]
        if value is not None and field in ("predicted", "decision"):
            value = names[value]
        facts.add_row(words, Text("-" if value is None else str(value)))
    output.print(facts)

    evidence = Table(title="Evidence per class", title_justify="left")
    for column in ("class", "in set", "points in band", "threshold", "KNN logit", "in category"):
        evidence.add_column(column, justify="left" if column == "class" else "right")
    columns = (stored["admit_set"], stored["band_size"], stored["threshold"], stored["logits"])
    for name, bit, size, threshold, logit, count in zip(names, *columns, replayed.category_counts, strict=True):
        included = "yes" if bit == "1" else "no"
        evidence.add_row(Text(name), included, f"{size:,}", f"{threshold:.6g}", f"{logit:.6g}", f"{count:,}")
    output.print(evidence)

    nearest = Table(title="Nearest training exemplars", title_justify="left")
    for column in ("id", "distance", "label", "network", "attributes"):
        nearest.add_column(column)
    for neighbour, label, distance in _near(replayed):
        attributes = ", ".join(f"{key} {value}" for key, value in neighbour.attributes.items())
        predicted = names[neighbour.network_predicted]
        cells = (neighbour.external_id, f"{distance:.6g}", names[label], predicted, attributes)
        nearest.add_row(*map(Text, cells))  # no markup: ids and attributes may look like it
    output.print(nearest)
    if not replayed.differing:
        output.print("Computed again from its snapshot, it is the same in every field.")
