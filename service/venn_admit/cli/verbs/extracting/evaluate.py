"""`venn-admit extract evaluate`: how well a memory layer does, and the KNN over its training exemplars beside it."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.options import Json, with_records
from venn_admit.cli.output import output, print_result
from venn_admit.cli.verbs.extracting.options import Model, ModelReading, level_asked_for, resources
from venn_admit.cli.waiting import Showing
from venn_admit.errors import InvalidInputError


@with_records
def evaluate(
    model: Model,
    file: Annotated[
        Path,
        typer.Argument(
            help="As in `extract train`, new to the model. A model of documents takes labelled words, and is then "
            "evaluated by token, and by document if it has a background class."
        ),
    ],
    train: Annotated[
        Path | None, typer.Option(help="What the model was trained on: evaluate the KNN over its exemplars as well.")
    ] = None,
    fit: Annotated[
        Path | None,
        typer.Option(
            help="With --train: what to fit the KNN on, new to the model; labels are not looked at. Default: a quarter "
            "of the documents of FILE, which are not evaluated then."
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            help="document or token: what is evaluated. Default: what is labelled. Without labels, the KNN is compared "
            "with the network alone."
        ),
    ] = None,
    k: Annotated[
        int | None, typer.Option(min=1, help="With --train: K, the number of neighbours of the KNN. Default: 25.")
    ] = None,
    *,
    reading: ModelReading,
    as_json: Json = False,
) -> None:
    """Evaluate a memory layer by document or token: accuracy, F0.5, and, with --train, the KNN beside the network.

    Documents of FILE whose texts are in the training file or in that of the fit, too, are left out. Token states are
    compared by the ids of their documents, and refused if some are in both.
    """
    from venn_admit.cli.tables.layer_json import evaluation_json
    from venn_admit.cli.tables.layer_tables import print_evaluation
    from venn_admit.cli.tables.summaries import encoded_lines
    from venn_admit.flows.data.create import DEFAULT_NEIGHBOURS
    from venn_admit.flows.extraction.evaluate import KnnSources, check_is_new, evaluate_states, levels_of
    from venn_admit.flows.extraction.options import check_options
    from venn_admit.flows.extraction.states import OpenedStates, open_states
    from venn_admit.layer.model import load_model
    from venn_admit.layer.outputs import level_of

    asked = level_asked_for(level)
    for name, given in (("fit", fit), ("k", k)):
        if given is not None and train is None:
            raise InvalidInputError(
                f"{name}: expected only together with --train, got it without; name the training file, or leave out "
                f"--{name}"
            )
    k = DEFAULT_NEIGHBOURS if k is None else k
    whole = load_model(model)
    layer = whole.of_label(reading.label)
    if asked is not None:
        level_of(layer, asked)
    files = [path for path in (file, train, fit) if path is not None]
    check_options(reading.of_model(whole, file), *files)
    seen, before = frozenset[bytes](), list[tuple[Path, OpenedStates]]()
    with Showing() as display:
        used = resources(display)

        def opened(path: Path) -> OpenedStates:
            nonlocal seen
            options = reading.of_model(whole, path)
            states = open_states(path, options, used, without=seen)
            check_is_new(path, states, before)
            before.append((path, states))
            if states.summary is not None:
                seen |= states.summary.text_digests
            return states

        training = None if train is None else opened(train)
        fitting = None if fit is None else opened(fit)
        states = opened(file)
        found = evaluate_states(
            layer,
            states,
            levels_of(layer, states.shards, asked),
            None if training is None else KnnSources(training, fitting, k),
            used,
        )
    if as_json:
        print_result(True, evaluation_json(layer, file, states.summary, found, k))
        return
    print_result(False, {}, *encoded_lines(file, states))
    for each in found:
        output.print()
        print_evaluation(layer.class_names, each)
