"""The verb `start`."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import AllowTrainingRows, Json, Name, with_records
from venn_admit.cli.output import print_result, shown
from venn_admit.cli.verbs.extracting.options import Training, states_folder


@with_records
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
    *,
    training: Training,
    allow_training_rows: AllowTrainingRows = False,
    as_json: Json = False,
) -> None:
    """Train a memory layer, create a classifier, store its exemplars, fit, calibrate and report, one after the other.

    It calibrates with the strongest promise that the labels show. If it was interrupted, the same command goes on.
    """
    from venn_admit.cli.advice import command
    from venn_admit.cli.tables.start_findings import Told, print_next
    from venn_admit.cli.waiting import Waiting
    from venn_admit.core.calibrators.declaration import parse_decimal
    from venn_admit.flows.start import Stage, StartFiles
    from venn_admit.flows.start import start as flow

    options = training.source()
    settings = training.settings()
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
            if found is Stage.STORE:
                workers.enter_context(session.workers())
            shell.clear()  # results and bars are on one terminal
            told.tell(found)
    if as_json:
        print_result(True, told.result)
    else:
        print_next(name, files, options)
