"""Inspecting a document: which of its tokens carry the prediction, and the training tokens that are nearest to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from venn_admit.errors import InvalidInputError, NotFoundError
from venn_admit.flows.extraction.options import Form, SourceOptions, form_of
from venn_admit.flows.extraction.states import OpenedStates, Resources
from venn_admit.layer.contributions import Contributions
from venn_admit.layer.states.conversion import document_ids
from venn_admit.layer.texts.source import TextFile

if TYPE_CHECKING:
    from venn_admit.layer.approximation import TrainingExemplars
    from venn_admit.layer.model import LayerModel
    from venn_admit.layer.states.index import StateDocument
    from venn_admit.layer.states.reader import StateShards

CONTEXT_TOKENS = 4
"""How many tokens on either side of a training token are shown with it."""


@dataclass(frozen=True, slots=True)
class NearToken:
    """A training token: its position in its document, from 0, and its text and those beside it, if they are known.

    label: by name; that of its document if tokens are not labelled. score: its local score of the class that the
    network predicts for the document inspected. distance: between the filter applications.
    """

    document_id: str
    position: int
    before: tuple[str, ...]
    token: str | None
    after: tuple[str, ...]
    label: str
    score: float
    distance: float


@dataclass(frozen=True, slots=True)
class InspectedToken:
    """A token that carries the prediction: its position from 0, its text, if known, and its contribution to the margin.

    detected: the classes that it is evidence for, by name: those whose local score exceeds 0. near: the training tokens
    that are nearest to it, the nearest first; none without training data.
    """

    position: int
    token: str | None
    contribution: float
    detected: tuple[str, ...]
    near: tuple[NearToken, ...]


@dataclass(frozen=True, slots=True)
class Inspected:
    """A document with what carries its prediction.

    label: by name; None if it is unknown. logits: f, (C,), rounded to float32 as its exemplar has them. representative:
    the position of the token that stands for the document. contributions: the margin of the predicted class over the
    runner-up as a sum. tokens: those that `contributions` names, in the same order.
    """

    external_id: str
    label: str | None
    logits: tuple[float, ...]
    token_count: int
    representative: int
    contributions: Contributions
    tokens: tuple[InspectedToken, ...]


def check_document(
    path: Path, options: SourceOptions, *, external_id: str | None, row: int, memory_budget: int
) -> None:
    """Check that a file has the document that is wanted, before any is encoded or converted. A folder is not opened.

    Args:
        external_id: The id of the document; None: the row says which.
        row: From 0.

    Raises:
        InvalidInputError: There is no such row, or the file is invalid.
    """
    form = form_of(path)
    if form.is_text:
        texts = TextFile(path, options.kind, options.columns, memory_budget=memory_budget)
        _find_row(texts.external_ids(), external_id, row)
    elif form is Form.STATES:
        _find_row(list(document_ids(path, kind=options.kind, memory_budget=memory_budget)), external_id, row)


def _find_row(external_ids: Sequence[str], external_id: str | None, row: int) -> int:
    if external_id is not None:
        try:
            return external_ids.index(external_id)
        except ValueError:
            raise NotFoundError(f"the file has no document {external_id!r}; name one that it has") from None
    if not 0 <= row < len(external_ids):
        raise InvalidInputError(f"row: expected 0 to {len(external_ids) - 1:,}, got {row:,}; choose one of these")
    return row


def inspect_document(
    model: "LayerModel",
    states: OpenedStates,
    resources: Resources,
    *,
    external_id: str | None,
    row: int,
    training: Callable[[], OpenedStates] | None,
    neighbour_count: int,
) -> Inspected:
    """Inspect one document of a file.

    Args:
        model: A layer whose exemplars are documents.
        training: Opens what the layer was trained on, for the nearest training tokens; None: without them.
        neighbour_count: How many training tokens are wanted for each token, >= 1.

    Raises:
        InvalidInputError: There is no such row, the exemplars of the layer are tokens, or states do not fit the layer.
        NotReadyError: Fewer training tokens are labelled than are wanted.
    """
    from venn_admit.layer.apply import check_origin, document_label
    from venn_admit.layer.approximation import training_exemplars
    from venn_admit.layer.outputs import contributions_to_margin, exemplar_with_contributions

    check_origin(model, states.shards)
    row = _find_row(states.shards.external_ids, external_id, row)
    document = next(states.shards.documents(np.array([row])))
    exemplar, found = exemplar_with_contributions(model, document.states, document.tokens)
    predicted = found.predicted
    contributions = contributions_to_margin(model, found)
    positions = np.array([share.position for share in contributions.tokens], np.int64)
    near: list[tuple[NearToken, ...]] = [()] * len(positions)
    if training is not None and len(positions):
        shards = training().shards
        resources.display.show("Extracting the training tokens")
        budget = resources.memory_budget
        with training_exemplars(model, shards, "token", folder=resources.folder, memory_budget=budget) as exemplars:
            near = _nearest(model, document, positions, predicted, shards, exemplars, neighbour_count, budget)
    given = document.token_labels
    label = document.label if given is None else document_label(given, model.settings.background)
    tokens = [
        InspectedToken(
            share.position,
            share.token,
            share.contribution,
            tuple(model.class_names[number] for number in np.flatnonzero(found.detected[share.position]).tolist()),
            beside,
        )
        for share, beside in zip(contributions.tokens, near, strict=True)
    ]
    return Inspected(
        external_id=document.external_id,
        label=None if label < 0 else model.class_names[label],
        logits=tuple(exemplar.logits[0].tolist()),
        token_count=len(document.states),
        representative=found.representative,
        contributions=contributions,
        tokens=tuple(tokens),
    )


def _nearest(
    model: "LayerModel",
    document: "StateDocument",
    positions: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    predicted: int,
    shards: "StateShards",
    training: "TrainingExemplars",
    neighbour_count: int,
    memory_budget: int,
) -> list[tuple[NearToken, ...]]:
    """For the token at each position (m,), the training tokens that are nearest to it."""
    from venn_admit.layer.outputs import exemplars_of

    vectors = exemplars_of(model, document.states, "token", document.tokens).vectors[positions]
    found = training.nearest(vectors, neighbour_count, memory_budget=memory_budget)
    row_of = {external_id: row for row, external_id in enumerate(shards.external_ids)}
    wanted = sorted({row_of[training.document_ids[index]] for index in found.indices.ravel().tolist()})
    texts = {each.external_id: each.tokens for each in shards.documents(np.array(wanted))}
    return [
        tuple(
            _near_token(model, training, texts, index, predicted, distance)
            for index, distance in zip(indices, distances, strict=True)
        )
        for indices, distances in zip(found.indices.tolist(), found.distances.tolist(), strict=True)
    ]


def _near_token(
    model: "LayerModel",
    training: "TrainingExemplars",
    texts: dict[str, tuple[str, ...]],
    index: int,
    predicted: int,
    distance: float,
) -> NearToken:
    document_id = training.document_ids[index]
    position = int(training.external_ids[index].removeprefix(f"{document_id}:"))
    tokens = texts[document_id]
    return NearToken(
        document_id=document_id,
        position=position,
        before=tokens[max(0, position - CONTEXT_TOKENS) : position],
        token=tokens[position] if tokens else None,
        after=tokens[position + 1 : position + 1 + CONTEXT_TOKENS],
        label=model.class_names[int(training.support.labels[index])],
        score=float(training.support.logits[index, predicted]),
        distance=distance,
    )
