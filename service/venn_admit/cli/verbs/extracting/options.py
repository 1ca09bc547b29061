"""Options for reading, encoding and training on texts, which several verbs share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.cli.options import numbers
from venn_admit.errors import InvalidInputError
from venn_admit.layer.settings import (
    DEFAULT_EPOCHS,
    DEFAULT_FILTERS,
    DEFAULT_LEARNING_RATE,
    DEFAULT_MIN_MAX_WEIGHT,
    DEFAULT_PATIENCE,
    DEFAULT_SYMBOL_LENGTH,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from venn_admit.flows.extraction.options import SourceOptions
    from venn_admit.flows.extraction.states import Resources
    from venn_admit.flows.shell import Display
    from venn_admit.layer.model import LayerModel
    from venn_admit.layer.settings import LayerSettings
    from venn_admit.layer.states.index import Kind
    from venn_admit.layer.texts.source import TextColumns

FORMS: dict["Kind", tuple[str, ...]] = {"document": ("document", "two-layers"), "token": ("linear", "decomposed")}
"""The forms of a memory layer by task, the default first."""
TASKS = ("document", "token")
_SIDES = frozenset({"logits", "symbol"})

LabelledFile = Annotated[
    Path,
    typer.Argument(
        help="Labelled texts (.csv, .jsonl, .parquet) or words (.conll, .tsv, .txt); or token states (.npz, .parquet, "
        "or a folder of shards)."
    ),
]
Model = Annotated[Path, typer.Argument(help="The folder of the model.")]


Level = Annotated[
    str | None,
    typer.Option(
        help="document or token: what an exemplar is. Default: what it is for the model. A model of documents has "
        "exemplars of tokens as well."
    ),
]
Representative = Annotated[
    bool,
    typer.Option(
        "--representative",
        help="Append the filters of a document's representative token to its vector, for twice as many "
        "numbers. Documents only.",
    ),
]
MinMaxWeight = Annotated[
    float | None,
    typer.Option(
        help="Weight of the min-max loss beside the cross-entropy; 0 leaves it out. "
        f"Default: {DEFAULT_MIN_MAX_WEIGHT:g}. Documents only."
    ),
]
Side = Annotated[
    list[str] | None,
    typer.Option(
        help="A further input beside the state of each token: logits, those of your network at the token, which a file "
        "of states has; or symbol, a learnt vector of the token's text, such as a residue. May be repeated."
    ),
]
SymbolLength = Annotated[
    int | None, typer.Option(help=f"With --side symbol: the length of its vector. Default: {DEFAULT_SYMBOL_LENGTH}.")
]
LearningRate = Annotated[float, typer.Option(help="Learning rate of the memory layer (Adam).")]
Patience = Annotated[int, typer.Option(help="How many epochs without a lower loss on the dev split end the training.")]


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a file of texts or states is read and encoded."""

    encoder: Annotated[
        str | None,
        typer.Option(
            help="all-MiniLM-L6-v2, the default, for English; or a folder with an encoder in the layout of Hugging "
            "Face. Nothing is downloaded. For token states: the name of your network."
        ),
    ] = None
    text_column: Annotated[str, typer.Option(help="The column of texts.")] = "text"
    label_column: Annotated[str, typer.Option(help="The column of labels.")] = "label"
    id_column: Annotated[
        str | None,
        typer.Option(help="The column of ids. Default: external_id or id; without one, ids follow from the texts."),
    ] = None

    def columns(self) -> "TextColumns":
        """Return the columns of a table of texts."""
        from venn_admit.layer.texts.source import TextColumns

        return TextColumns(self.text_column, self.label_column, self.id_column)


@dataclass(frozen=True, slots=True)
class ModelReading(ReadingOptions):
    """How a file is read for a model, and for which of its labels."""

    label: Annotated[
        str | None,
        typer.Option(
            help="With a model whose documents have several labels: the one that is looked at, with the classes absent "
            "and present."
        ),
    ] = None

    def of_model(self, model: "LayerModel", file: Path) -> "SourceOptions":
        """Return how a file is read for a model as it is loaded, of all labels."""
        from venn_admit.flows.extraction.options import SourceOptions

        return SourceOptions.of_model(model, file, encoder=self.encoder, columns=self.columns(), label=self.label)


