"""A text as an encoder takes it, what a file says of it, and labels: names of classes, or numbers of classes."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from venn_admit.core.types import UNKNOWN_LABEL, IntArray
from venn_admit_client.naming import type_text

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True, eq=False)
class TextDocument:
    """A document of a file of texts, checked.

    Attributes:
        external_id: 1 to 1,000 characters, unique in its file.
        text: Not blank. For labelled words, the words with a space between two.
        label: y in [0, C), -1 if unknown; -1 where words are labelled; a set of labels, as `StateDocument` has it.
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
        labels: One a document or one a word, as texts; None if unknown. Any number of a document with a list.
        has_list: Whether the document has a list of labels.
    """

    place: str
    external_id: str | None
    text: str
    labels: tuple[str | None, ...]
    sentences: tuple[tuple[str, ...], ...]
    attributes: dict[str, object]
    has_list: bool = False


def label_text(value: object) -> str | None:
    """Return a label as text, None if it is unknown: nothing, a blank text or NaN. A whole number loses its `.0`.

    Raises ValueError(expected, got) for a value that can be no label.

    >>> label_text(3.0), label_text(" yes "), label_text(""), label_text("1.0"), label_text(True)
    ('3', 'yes', None, '1', 'true')
    """
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return None if math.isnan(value) else str(int(value)) if value.is_integer() else str(value)
        case str():
            text = value.strip()
            return (text[:-2] if text.endswith(".0") and _WHOLE.fullmatch(text[:-2]) else text) or None
    raise ValueError("a class name or a class number", type_text(value))


def class_names_of(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the classes that labels name, in order: by number if all are numbers, otherwise by name.

    >>> class_names_of(["10", "9"]), class_names_of(["b", "10"])
    (('9', '10'), ('10', 'b'))
    """
    names = set(labels)
    if all(map(_WHOLE.fullmatch, names)):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


class ClassLabels:
    """The numbers of labels, by the names of the classes.

    A label is the name of a class. If no name is a number, it may also be the number of one, counted from 0.
    """

    def __init__(self, class_names: Sequence[str]) -> None:
        """Take the C names."""
        numbers = {name: number for number, name in enumerate(class_names)}
        expected = ", ".join(map(repr, class_names[:_SHOWN_NAMES])) + ", ..." * (len(class_names) > _SHOWN_NAMES)
        if not any(map(_WHOLE.fullmatch, class_names)):
            numbers |= {str(number): number for number in range(len(class_names))}
            expected += f", or a class number 0..{len(class_names) - 1}"
        self._numbers, self._expected = numbers, f"one of the classes {expected}"

    def number(self, label: str | None) -> int:
        """Return the number of a label, -1 of None.

        Raises:
            ValueError: (expected, got) if it names no class.
        """
        if label is None:
            return UNKNOWN_LABEL
        if label not in self._numbers:
            raise ValueError(self._expected, repr(label[:80]))
        return self._numbers[label]
