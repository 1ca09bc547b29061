"""Applying a memory layer: from token states to exemplars, streamed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from venn_admit.core.budget import block_rows
from venn_admit.core.types import UNKNOWN_LABEL, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.records import Attributes, ExemplarBatch, Layout, Stated, make_batch
from venn_admit.layer.contributions import ATTRIBUTE
from venn_admit.layer.model import LayerModel
from venn_admit.layer.outputs import (
    Exemplars,
    contributions_to_margin,
    exemplar_with_contributions,
    exemplars_of,
    level_of,
)
from venn_admit.layer.states.index import NOT_A_WORD, Kind, StateDocument
from venn_admit.layer.states.reader import StateShards

BATCH_ROWS = 8192

_RESERVED: dict[Kind, frozenset[str]] = {"document": frozenset({ATTRIBUTE}), "token": frozenset({"position", "token"})}


def extract(
    model: LayerModel,
    shards: StateShards,
    *,
    level: Kind | None = None,
    inherit_labels: bool = False,
    order: IntArray | None = None,
    memory_budget: int,
) -> Iterator[ExemplarBatch]:
    """Yield the exemplars of token states, in order.

    An exemplar is a document under its own id, with the tokens that carry its prediction in the attribute
    `contributions`, or a token under `ID:POSITION`, which belongs to the document `ID` and has the document's
    attributes, its own position, counted from 0, and its text. Where words are labelled, tokens that do not begin one
    are left out. An exemplar has the same bits whatever it is extracted with.

    If tokens are labelled and the layer has a background class, a document has the label of its tokens that is not the
    background's, the background if it has no other, and none if it has several or not all tokens are labelled.

    Args:
        level: What an exemplar is; None: what it is for the layer. A layer for documents has tokens, too.
        inherit_labels: Whether tokens without a label have that of their document, as training exemplars in zero-shot
            sequence labelling.
        order: (m,) int64, documents that are wanted, in this order; None: all.

    Yields:
        Batches of checked rows: r, f, labels (-1 if unknown), ids, documents, attributes, and the layer's version.

    Raises:
        InvalidInputError: The states are of another encoder or have other classes, an attribute has a name that this
            needs, a layer for tokens was asked for documents, or tokens of states with labels of their own were to have
            those of documents.
    """
    check_origin(model, shards)
    if inherit_labels:
        check_inherited(shards.kind, str(shards.called))
    level = level_of(model, level)
    class_count, dimension = len(model.class_names), model.vector_length_at(level)
    size = min(BATCH_ROWS, block_rows(memory_budget, 4 * (dimension + class_count)))
    layout = Layout(
        str(shards.called),
        dimension,
        class_count,
        ClassNumbers(class_count, model.class_names),
        # What a layer computes are logits, whatever they look like.
        stated=Stated(model.version_at(level), probabilities=False),
    )
    rows = _Rows(layout)
    for document in shards.documents(order):
        _check_attributes(document, shards, _RESERVED[level])
        of_document = _own_exemplar(model, document) if level == "document" else None
        parts = _token_rows(model, document, size, inherit_labels) if of_document is None else [of_document]
        for part in parts:
            if rows.held and rows.held + len(part.labels) > size:
                yield rows.take()
            rows.add(part)
    if rows.held:
        yield rows.take()


def check_inherited(kind: Kind, place: str) -> None:
    """Check that tokens can have the labels of their documents."""
    if kind == "token":
        raise InvalidInputError(
            f"document-labels: expected labels of each document, which its tokens could have, got {place} with labels "
            "of each token; leave it out"
        )


def check_origin(model: LayerModel, shards: StateShards) -> None:
    """Check that token states are those that a memory layer takes."""
    if shards.encoder != model.encoder:
        raise InvalidInputError(
            f"{shards.called}: expected states of the encoder that the memory layer was trained with, {model.encoder}, "
            f"got {shards.encoder}; compute them again with that encoder"
        )
    if shards.class_names != model.class_names:
        raise InvalidInputError(
            f"{shards.called}: expected the classes {', '.join(map(repr, model.class_names))}, "
            f"got {', '.join(map(repr, shards.class_names))}; write the states with the classes of the memory layer"
        )
    if model.settings.several_labels or shards.several_labels:
        raise InvalidInputError(
            f"{shards.called}: expected one label of each document, got several; choose one of the labels"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Exemplars of one document, which are the document itself if they have no `document_id`."""

    exemplars: Exemplars
    labels: IntArray
    external_ids: list[str]
    document_id: str | None
    attributes: list[Attributes]