@dataclass(frozen=True, slots=True)
class Training(ReadingOptions):
    """How files are read to train a memory layer on them, and how it is trained."""

    task: Annotated[
        str,
        typer.Option(
            help="document: each text has a label, or a list of labels; token: each word has one, in the columns of "
            "CoNLL, and gets a decision of its own."
        ),
    ] = "document"
    layers: Annotated[
        str | None, typer.Option(help="Layers of the encoder to concatenate, such as 3,5. Default: the last.")
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(help="The most tokens of a text that are read. Default: as many as the encoder allows."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            help="Names of the classes in order, with commas; one with a comma is in double quotes. Default: those of "
            "the labels; token states need them."
        ),
    ] = None
    filters: Annotated[int, typer.Option(help="Number of filters, which is the length of an exemplar vector.")] = (
        DEFAULT_FILTERS
    )
    epochs: Annotated[
        int, typer.Option(help="The most epochs; training ends once the loss on a dev split stops falling.")
    ] = DEFAULT_EPOCHS
    form: Annotated[
        str | None,
        typer.Option(
            help="For documents: document, the default, one linear layer for documents and their tokens; two-layers: "
            "one for each. For tokens: linear, the default, the logits of a token follow from it alone; decomposed: "
            "they are its part in those of its document."
        ),
    ] = None
    min_max_epochs: Annotated[
        int,
        typer.Option(
            help="With --form two-layers: train by the cross-entropy alone first, and then, for at most this many "
            "epochs, what finds tokens by the min-max loss alone; 0: by both at once."
        ),
    ] = 0
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Weight classes in inverse proportion to their frequency.")
    ] = False
    background: Annotated[
        str | None, typer.Option(help="A class that no token is evidence for, such as O or other. Documents only.")
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of training, and of the split hash.")] = 0

    def source(self, side: "Collection[str]" = ()) -> "SourceOptions":
        """Return how a file is read. Raises InvalidInputError for an option with a value that it cannot have."""
        from venn_admit.core.names import listed
        from venn_admit.flows.extraction.options import SourceOptions

        kind = _kind(self.task)
        if self.background is not None and kind == "token":
            raise InvalidInputError(
                "background: expected with documents alone, because tokens have labels of their own, got "
                f"{self.background!a} with tokens; leave it out"
            )
        return SourceOptions(
            kind=kind,
            encoder=self.encoder,
            layers=() if self.layers is None else tuple(numbers("layers", self.layers, int, "3,5")),
            max_tokens=self.max_tokens,
            columns=self.columns(),
            class_names=() if self.classes is None else tuple(listed("classes", self.classes, "negative,positive")),
            background=self.background,
            side_logits="logits" in side,
        )

    def settings(
        self,
        *,
        symbols: int = 0,
        representative: bool = False,
        min_max_weight: float | None = None,
        learning_rate: float = DEFAULT_LEARNING_RATE,
        patience: int = DEFAULT_PATIENCE,
    ) -> "LayerSettings":
        """Return the settings of the layer. Raises InvalidInputError at a value that is out of its range."""
        from venn_admit.layer.settings import LayerForm, LayerSettings

        kind = _kind(self.task)
        form = FORMS[kind][0] if self.form is None else self.form
        if form not in FORMS[kind]:
            raise InvalidInputError(
                f"form: expected {' or '.join(FORMS[kind])} with {kind}s, got {form!r}; choose one of them"
            )
        if min_max_weight is not None and kind == "token":
            raise InvalidInputError(
                f"min-max-weight: expected with documents alone, whose loss it is part of, got {min_max_weight:g} with "
                "tokens; leave it out"
            )
        return LayerSettings(
            LayerForm(form),
            filters=self.filters,
            with_representative=representative,
            min_max_weight=DEFAULT_MIN_MAX_WEIGHT if min_max_weight is None else min_max_weight,
            class_weights="balanced" if self.balanced else None,
            learning_rate=learning_rate,
            max_epochs=self.epochs,
            patience=patience,
            seed=self.seed,
            symbols=symbols,
            min_max_epochs=self.min_max_epochs,
        )


def side_inputs(side: list[str] | None, symbol_length: int | None) -> tuple[frozenset[str], int]:
    """Return which further inputs were asked for, and the length of the vector of a symbol, 0 for none.

    Raises InvalidInputError for another word, and for a length without symbols.
    """
    asked = frozenset(side or ())
    others = sorted(asked - _SIDES)
    if others:
        raise InvalidInputError(f"side: expected {' or '.join(sorted(_SIDES))}, got {others[0]!r}; choose one of them")
    if "symbol" not in asked:
        if symbol_length is not None:
            raise InvalidInputError("symbol-length: expected with --side symbol alone; leave it out")
        return asked, 0
    length = DEFAULT_SYMBOL_LENGTH if symbol_length is None else symbol_length
    if length < 1:
        raise InvalidInputError(f"symbol-length: expected at least 1, got {length}; choose another value")
    return asked, length


def level_asked_for(level: str | None) -> "Kind | None":
    """Return the level that was asked for. Raises InvalidInputError for another word."""
    return None if level is None else _kind(level, "level")


def states_folder() -> Path:
    """Return where states are kept, for their owner only: they hold the texts."""
    from venn_admit.files.output.atomic import writing
    from venn_admit.runtime.settings import get_settings
    from venn_admit.store.embedded.programs import make_home, make_private

    home = get_settings().home
    with writing(home / "states"):
        make_home(home)
        make_private(home / "states", None)
    return home / "states"


def resources(display: "Display") -> "Resources":
    """Return what a command over states may use."""
    from venn_admit.flows.extraction.states import Resources
    from venn_admit.runtime.settings import get_settings

    return Resources(states_folder(), get_settings().memory_budget_mb << 20, display)


def _kind(task: str, option: str = "task") -> "Kind":
    match task:
        case "document" | "token":
            return task
    raise InvalidInputError(f"{option}: expected {' or '.join(TASKS)}, got {task!r}; choose one of them")
