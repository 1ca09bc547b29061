"""`venn-admit extract inspect`: which tokens of a document carry its prediction, and what they resemble."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.options import Json, with_records
from venn_admit.cli.output import print_result
from venn_admit.cli.verbs.extracting.options import ModelReading, resources
from venn_admit.cli.waiting import Showing
from venn_admit.errors import InvalidInputError

_NEAR = 3


@with_records
def inspect(
    model: Annotated[Path, typer.Argument(help="The folder of a model of documents.")],
    file: Annotated[Path, typer.Argument(help="As in `extract apply`.")],
    row: Annotated[
        int | None, typer.Option(min=0, help="The document, counted from 0. Default: the first, unless --id names one.")
    ] = None,
    external_id: Annotated[str | None, typer.Option("--id", help="Instead of its row: the document's id.")] = None,
    train: Annotated[
        Path | None, typer.Option(help="What the model was trained on: find the nearest training tokens.")
    ] = None,
    near: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help=f"With --train: training tokens for each token. Default: {_NEAR}."),
    ] = None,
    *,
    reading: ModelReading,
    as_json: Json = False,
) -> None:
    """Show which tokens of a document carry the prediction, and the training tokens that are nearest to these."""
    from venn_admit.cli.tables.layer_json import inspected_json
    from venn_admit.cli.tables.layer_tables import print_inspected
    from venn_admit.flows.extraction.inspect import check_document, inspect_document
    from venn_admit.flows.extraction.options import check_options
    from venn_admit.flows.extraction.states import OpenedStates, open_states
    from venn_admit.layer.model import load_model
    from venn_admit.layer.outputs import require_documents

    if row is not None and external_id is not None:
        raise InvalidInputError("row: expected only without --id, got both; leave one of them out")
    if near is not None and train is None:
        raise InvalidInputError(
            "near: expected only together with --train, got it without; name the training file, or leave out --near"
        )
    whole = load_model(model)
    layer = whole.of_label(reading.label)
    require_documents(layer)
    options = reading.of_model(whole, file)
    check_options(options, *(path for path in (file, train) if path is not None))
    row = row or 0
    with Showing() as display:
        used = resources(display)
        check_document(file, options, external_id=external_id, row=row, memory_budget=used.memory_budget)

        def opened(path: Path) -> OpenedStates:
            return open_states(path, reading.of_model(whole, path), used)

        found = inspect_document(
            layer,
            opened(file),
            used,
            external_id=external_id,
            row=row,
            training=None if train is None else partial(opened, train),
            neighbour_count=_NEAR if near is None else near,
        )
    if as_json:
        print_result(True, inspected_json(layer, found))
    else:
        print_inspected(layer.class_names, found)
