"""`venn-admit replay`: what a decision rests on, and whether it comes out the same today."""

from typing import Any

from service.cli.output import output, print_result
from service.cli.session import open_session
from service.cli.shown.decision_tables import Near, named_classes, neighbour_list, print_decision
from service.errors import VennAdmitError
from service.flows.decisions.replay import Replayed, newest_decision, replay


class ReplayDiffersError(VennAdmitError):
    """A decision did not come out as it is stored."""


def run(decision: int | tuple[str, str], *, as_json: bool) -> None:
    """Replay a decision and print it; ReplayDiffersError, after printing, if a field differs.

    decision: its number, or the names of a classifier and of an exemplar, whose newest decision it is.
    """
    session = open_session()
    decision_id = decision if isinstance(decision, int) else newest_decision(session.engine, *decision)
    replayed = replay(session.engine, session.cache, decision_id)
    if as_json:
        print_result(True, _payload(decision_id, replayed))
    else:
        _print(decision_id, replayed)
    if replayed.differing:
        raise ReplayDiffersError(
            f"decision {decision_id} differs from what is stored in: {', '.join(replayed.differing)}"
        )


def _payload(decision_id: int, replayed: Replayed) -> dict[str, Any]:
    class_names = replayed.classifier.class_names
    return {
        "decision_id": decision_id,
        "external_id": replayed.external_id,
        "class_names": list(class_names),
        "label": replayed.label,
        "label_class": None if replayed.label is None else class_names[replayed.label],
        **named_classes(replayed.stored, class_names),
        "calibration": replayed.calibration_id,
        "stored": replayed.stored,
        "computed": replayed.computed,
        "differing": list(replayed.differing),
        "category_counts": replayed.category_counts.tolist(),
        "neighbours": neighbour_list(_near(replayed), class_names),
    }


def _near(replayed: Replayed) -> list[Near]:
    """Each neighbour with its label of the time and its distance."""
    labels, distances = replayed.neighbour_labels.tolist(), replayed.distances.tolist()
    return list(zip(replayed.neighbours, labels, distances, strict=True))


def _print(decision_id: int, replayed: Replayed) -> None:
    title = f"Decision {decision_id} on {replayed.external_id}, calibration {replayed.calibration_id}"
    print_decision(title, replayed.classifier.class_names, replayed.stored, replayed.category_counts, _near(replayed))
    if not replayed.differing:
        output.print("Computed again from its snapshot, it is the same in every field.")