class _Rows:
    """Exemplars that wait for their batch to be full."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._parts: list[_Part] = []
        self._first_row = 0
        self.held = 0

    def add(self, part: _Part) -> None:
        self._parts.append(part)
        self.held += len(part.labels)

    def take(self) -> ExemplarBatch:
        parts, first_row = self._parts, self._first_row
        self._parts, self._first_row, self.held = [], self._first_row + self.held, 0
        return make_batch(
            self._layout,
            first_row,
            vectors=np.concatenate([part.exemplars.vectors for part in parts]),
            logits=np.concatenate([part.exemplars.logits for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
            external_ids=[value for part in parts for value in part.external_ids],
            document_ids=[part.document_id for part in parts for _ in part.labels],
            attributes=[value for part in parts for value in part.attributes],
        )


def document_label(token_labels: IntArray, background: int | None) -> int:
    """Return the label that the labels of its tokens give a document, -1 if they give none.

    Examples:
        >>> [document_label(np.array(labels), 0) for labels in ([0, 1, -2, 0], [0, 0], [1, 2], [1, -1])]
        [1, 0, -1, -1]
    """
    own = token_labels[token_labels != NOT_A_WORD]
    if background is None or not len(own) or (own < 0).any():
        return UNKNOWN_LABEL
    others = np.unique(own[own != background])
    return UNKNOWN_LABEL if len(others) > 1 else int(others[0]) if len(others) else background


def _own_exemplar(model: LayerModel, document: StateDocument) -> _Part:
    """The exemplar of a document, with what carries its prediction."""
    exemplar, found = exemplar_with_contributions(model, document.states, document.tokens)
    to_margin = contributions_to_margin(model, found)
    given = document.token_labels
    label = document.label if given is None else document_label(given, model.settings.background)
    attributes = {**document.attributes, ATTRIBUTE: to_margin.as_attribute()}
    return _Part(exemplar, np.array([label]), [document.external_id], None, [attributes])


def _token_rows(model: LayerModel, document: StateDocument, size: int, inherit_labels: bool) -> Iterator[_Part]:
    """The exemplars of a document's tokens, at most `size` together."""
    exemplars = exemplars_of(model, document.states, "token", document.tokens)
    given = document.token_labels
    labels = np.full(len(document.states), UNKNOWN_LABEL) if given is None else given
    if inherit_labels:
        labels = np.full(len(document.states), document.label)
    places = np.flatnonzero(labels != NOT_A_WORD)
    for start in range(0, len(places), size):
        part = places[start : start + size]
        yield _Part(
            Exemplars(exemplars.vectors[part], exemplars.logits[part]),
            labels[part],
            [f"{document.external_id}:{place}" for place in part.tolist()],
            document.external_id,
            [_token_attributes(document, place) for place in part.tolist()],
        )


def _token_attributes(document: StateDocument, place: int) -> Attributes:
    text = {"token": document.tokens[place]} if document.tokens else {}
    return {**document.attributes, **text, "position": place}


def _check_attributes(document: StateDocument, shards: StateShards, reserved: frozenset[str]) -> None:
    taken = sorted(reserved & document.attributes.keys())
    if taken:
        raise InvalidInputError(
            f"{shards.called}: document {document.external_id!r}: expected no attribute {taken[0]!r}, a name "
            "that extraction gives to one of its own, got one; rename the column or array"
        )
