"""Evaluating a memory layer on a file, and the KNN over its training exemplars beside the network."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from venn_admit.errors import InvalidInputError
from venn_admit.flows.extraction.states import OpenedStates, Resources
from venn_admit.layer.outputs import level_of
from venn_admit.layer.states.index import Kind

if TYPE_CHECKING:
    from venn_admit.core.types import IntArray
    from venn_admit.layer.evaluation import LevelEvaluation
    from venn_admit.layer.model import LayerModel
    from venn_admit.layer.states.reader import StateShards


@dataclass(frozen=True, slots=True)
class KnnSources:
    """What the KNN is made of: the states that the memory layer was trained on, and K >= 1.

    fit: documents that it was not trained on, for the fit alone; None: a quarter of those that are evaluated.
    """

    training: OpenedStates
    fit: OpenedStates | None
    neighbour_count: int


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedLevel:
    """The measures at one level, the number of training exemplars, and of those that the KNN was fitted on.

    The numbers are None without a KNN.
    """

    found: "LevelEvaluation"
    training_count: int | None = None
    fit_count: int | None = None


def check_is_new(path: Path, states: OpenedStates, earlier: Sequence[tuple[Path, OpenedStates]]) -> None:
    """Check that no document was seen before. Texts are compared as texts while they are read; states by their ids.

    Args:
        earlier: What the layer was trained on, or the KNN is fitted on, each with its path.

    Raises:
        InvalidInputError: Some have an id that one of the earlier ones has.
    """
    for other, seen in earlier:
        if states.summary is not None and seen.summary is not None:
            continue
        common = sorted(set(states.shards.external_ids) & set(seen.shards.external_ids))
        if common:
            raise InvalidInputError(
                f"{path}: expected documents that are not in {other}, too, got {len(common):,} with an id that is "
                f"there, such as {common[0]!a}; leave them out, or, if these are other documents, give ids that tell "
                "them apart"
            )


def levels_of(model: "LayerModel", shards: "StateShards", level: Kind | None) -> tuple[Kind, ...]:
    """Return the levels to evaluate: the one asked for, or those at which there are labels.

    If tokens are labelled, a layer for documents with a background class has labels of documents as well.

    Args:
        level: What was asked for; None: what is labelled.

    Raises:
        InvalidInputError: The exemplars of the layer are tokens, and documents were asked for.
    """
    if level is not None:
        return (level_of(model, level),)
    if model.settings.form.kind == "token" or shards.kind == "document":
        return (model.settings.form.kind,)
    return ("token",) if model.settings.background is None else ("document", "token")


def evaluate_states(
    model: "LayerModel", states: OpenedStates, levels: Sequence[Kind], knn: KnnSources | None, resources: Resources
) -> tuple[EvaluatedLevel, ...]:
    """Evaluate a memory layer, level by level.

    Args:
        states: The states of documents that it was not trained on.
        knn: None: the network alone is evaluated.
        resources: Each point takes some tens of bytes beside the budget.

    Raises:
        InvalidInputError: States are of another encoder or have other classes.
        NotReadyError: Labels are missing, or there are too few documents or training exemplars.
    """
    return tuple(_evaluated(model, states, level, knn, resources) for level in levels)


def _evaluated(
    model: "LayerModel", states: OpenedStates, level: Kind, knn: KnnSources | None, resources: Resources
) -> EvaluatedLevel:
    from venn_admit.layer.approximation import fit_on, training_exemplars
    from venn_admit.layer.evaluation import evaluate_layer

    shards, display, memory_budget = states.shards, resources.display, resources.memory_budget
    if knn is None:
        display.show(f"Evaluating each {level}")
        return EvaluatedLevel(evaluate_layer(model, shards, level=level, memory_budget=memory_budget))
    display.show(f"Extracting the training exemplars: each {level}")
    with training_exemplars(
        model, knn.training.shards, level, folder=resources.folder, memory_budget=memory_budget
    ) as training:
        fit_shards, fit_rows, rows = _divided(model, shards, knn.fit)
        display.show(f"Fitting the KNN: each {level}")
        fitted = fit_on(
            model,
            training,
            fit_shards,
            fit_rows,
            level,
            neighbour_count=knn.neighbour_count,
            memory_budget=memory_budget,
        )
        display.show(f"Evaluating each {level}")
        found = evaluate_layer(model, shards, level=level, rows=rows, knn=fitted, memory_budget=memory_budget)
        return EvaluatedLevel(found, len(training.external_ids), fitted.fit_count)


def _divided(
    model: "LayerModel", shards: "StateShards", fit: OpenedStates | None
) -> "tuple[StateShards, IntArray, IntArray]":
    """The documents to fit on: their states and rows; and the rows to evaluate."""
    from venn_admit.layer.approximation import fit_share

    if fit is None:
        fit_rows, rows = fit_share(shards, model.settings.seed)
        return shards, fit_rows, rows
    return fit.shards, np.arange(fit.shards.document_count), np.arange(shards.document_count)
