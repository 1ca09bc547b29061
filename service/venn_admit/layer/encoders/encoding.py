"""From texts to states, in batches of fixed shapes.

A text is padded to a multiple of eight tokens, and every batch of that length has as many rows, empty ones if need be.
So a text's states have the same bits whatever else is encoded, and in whatever order; on another machine, or with
another number of threads, their last bits may differ.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.types import Float32Array
from venn_admit.files.inputs import batch_bytes, too_large
from venn_admit.layer.encoders.local import TextEncoder, padded_length
from venn_admit.layer.states.index import TOKENS_CUT, StateDocument
from venn_admit.layer.texts.document import TextDocument

_BATCH_TOKENS = 512


def encode(
    documents: Iterator[TextDocument], encoder: TextEncoder, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> Iterator[StateDocument]:
    """Yield documents with their states, in the order given.

    A document that is labelled as a whole has a state for each of its tokens, those that mark its start and end
    included; tokens beyond the most that the encoder reads are left out, and counted in the attribute `tokens_cut`. A
    document of labelled words has a state for each word, that of its first token; long sentences are encoded in parts.

    Args:
        memory_budget: Bytes that this may take, beside the network; some documents are held at a time.

    Raises:
        InvalidInputError: The states of a document take more than a block of that.
    """
    state_bytes = encoder.width * np.dtype(np.float32).itemsize
    limit = max(1, batch_bytes(memory_budget) // state_bytes)
    held: list[tuple[TextDocument, list[Piece]]] = []
    token_count = 0
    for document in documents:
        pieces = pieces_of(document, encoder)
        kept = sum(len(piece.kept) for piece in pieces)
        if kept > limit:
            place = f"document {document.external_id!r}"
            advice = "divide it into several documents"
            raise too_large(place, "states of its tokens", batch_bytes(memory_budget), kept * state_bytes, advice)
        held.append((document, pieces))
        token_count += sum(len(piece.ids) for piece in pieces)
        if token_count >= limit:
            yield from _encode_held(held, encoder)
            held, token_count = [], 0
    yield from _encode_held(held, encoder)


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a sentence or part of one, which is encoded at once.

    Attributes:
        kept: The positions whose states are wanted.
        tokens: A text for each of these.
        cut: The number of tokens that are left out.
    """

    ids: list[int]
    kept: list[int]
    tokens: list[str]
    cut: int


def _encode_held(held: list[tuple[TextDocument, list[Piece]]], encoder: TextEncoder) -> Iterator[StateDocument]:
    states = _states([piece for _, pieces in held for piece in pieces], encoder)
    place = 0
    for document, pieces in held:
        parts = states[place : place + len(pieces)]
        place += len(pieces)
        cut = sum(piece.cut for piece in pieces)
        yield StateDocument(
            external_id=document.external_id,
            states=np.concatenate(parts),
            label=document.label,
            token_labels=document.word_labels,
            tokens=tuple(token for piece in pieces for token in piece.tokens),
            attributes=dict(document.attributes or {}) | ({TOKENS_CUT: cut} if cut else {}),
        )


def _states(pieces: Sequence[Piece], encoder: TextEncoder) -> list[Float32Array]:
    """The states that are kept of each piece, (kept, H)."""
    states: list[Float32Array] = [np.empty((0, 0), np.float32)] * len(pieces)
    by_length: dict[int, list[int]] = {}
    for number, piece in enumerate(pieces):
        by_length.setdefault(padded_length(len(piece.ids)), []).append(number)
    for length, numbers in by_length.items():
        rows = max(1, _BATCH_TOKENS // length)
        for start in range(0, len(numbers), rows):
            chosen = numbers[start : start + rows]
            with torch.inference_mode():
                batch = encoder.states([pieces[number].ids for number in chosen], rows, length).numpy()
            for row, number in enumerate(chosen):
                states[number] = batch[row, pieces[number].kept]
    return states


def pieces_of(document: TextDocument, encoder: TextEncoder) -> list[Piece]:
    """Return what is encoded of a document.

    Returns:
        A text is one piece, cut where the encoder reads no further; a sentence is as few as the encoder can read.
    """
    if not document.sentences:
        return [_text_piece(document.text, encoder)]
    return [piece for sentence in document.sentences for piece in _word_pieces(sentence, sentence, encoder)]


def _text_piece(text: str, encoder: TextEncoder) -> Piece:
    most = encoder.identity.max_tokens
    ids = encoder.tokenizer(text, truncation=True, max_length=most)["input_ids"]
    total = len(ids) if len(ids) < most else len(encoder.tokenizer(text, verbose=False)["input_ids"])
    tokens = encoder.tokenizer.convert_ids_to_tokens(ids)
    return Piece(ids, list(range(len(ids))), tokens, total - len(ids))


def _word_pieces(words: tuple[str, ...], shown: tuple[str, ...], encoder: TextEncoder) -> Iterator[Piece]:
    """A sentence, in as few parts as the encoder can read; a word of more tokens is cut. shown: its words as given."""
    encoded: Any = encoder.tokenizer(list(words), is_split_into_words=True, verbose=False)
    ids, of_word = encoded["input_ids"], encoded.word_ids()
    if len(ids) > encoder.identity.max_tokens and len(words) > 1:
        half = len(words) // 2
        yield from _word_pieces(words[:half], shown[:half], encoder)
        yield from _word_pieces(words[half:], shown[half:], encoder)
        return
    first = {word: place for place, word in reversed(list(enumerate(of_word))) if word is not None}
    unread = [word for word in range(len(words)) if word not in first]
    if unread:  # words of nothing but characters that the tokenizer leaves out
        known = tuple(_unknown(encoder) if word in unread else text for word, text in enumerate(words))
        yield from _word_pieces(known, shown, encoder)
        return
    most = encoder.identity.max_tokens
    yield Piece(ids[:most], [first[word] for word in range(len(words))], list(shown), max(0, len(ids) - most))


def _unknown(encoder: TextEncoder) -> str:
    return encoder.tokenizer.unk_token or "?"
