"""What of a document an encoder is given at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from venn_admit.layer.encoders.local import TextEncoder
from venn_admit.layer.texts.document import TextDocument


@dataclass(frozen=True, slots=True)
class Piece:
    """What is encoded at once: a text, or a sentence or part of one.

    Attributes:
        ids: The ids of its tokens.
        kept: The positions whose states are wanted.
        tokens: A text for each of these.
        cut: The number of tokens that are left out.
    """

    ids: list[int]
    kept: list[int]
    tokens: list[str]
    cut: int


def pieces_of(document: TextDocument, encoder: TextEncoder) -> list[Piece]:
    """Return what is encoded of a document.

    Args:
        document: A text, or labelled words in sentences.
        encoder: Whose tokens they are.

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
