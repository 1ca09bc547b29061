"""How files of texts and states are read, and which options apply to which of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from venn_admit.errors import InvalidInputError
from venn_admit.layer.states.conversion import holds_states, labelled_in
from venn_admit.layer.states.index import EncoderIdentity, Kind
from venn_admit.layer.texts.formats import CONLL_ENDINGS
from venn_admit.layer.texts.source import DEFAULT_COLUMNS, TextColumns

if TYPE_CHECKING:
    from venn_admit.layer.model import LayerModel

_SHOWN_CLASSES = 10


class Form(StrEnum):
    """What a path leads to, in the words of messages."""

    SHARDS = "a folder of states"
    STATES = "a file of states"
    WORDS = "labelled words"
    TABLE = "a table of texts"

    @property
    def is_text(self) -> bool:
        """Whether it has texts, which an encoder reads."""
        return self in _TEXTS


_TEXTS = frozenset({Form.WORDS, Form.TABLE})
_TABLES = frozenset({Form.TABLE})
_FILES = _TEXTS | {Form.STATES}

_APPLY_TO: Mapping[str, frozenset[Form]] = {
    "encoder": _FILES,
    "classes": _FILES,
    "layers": _TEXTS,
    "max-tokens": _TEXTS,
    "text-column": _TABLES,
    "label-column": _TABLES,
    "id-column": _TABLES,
    "side": frozenset({Form.STATES, Form.SHARDS}),
}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a file is read and encoded; `layers` and `max_tokens` as in `load_encoder`.

    Attributes:
        kind: What is labelled: documents or tokens.
        encoder: A folder, or the default encoder. For states, the name of their network. None: the default encoder, or
            the one that is required.
        class_names: In order; empty: those that the labels name.
        background: A class that must be one of them; None: none is.
        required: The encoder that texts must be encoded with; None: any.
        side_logits: Whether the logits of the network at each token are an input, too.
        label: One of several labels of each document, which alone is looked at; None: each has one label, or all are.
    """

    kind: Kind = "document"
    encoder: str | None = None
    layers: tuple[int, ...] = ()
    max_tokens: int | None = None
    columns: TextColumns = DEFAULT_COLUMNS
    class_names: tuple[str, ...] = ()
    background: str | None = None
    required: EncoderIdentity | None = None
    side_logits: bool = False
    label: str | None = None

    @classmethod
    def of_model(
        cls,
        model: "LayerModel",
        path: Path,
        *,
        encoder: str | None = None,
        columns: TextColumns = DEFAULT_COLUMNS,
        label: str | None = None,
    ) -> "SourceOptions":
        """Return the options under which a file gives the states that a memory layer takes.

        A layer for documents takes labelled words, too: what is labelled follows from the file.

        Args:
            encoder: Where its encoder is, unless that is the default one.
        """
        known, kind = model.encoder, model.settings.form.kind
        return cls(
            kind="token" if kind == "document" and has_labelled_tokens(path) else kind,
            encoder=encoder,
            layers=known.layers,
            max_tokens=known.max_tokens or None,
            columns=columns,
            class_names=model.class_names,
            required=known,
            side_logits=known.side_logits > 0,
            label=label,
        )


def form_of(path: Path) -> Form:
    """Return what a path leads to, which need not be readable."""
    if path.is_dir():
        return Form.SHARDS
    if holds_states(path):
        return Form.STATES
    return Form.WORDS if path.suffix.lower() in CONLL_ENDINGS else Form.TABLE


def has_labelled_tokens(path: Path) -> bool:
    """Return whether the words of a file of texts, or the tokens of a file of states, are labelled."""
    return path.suffix.lower() in CONLL_ENDINGS or (path.is_file() and "token" in labelled_in(path))


def check_options(options: SourceOptions, *paths: Path) -> None:
    """Check that every option that was given applies to one of the files at least, and would not be ignored.

    What a memory layer requires is not an option that a user gave. Raises InvalidInputError at an option that applies
    to none of them.
    """
    forms = [form_of(path) for path in paths]
    asked = options.required is None
    given = {
        "encoder": options.encoder is not None,
        "classes": asked and bool(options.class_names),
        "layers": asked and bool(options.layers),
        "max-tokens": asked and options.max_tokens is not None,
        "text-column": options.columns.text != DEFAULT_COLUMNS.text,
        "label-column": options.columns.label != DEFAULT_COLUMNS.label,
        "id-column": options.columns.id is not None,
        "side": asked and options.side_logits,
    }
    for name, is_given in given.items():
        if is_given and _APPLY_TO[name].isdisjoint(forms):
            wanted = " or ".join(form for form in Form if form in _APPLY_TO[name])
            raise InvalidInputError(
                f"{name}: expected with {wanted} alone, got it with {forms[0]}, {paths[0]}; leave it out"
            )


def background_number(background: str, class_names: Sequence[str]) -> int:
    """Return the number of the background class; InvalidInputError if no class has this name."""
    if background not in class_names:
        known = ", ".join(map(repr, class_names[:_SHOWN_CLASSES]))
        raise InvalidInputError(
            f"background: expected one of the classes {known}, got {background!r}; choose one of them"
        )
    return class_names.index(background)
