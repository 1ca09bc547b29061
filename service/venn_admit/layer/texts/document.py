"""A text as an encoder takes it, and what a file says of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from venn_admit.core.types import UNKNOWN_LABEL, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class TextDocument:
    """A document of a file of texts, checked.

    Attributes:
        external_id: 1 to 1,000 characters, unique in its file.
        text: Not blank. For labelled words, the words with a space between two.
        label: y in [0, C), -1 if unknown; -1 where words are labelled.
        sentences: The sentences of labelled words, at least one of at least one word each; empty otherwise.
        word_labels: (number of words,) int64 in [0, C), -1 if unknown; None where documents are labelled.
        attributes: JSON values by name: the text, cut to `ATTRIBUTE_CHARACTERS`, and the other columns.
    """

    external_id: str
    text: str
    label: int = UNKNOWN_LABEL
    sentences: tuple[tuple[str, ...], ...] = ()
    word_labels: IntArray | None = None
    attributes: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as a file has it.

    Attributes:
        place: Where it is, such as `row 3`.
        external_id: None if the file gives none.
        text: As in `TextDocument`.
        labels: One a document or one a word, as texts; None if unknown.
        sentences: As in `TextDocument`.
        attributes: JSON values of the other columns by name.
    """

    place: str
    external_id: str | None
    text: str
    labels: tuple[str | None, ...]
    sentences: tuple[tuple[str, ...], ...]
    attributes: dict[str, object]
