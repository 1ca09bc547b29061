"""The verb `start`."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.options import AllowTrainingRows, Json, Name
from venn_admit.cli.output import print_result, shown
from venn_admit.cli.verbs.extracting.options import (
    Background,
    Balanced,
    Classes,
    Encoder,
    Epochs,
    Filters,
    IdColumn,
    LabelColumn,
    Layers,
    MaxTokens,
    Seed,
    Task,
    TextColumn,
    memory_settings,
    source_options,
    states_folder,
)
from venn_admit.layer.settings import DEFAULT_EPOCHS, DEFAULT_FILTERS


def start(
    name: Name,
    train: Annotated[
        Path,
        typer.Argument(
            help="Labelled texts or token states to train on, as in `extract train`; what has no label is left out."
        ),
    ],
    held_out: Annotated[
        Path, typer.Argument(help="Labelled, and like those to come; texts that are in TRAIN too are left out.")
    ],
    test: Annotated[
        Path | None, typer.Option(help="Labelled texts, or token states, to compare the methods on.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the model, the exemplars and the report. Default: NAME.")
    ] = None,
    alpha: Annotated[str, typer.Option(help="Error level in (0, 1), exact decimal.")] = "0.1",
    task: Task = "document",
    encoder: Encoder = None,
    layers: Layers = None,
    max_tokens: MaxTokens = None,
    classes: Classes = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    id_column: IdColumn = None,
    filters: Filters = DEFAULT_FILTERS,
    epochs: Epochs = DEFAULT_EPOCHS,
    balanced: Balanced = False,
    background: Background = None,
    seed: Seed = 0,
    allow_training_rows: AllowTrainingRows = False,
    as_json: Json = False,
) -> None:
    """Train a memory layer, create a classifier, store its exemplars, fit, calibrate and report, one after the other.

    It takes the setting that `calibrate --compare` proposes. If it was interrupted,
    the same command goes on with it.
    """
    from venn_admit.cli.advice import command
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.start_findings import Told, print_next
    from venn_admit.cli.waiting import Waiting
    from venn_admit.core.calibrators.declaration import parse_decimal
    from venn_admit.flows.start import StartFiles, Step
    from venn_admit.flows.start import start as flow
    from venn_admit.layer.texts.source import TextColumns

    columns = TextColumns(text_column, label_column, id_column)
    options = source_options(
        task,
        encoder=encoder,
        layers=layers,
        max_tokens=max_tokens,
        classes=classes,
        columns=columns,
        background=background,
    )
    settings = memory_settings(task, filters=filters, epochs=epochs, balanced=balanced, seed=seed)
    files = StartFiles(train, held_out, test, out or Path(re.sub(r"[^\w.-]+", "-", name)))
    level = parse_decimal("alpha", alpha)
    session = open_session()
    session.require_worker()
    told = Told(name, files, as_json)
    with Waiting(session) as shell, ExitStack() as workers:
        for found in flow(
            session,
            name,
            files,
            options,
            settings,
            level,
            kept_in=states_folder(),
            test_title="" if test is None else shown(test.stem),
            allow_training_rows=allow_training_rows,
            shell=shell,
            render=command,
        ):
            if found is Step.STORE:
                workers.enter_context(session.workers())
            told.tell(found)
    if as_json:
        print_result(True, told.result)
    else:
        print_next(name, files, options)
