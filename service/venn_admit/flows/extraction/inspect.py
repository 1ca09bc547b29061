"""Inspecting a document: which of its tokens carry the prediction, and the training tokens that are nearest to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from venn_admit.errors import InvalidInputError, NotFoundError
from venn_admit.flows.extraction.options import Form, SourceOptions, form_of
from venn_admit.flows.extraction.states import Display, OpenedStates
from venn_admit.layer.contributions import Contributions
from venn_admit.layer.states.conversion import document_ids
from venn_admit.layer.texts.source import TextFile

if TYPE_CHECKING:
    from venn_admit.layer.approximation import TrainingExemplars
    from venn_admit.layer.model import MemoryModel
    from venn_admit.layer.states.index import StateDocument
    from venn_admit.layer.states.reader import StateShards

CONTEXT_TOKENS = 4
"""How many tokens on either side of a training token are shown with it."""


@dataclass(frozen=True, slots=True)
class NearToken:
    """A training token.

    Attributes:
        document_id: Its document.
        position: In its document, from 0.
        before: Tokens before it, as many as are shown; none if texts are unknown.
        token: Its text; None if it is unknown.
        after: Tokens after it.
        label: Its label by name; that of its document if tokens are not labelled.
        score: Its local score of the class that the network predicts for the document inspected.
        distance: Between the filter applications.
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
    """A token that carries the prediction.

    Attributes:
        position: From 0.
        token: Its text; None if it is unknown.
        contribution: To the margin over the runner-up.
        detected: The classes that it is evidence for, by name: those whose local score exceeds 0.
        near: The training tokens that are nearest to it, the nearest first; none without training data.
    """

    position: int
    token: str | None
    contribution: float
    detected: tuple[str, ...]
    near: tuple[NearToken, ...]


@dataclass(frozen=True, slots=True)
class Inspected:
    """A document with what carries its prediction.

    Attributes:
        external_id: Its id.
        label: The class name; None if it is unknown.
        logits: f, (C,), rounded to float32 as its exemplar has them.
        token_count: T.
        representative: The position of the token that stands for the document.
        contributions: The margin of the predicted class over the runner-up as a sum.
        tokens: Those that `contributions` names, in the same order.
    """

    external_id: str
    label: str | None
    logits: tuple[float, ...]
    token_count: int
    representative: int
    contributions: Contributions
    tokens: tuple[InspectedToken, ...]


def check_document(
    path: Path,
    options: SourceOptions,
    *,
    external_id: str | None,
    row: int,
    memory_budget: int,
) -> None:
    """Check that a file has the document that is wanted, before any is encoded or converted. A folder is not opened.

    Args:
        options: How it is read.
        external_id: As in `inspect_document`.
        row: As in `inspect_document`.

    Raises:
        InvalidInputError: There is no such row, or the file is invalid.
        NotFoundError: There is no document of this id.
    """
    form = form_of(path)
    if form.is_text:
        texts = TextFile(path, options.kind, options.columns, memory_budget=memory_budget)
        find_row(texts.external_ids(), external_id, row)
    elif form is Form.STATES:
        find_row(list(document_ids(path, kind=options.kind, memory_budget=memory_budget)), external_id, row)


def find_row(external_ids: Sequence[str], external_id: str | None, row: int) -> int:
    """Return the row of a document.

    Args:
        external_ids: The ids of all documents.
        external_id: The id of the one that is wanted; None: the row says which.
        row: From 0.

    Raises:
        InvalidInputError: There is no such row.
        NotFoundError: There is no document of this id.
    """
    if external_id is not None:
        try:
            return external_ids.index(external_id)
        except ValueError:
            raise NotFoundError(f"the file has no document {external_id!a}; name one that it has") from None
    if not 0 <= row < len(external_ids):
        raise InvalidInputError(f"row: expected 0 to {len(external_ids) - 1:,}, got {row:,}; choose one of these")
    return row


def inspect_document(
    model: "MemoryModel",
    states: OpenedStates,
    *,
    external_id: str | None,
    row: int,
    training: Callable[[], OpenedStates] | None,
    neighbour_count: int,
    kept_in: Path,
    display: Display,
    memory_budget: int,
) -> Inspected:
    """Inspect one document of a file.

    Args:
        model: A layer whose exemplars are documents.
        states: The states of its encoder.
        external_id: The id of the document; None: the row says which.
        row: The row of the document, from 0.
        training: Opens what the layer was trained on, for the nearest training tokens; None: without them.
        neighbour_count: How many training tokens are wanted for each token, >= 1.
        kept_in: Where a file for the vectors of the training tokens may lie while this runs.
        memory_budget: Bytes that this may take beside the logits of the training tokens.

    Raises:
        InvalidInputError: There is no such row, the exemplars of the layer are tokens, or states do not fit the layer.
        NotFoundError: There is no document of this id.
        NotReadyError: Fewer training tokens are labelled than are wanted.
    """
    from venn_admit.layer.apply import check_origin, document_label
    from venn_admit.layer.approximation import training_exemplars
    from venn_admit.layer.outputs import contributions_to_margin, exemplar_with_contributions

    check_origin(model, states.shards)
    place = find_row(states.shards.external_ids, external_id, row)
    document = next(states.shards.documents(np.array([place])))
    exemplar, found = exemplar_with_contributions(model, document.states, document.tokens)
    predicted = found.predicted
    carried = contributions_to_margin(model, found)
    places = np.array([share.position for share in carried.tokens], np.int64)
    near: list[tuple[NearToken, ...]] = [()] * len(places)
    if training is not None and len(places):
        shards = training().shards
        display.show("Extracting the training tokens")
        with training_exemplars(model, shards, "token", folder=kept_in, memory_budget=memory_budget) as exemplars:
            near = _nearest(model, document, places, predicted, shards, exemplars, neighbour_count, memory_budget)
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
        for share, beside in zip(carried.tokens, near, strict=True)
    ]
    return Inspected(
        external_id=document.external_id,
        label=None if label < 0 else model.class_names[label],
        logits=tuple(exemplar.logits[0].tolist()),
        token_count=len(document.states),
        representative=found.representative,
        contributions=carried,
        tokens=tuple(tokens),
    )


def _nearest(
    model: "MemoryModel",
    document: "StateDocument",
    places: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    predicted: int,
    shards: "StateShards",
    training: "TrainingExemplars",
    neighbour_count: int,
    memory_budget: int,
) -> list[tuple[NearToken, ...]]:
    """For each of the places (m,), the training tokens that are nearest to the token there."""
    from venn_admit.layer.outputs import exemplars_of

    vectors = exemplars_of(model, document.states, "token").vectors[places]
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
    model: "MemoryModel",
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
