"""What the memory layer is shown by: measures of its exemplars, what it sees in a text, and contributions of tokens."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from venn_admit.cli.output import cell, output
from venn_admit.cli.tables.rows import facts, table
from venn_admit.core.evaluation.curves import AccuracyGrid
from venn_admit.core.groups import attribute_text
from venn_admit.core.types import IntArray
from venn_admit.flows.extraction.evaluate import EvaluatedLevel
from venn_admit.flows.extraction.inspect import Inspected, NearToken
from venn_admit.layer.contributions import Contributions, contributions_in, sum_rows, without_contributions
from venn_admit.layer.evaluation import Detection, LevelEvaluation, Partitions, PredictionMeasures
from venn_admit.report.evaluation.wording import interval_text
from venn_admit.report.wording import counted, share_text

NAMED_IN_A_LINE = 3


def print_evaluation(class_names: Sequence[str], evaluated: EvaluatedLevel) -> None:
    """Print the tables of a level."""
    found = evaluated.found
    what = counted(found.points, found.level)
    of = "" if found.level == "document" else f" of {counted(found.documents, 'document')}"
    beside = ""
    if evaluated.training_count is not None:
        beside = (
            f"; the KNN has {counted(evaluated.training_count, 'training exemplar')}, and was fitted on "
            f"{counted(evaluated.fit_count or 0, 'other')}"
        )
    unlabelled = "" if found.network is not None else ", none of which is labelled"
    output.print(cell(f"{what}{of}{unlabelled}{beside}."), soft_wrap=True)
    _print_predictions(found)
    if found.network is not None:
        _print_classes(class_names, found)
    if found.partitions is not None:
        _print_partitions(found.partitions)


def _print_predictions(found: LevelEvaluation) -> None:
    rows = []
    for name, measures, agreement in (("network", found.network, None), ("KNN", found.knn, found.agreement)):
        if measures is None and agreement is None:
            continue
        row = [name, "", "", "", "", "", ""]
        if measures is not None:
            overall, accuracy = measures.accuracy.tallies.overall, measures.accuracy
            row[1:3] = share_text(overall.share), interval_text(overall.interval)
            row[3:5] = share_text(accuracy.f_half_macro), interval_text(accuracy.f_half_interval)
        if agreement is not None:
            row[5:7] = share_text(agreement.share), interval_text(agreement.interval)
        rows.append(row)
    columns = ("", "accuracy", "95 %", "F0.5", "95 %", "as the network", "95 %")
    output.print(table(columns, rows, title="Predictions", right=columns[1:]))


def _print_classes(class_names: Sequence[str], found: LevelEvaluation) -> None:
    """Print precision, recall and F0.5 of every class, by each way of predicting."""
    rows: list[tuple[Any, ...]] = []
    ways: list[tuple[str, tuple[Detection, ...]]] = [
        (name, measures.detections)
        for name, measures in (("network", found.network), ("KNN", found.knn))
        if isinstance(measures, PredictionMeasures)
    ]
    if found.evidence:
        ways.insert(1, ("evidence, s > 0", found.evidence))
    for number, name in enumerate(class_names):
        for first, (way, detections) in enumerate(ways):
            one = detections[number]
            if not one.present and not one.detected:
                continue
            shares = [share_text(one.precision), share_text(one.recall), share_text(one.f_half)]
            head = (name, one.present) if first == 0 else (None, None)
            rows.append((*head, way, one.detected, *shares, share_text(one.f_half_of_all) if first == 0 else None))
    shares_of = ("precision", "recall", "F0.5", "F0.5 if all are")
    columns = ("class", "labelled", "by", "found", *shares_of)
    output.print(table(columns, rows, title="Classes", right=shares_of))


def _print_partitions(found: Partitions) -> None:
    rows: list[tuple[Any, ...] | None] = []
    for axis, names in ((1, _match_names(found.agreement)), (0, _distance_names(found.agreement))):
        counts = found.agreement.count.sum(axis=axis)
        for place, name in enumerate(names):
            if not counts[place]:
                continue
            shares = [
                "-" if grid is None else share_text(_share(grid.correct.sum(axis=axis), counts, place))
                for grid in (found.network, found.knn, found.agreement)
            ]
            rows.append((name, int(counts[place]), *shares))
        rows.append(None)
    ways = ("network", "KNN", "as the network")
    output.print(table(("partition", "points", *ways), rows[:-1], title="Partitions by q and by d", right=ways))


def _share(right: IntArray, counts: IntArray, place: int) -> float:
    return float(right[place] / counts[place])


def _match_names(grid: AccuracyGrid) -> Iterator[str]:
    for low, end in pairwise(grid.match_edges.tolist()):
        yield f"q = {low}" if end == low + 1 else f"q = {low} to {end - 1}"


def _distance_names(grid: AccuracyGrid) -> Iterator[str]:
    edges = grid.distance_edges
    for low, high in pairwise(edges.tolist()):
        last = np.isclose(high, edges[-1])
        yield f"d = {low:.4g} to {'' if last else 'below '}{high:.4g}"


def print_inspected(class_names: Sequence[str], found: Inspected) -> None:
    """Print the tables."""
    logits = ", ".join(f"{name} {logit:.3f}" for name, logit in zip(class_names, found.logits, strict=True))
    of_document = (
        ("predicted class", found.contributions.class_name),
        ("label", "none" if found.label is None else found.label),
        ("logits", logits),
        ("tokens", found.token_count),
    )
    output.print(facts(found.external_id, of_document))
    print_contributions(found.contributions)
    if not any(token.near for token in found.tokens):
        return
    rows: list[tuple[str, ...] | None] = []
    for token in found.tokens:
        for place, near in enumerate(token.near):
            name = "" if place else token.token or f"at {token.position}"
            where = f"{near.document_id}:{near.position}"
            rows.append((name, f"{near.distance:.4g}", _in_context(near), where, str(near.label)))
        rows.append(None)
    columns = ("token", "distance", "training token", "in", "label")
    output.print(table(columns, rows[:-1], title="Nearest training tokens", right=("distance",)))


def _in_context(near: NearToken) -> str:
    return "at that position" if near.token is None else " ".join((*near.before, f"[{near.token}]", *near.after))


def print_contributions(found: Contributions) -> None:
    """Print the margin of the predicted class over the runner-up as a sum over tokens."""
    rows: list[tuple[str, ...] | None] = []
    for row in sum_rows(found):
        if row.is_sum:
            rows.append(None)
        rows.append(("" if row.position is None else f"{row.position}", row.name, row.figure))
    title = f"What carries {found.class_name} over {found.runner_up}, the runner-up"
    columns = ("position", "token", "contribution")
    output.print(table(columns, rows, title=title, right=("position", "contribution")))


def attributes_line(attributes: Mapping[str, Any], predicted_class: str) -> str:
    """Return attributes in a line, each with its name, the contributions to the network's prediction in short last.

    >>> attributes_line({"region": "north", "urgent": None, "read": True}, "spam")
    'region north, urgent null, read true'
    """
    carried = contributions_in(attributes, predicted_class)
    short = [] if carried is None else [f"carried by {carried.in_short(NAMED_IN_A_LINE)}"]
    others = without_contributions(attributes, carried).items()
    return ", ".join([*(f"{name} {attribute_text(value)}" for name, value in others), *short])
