"""`venn-admit extract`: a memory layer is trained on texts or token states, and makes exemplars of them."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.options import Json, with_records
from venn_admit.cli.output import print_result, shown
from venn_admit.cli.verbs.extracting.options import (
    LabelledFile,
    LearningRate,
    Level,
    MinMaxWeight,
    Model,
    ModelReading,
    Patience,
    Representative,
    Side,
    SymbolLength,
    Training,
    level_asked_for,
    resources,
    side_inputs,
)
from venn_admit.cli.waiting import Showing
from venn_admit.errors import InvalidInputError
from venn_admit.layer.settings import DEFAULT_LEARNING_RATE, DEFAULT_PATIENCE
from venn_admit.report.wording import counted


@with_records
def train(
    file: LabelledFile,
    out: Annotated[Path, typer.Option(help="The folder of the model.")],
    representative: Representative = False,
    side: Side = None,
    symbol_length: SymbolLength = None,
    min_max_weight: MinMaxWeight = None,
    learning_rate: LearningRate = DEFAULT_LEARNING_RATE,
    patience: Patience = DEFAULT_PATIENCE,
    *,
    training: Training,
    as_json: Json = False,
) -> None:
    """Train a memory layer: filters over token states whose values become exemplar vectors, and a linear head.

    States of texts are kept under VENN_ADMIT_HOME, in the folder `states`, and used again; it may be removed. If a
    training was interrupted, the same command goes on with it.
    """
    from venn_admit.cli.tables.summaries import encoded_lines
    from venn_admit.flows.extraction.options import background_number, check_options
    from venn_admit.flows.extraction.states import open_states
    from venn_admit.flows.extraction.train import train_layer

    inputs, symbols = side_inputs(side, symbol_length)
    options = training.source(inputs)
    check_options(options, file)
    settings = training.settings(
        symbols=symbols,
        representative=representative,
        min_max_weight=min_max_weight,
        learning_rate=learning_rate,
        patience=patience,
    )
    with Showing() as display:
        used = resources(display)
        states = open_states(file, options, used)
        if training.background is not None:
            number = background_number(training.background, states.shards.class_names)
            settings = replace(settings, background=number)
        trained = train_layer(states, settings, out, used)
    model, best = trained.model, trained.log[trained.best_epoch - 1]
    what = "labels" if model.settings.several_labels else "classes"
    print_result(
        as_json,
        {
            "model": str(out),
            "extractor_version": model.extractor_version,
            "classes": list(model.class_names),
            "dimension": model.vector_length,
            "documents": states.shards.document_count,
            "tokens": states.shards.token_count,
            "cut": states.shards.cut_count,
            "epochs": len(trained.log),
            "best_epoch": trained.best_epoch,
            "dev_accuracy": best.dev_accuracy,
            "dev_f_half": best.dev_f_half,
        },
        *encoded_lines(file, states),
        f"Trained for {counted(len(trained.log), 'epoch')}; epoch {trained.best_epoch} is best: on the dev split, "
        f"accuracy {best.dev_accuracy:.3f}, F0.5 {best.dev_f_half:.3f}.",
        f"The memory layer is in {out}: {len(model.class_names)} {what} "
        f"({', '.join(map(shown, model.class_names[:10]))}), D = {model.vector_length}; its extractor version is "
        f"{model.extractor_version}.",
    )


@with_records
def apply(
    model: Model,
    file: Annotated[Path, typer.Argument(help="As in `extract train`; labels may be missing.")],
    out: Annotated[Path, typer.Option(help="The exemplars, .parquet, for `ingest`, `score` and `evaluate`.")],
    without: Annotated[
        list[Path] | None, typer.Option(help="Texts to leave out of FILE, such as those trained on. May be repeated.")
    ] = None,
    level: Level = None,
    document_labels: Annotated[
        bool,
        typer.Option(
            "--document-labels",
            help="With --level token, for training exemplars: give tokens the label of their document.",
        ),
    ] = False,
    *,
    reading: ModelReading,
    as_json: Json = False,
) -> None:
    """Make exemplars from a file with a memory layer: vectors, logits, labels if there are any, and the texts.

    The encoder is the one that the model was trained with; name its folder if it is not the default one. An exemplar of
    a document has the tokens that carry its prediction in its attributes. Held-out exemplars must be new to the model:
    --without leaves out the texts that it was trained on.
    """
    from venn_admit.cli.tables.summaries import encoded_lines
    from venn_admit.files.output.atomic import check_output
    from venn_admit.flows.extraction.options import check_options, form_of
    from venn_admit.flows.extraction.states import open_states, text_digests
    from venn_admit.flows.extraction.train import write_extracted
    from venn_admit.layer.apply import check_inherited
    from venn_admit.layer.model import load_model
    from venn_admit.layer.outputs import level_of

    check_output(out, (".parquet",), file)
    asked = level_asked_for(level)
    if document_labels and asked != "token":
        raise InvalidInputError("document-labels: expected with --level token alone; leave it out")
    whole = load_model(model)
    layer = whole.of_label(reading.label)
    asked = level_of(layer, asked)
    options = reading.of_model(whole, file)
    check_options(options, file, *(without or []))
    if document_labels:
        check_inherited(options.kind, str(file))
    if without and not (form := form_of(file)).is_text:
        raise InvalidInputError(f"without: expected with texts alone, got it with {form}, {file}; leave it out")
    with Showing() as display:
        used = resources(display)
        states = open_states(file, options, used, without=text_digests(without or [], options, used))
        done = write_extracted(layer, states, out, used, level=asked, inherit_labels=document_labels)
    accuracy = (
        [] if done.accuracy is None else [f"The network's accuracy on those with a label is {done.accuracy:.1%}."]
    )
    print_result(
        as_json,
        {
            "out": str(out),
            "rows": done.rows,
            "labelled": done.labelled,
            "accuracy": done.accuracy,
            "documents": states.shards.document_count,
            "tokens": states.shards.token_count,
            "cut": states.shards.cut_count,
            "left_out": 0 if states.summary is None else states.summary.left_out,
            "level": asked,
            "dimension": layer.vector_length_at(asked),
            "extractor_version": layer.version_at(asked),
        },
        *encoded_lines(file, states),
        f"Wrote {counted(done.rows, 'exemplar')} to {out}; their extractor version is {layer.version_at(asked)}.",
        *accuracy,
    )
