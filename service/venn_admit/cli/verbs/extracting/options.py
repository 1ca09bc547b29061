"""Options for reading, encoding and training on texts, which several verbs share."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.errors import InvalidInputError
from venn_admit.layer.settings import DEFAULT_LEARNING_RATE, DEFAULT_MIN_MAX_WEIGHT, DEFAULT_PATIENCE

if TYPE_CHECKING:
    from venn_admit.flows.extraction.options import SourceOptions
    from venn_admit.flows.extraction.states import Resources
    from venn_admit.flows.shell import Display
    from venn_admit.layer.settings import MemorySettings
    from venn_admit.layer.states.index import Kind
    from venn_admit.layer.texts.source import TextColumns

TOKEN_FORMS = ("linear", "decomposed")
TASKS = ("document", "token")

LabelledFile = Annotated[
    Path,
    typer.Argument(
        help="Labelled texts (.csv, .jsonl, .parquet) or words (.conll, .tsv, .txt); or token states (.npz, .parquet, "
        "or a folder of shards)."
    ),
]
Model = Annotated[Path, typer.Argument(help="The folder of the model.")]
Task = Annotated[
    str,
    typer.Option(
        help="document: each text has a label; token: each word has one, in the columns of CoNLL, and gets a decision "
        "of its own."
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        help="all-MiniLM-L6-v2, the default, for English; or a folder with an encoder in the layout of Hugging Face. "
        "Nothing is downloaded. For token states: the name of your network."
    ),
]
Layers = Annotated[
    str | None,
    typer.Option(help="Layers of the encoder to concatenate, such as 3,5. Default: the last."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(help="The most tokens of a text that are read. Default: as many as the encoder allows."),
]
Classes = Annotated[
    str | None,
    typer.Option(
        help="Names of the classes in order, with commas. Default: those of the labels; token states need them."
    ),
]
TextColumn = Annotated[str, typer.Option(help="The column of texts.")]
LabelColumn = Annotated[str, typer.Option(help="The column of labels.")]
IdColumn = Annotated[
    str | None,
    typer.Option(help="The column of ids. Default: external_id or id; without one, ids follow from the texts."),
]
Filters = Annotated[int, typer.Option(help="Number of filters, which is the length of an exemplar vector.")]
Epochs = Annotated[int, typer.Option(help="The most epochs; training ends once the loss on a dev split stops falling.")]
Balanced = Annotated[bool, typer.Option("--balanced", help="Weight classes in inverse proportion to their frequency.")]
Seed = Annotated[int, typer.Option(help="Seed of training, and of the split hash.")]


Level = Annotated[
    str | None,
    typer.Option(
        help="document or token: what an exemplar is. Default: what it is for the model. A model of documents has "
        "exemplars of tokens as well."
    ),
]
Background = Annotated[
    str | None,
    typer.Option(help="A class that no token is evidence for, such as O or other. Documents only."),
]
Representative = Annotated[
    bool,
    typer.Option(
        "--representative",
        help="Append the filters of a document's representative token to its vector, for twice as many "
        "numbers. Documents only.",
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        help="linear: the logits of a token follow from it alone, the default; decomposed: they are its part in those "
        "of its document. Tokens only."
    ),
]
MinMaxWeight = Annotated[
    float | None,
    typer.Option(
        help="Weight of the min-max loss beside the cross-entropy; 0 leaves it out. "
        f"Default: {DEFAULT_MIN_MAX_WEIGHT:g}. Documents only."
    ),
]
LearningRate = Annotated[float, typer.Option(help="Learning rate of the memory layer (Adam).")]
Patience = Annotated[int, typer.Option(help="How many epochs without a lower loss on the dev split end the training.")]


def level_asked_for(level: str | None) -> "Kind | None":
    """Return the level that was asked for. Raises InvalidInputError for another word."""
    return None if level is None else _kind(level, "level")


def with_background(
    settings: "MemorySettings", background: str | None, class_names: tuple[str, ...]
) -> "MemorySettings":
    """Return the settings with the background class of a name. Raises InvalidInputError if no class has it."""
    from venn_admit.flows.extraction.options import background_number

    if background is None:
        return settings
    return replace(settings, background=background_number(background, class_names))


def source_options(
    task: str,
    *,
    encoder: str | None,
    layers: str | None,
    max_tokens: int | None,
    classes: str | None,
    columns: "TextColumns",
    background: str | None = None,
) -> "SourceOptions":
    """Return how a file is read. Raises InvalidInputError for an option with a value that it cannot have."""
    from venn_admit.flows.extraction.options import SourceOptions

    if background is not None and _kind(task) == "token":
        raise InvalidInputError(
            f"background: expected with documents alone, because tokens have labels of their own, got {background!a} "
            "with tokens; leave it out"
        )

    return SourceOptions(
        kind=_kind(task),
        encoder=encoder,
        layers=_numbers(layers),
        max_tokens=max_tokens,
        columns=columns,
        class_names=() if classes is None else tuple(part.strip() for part in classes.split(",")),
        background=background,
    )


def memory_settings(
    task: str,
    *,
    filters: int,
    epochs: int,
    balanced: bool,
    seed: int,
    form: str | None = None,
    representative: bool = False,
    min_max_weight: float | None = None,
    learning_rate: float = DEFAULT_LEARNING_RATE,
    patience: int = DEFAULT_PATIENCE,
) -> "MemorySettings":
    """Return the settings of the layer. Raises InvalidInputError at a value that is out of its range."""
    from venn_admit.layer.settings import MemoryForm, MemorySettings

    kind = _kind(task)
    if form is not None and (kind == "document" or form not in TOKEN_FORMS):
        got = f"{form!r} with documents" if kind == "document" else repr(form)
        raise InvalidInputError(f"form: expected {' or '.join(TOKEN_FORMS)}, of tokens alone, got {got}; leave it out")
    if min_max_weight is not None and kind == "token":
        raise InvalidInputError(
            f"min-max-weight: expected with documents alone, whose loss it is part of, got {min_max_weight:g} with "
            "tokens; leave it out"
        )
    return MemorySettings(
        MemoryForm.DOCUMENT if kind == "document" else MemoryForm(form or "linear"),
        filters=filters,
        with_representative=representative,
        min_max_weight=DEFAULT_MIN_MAX_WEIGHT if min_max_weight is None else min_max_weight,
        class_weights="balanced" if balanced else None,
        learning_rate=learning_rate,
        max_epochs=epochs,
        patience=patience,
        seed=seed,
    )


def resources(display: "Display") -> "Resources":
    """Return what a command over states may use."""
    from venn_admit.flows.extraction.states import Resources
    from venn_admit.runtime.settings import get_settings

    return Resources(states_folder(), get_settings().memory_budget_mb << 20, display)


def states_folder() -> Path:
    """Return where states are kept, for their owner only: they hold the texts."""
    from venn_admit.files.output.atomic import writing
    from venn_admit.runtime.settings import get_settings
    from venn_admit.store.embedded.access import make_home, make_private

    home = get_settings().home
    with writing(home / "states"):
        make_home(home)
        make_private(home / "states", None)
    return home / "states"


def _kind(task: str, option: str = "task") -> "Kind":
    match task:
        case "document" | "token":
            return task
    raise InvalidInputError(f"{option}: expected {' or '.join(TASKS)}, got {task!r}; choose one of them")


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidInputError(f"layers: expected whole numbers, such as 3,5, got {text!r}") from None
