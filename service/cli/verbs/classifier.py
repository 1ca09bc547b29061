"""Verbs that set a classifier up and keep it current: create, ingest, label, fit, export."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, messages, print_result, progress, shown, warn
from venn_admit.service.cli.waiting import run_job_with_progress, sender
from venn_admit.service.errors import InvalidInputError

Name = Annotated[str, typer.Argument(help="The classifier's name.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    for verb in (create, ingest, label, fit):
        app.command(rich_help_panel=panels.SETTING_UP)(verb)
    app.command(rich_help_panel=panels.STORED)(export)


def create(
    name: Name,
    classes: Annotated[str, typer.Option(help="Names of the classes in order, such as negative,positive.")],
    dim: Annotated[int, typer.Option(help="D, the length of an exemplar vector; up to 16000.")],
    k: Annotated[int, typer.Option(help="K, the neighbours of the KNN approximation.")] = 25,
    seed: Annotated[int, typer.Option(help="Seed of the split hash and of training.")] = 0,
    as_json: Json = False,
) -> None:
    """Register a classifier."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.flows.exemplars.create import create as flow

    class_names = tuple(part.strip() for part in classes.split(","))
    created = flow(open_session().engine, name, class_names, dimension=dim, neighbour_count=k, seed=seed)
    print_result(
        as_json,
        {"classifier": name, "classes": list(class_names), "dimension": dim, "k": k, "seed": seed},
        f"Created classifier {name}: {len(created.class_names)} classes, D = {dim}, K = {k}.",
    )


def ingest(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Exemplars, .npz or .parquet.")],
    split: Annotated[
        str,
        typer.Option(help="train; held-out, which is divided by hash; or knn, mc, vp for data divided before."),
    ],
    as_json: Json = False,
) -> None:
    """Store labelled exemplars from a file: all of them, or, if one of them is refused, none.

    Rows without ids get one from their content, so re-ingesting a file is a no-op, whatever its name.
    """
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.files import count_rows
    from venn_admit.service.flows.exemplars.ingest import ingest as flow

    session = open_session()
    with progress(f"Ingesting {file.name}", count_rows(file)) as advance:
        done = flow(session.engine, name, file, split, on_rows=advance, memory_budget=session.memory_budget)
    per_split = {str(split): count for split, count in done.new_per_split.items()}
    known = done.rows - done.new
    print_result(
        as_json,
        {
            "rows": done.rows,
            "new": done.new,
            "already_stored": known,
            "new_per_split": per_split,
            "recalibrations_due": done.recalibrations,
        },
        f"{file.name}: {done.rows:,} rows, {done.new:,} new"
        + (f" ({', '.join(f'{key} {value:,}' for key, value in per_split.items())})" if per_split else "")
        + (f", {known:,} already stored." if known else "."),
        *_due(name, done.recalibrations),
    )


def label(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            help="Labels, .csv or .parquet: external_id, label[, selection]; a label is a class number or name."
        ),
    ],
    selection: Annotated[
        str,
        typer.Option(
            help="How the rows were chosen, where the file has no such column: random, which calibrate, or "
            "selected by someone or by a rule, which never do."
        ),
    ] = "random",
    retract: Annotated[bool, typer.Option("--retract", help="Let an empty label take the stored one back.")] = False,
    join_train: Annotated[
        bool, typer.Option("--join-train", help="Let the exemplars, whose labels are selected, train the KNN.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Record labels that came for stored exemplars; the next recalibration takes them up."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.cli.shown import label_summary
    from venn_admit.service.flows.exemplars.label import label as flow

    session = open_session()
    done = flow(
        session.engine,
        name,
        file,
        selection=selection,
        retract=retract,
        join_train=join_train,
        memory_budget=session.memory_budget,
    )
    if done.ignored:
        warn(f"{file.name}: these columns are ignored: {', '.join(map(shown, done.ignored))}.")
    print_result(
        as_json,
        label_summary.payload(done),
        *label_summary.lines(file, done),
        *_due(name, done.recalibrations),
    )


def _due(name: str, recalibrations: int) -> list[str]:
    """The line that says so where calibrators are out of date."""
    return [f"A recalibration is due: `venn-admit recalibrate {name}`, or wait for beat."] if recalibrations else []


def fit(
    name: Name,
    parameters: Annotated[
        Path | None,
        typer.Option(help="Take parameters from this file, as `export --what parameters` writes it, and fit nothing."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit the KNN approximation and the localizer on split knn."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.core.types import TrainingEpoch
    from venn_admit.service.files.parameters import read_parameters
    from venn_admit.service.flows.calibration.fit import adopt_parameters, request_neighbours
    from venn_admit.service.flows.calibration.fit import fit as flow

    session = open_session()
    if parameters is not None:
        knn, eta_loc = read_parameters(parameters)
        stored = adopt_parameters(session.engine, name, knn, eta_loc)
        print_result(as_json, {"knn_parameters": stored.id}, f"Took the parameters in {parameters.name}.")
        return
    session.require_home()
    job_id = request_neighbours(session.engine, name, chunk_rows=session.settings.chunk_rows, send=sender(session))
    run_job_with_progress(session, job_id, "Searching neighbours")
    with messages.status("Fitting") as status:

        def show(model: str, line: TrainingEpoch) -> None:
            status.update(f"Fitting the {model}: epoch {line.epoch}, {line.discrepancies} discrepancies on dev")

        done = flow(session.engine, session.cache, name, on_epoch=show, memory_budget=session.memory_budget)
    record, knn = done.record, done.parameters.knn
    print_result(
        as_json,
        {
            "knn_parameters": done.parameters.id,
            "fit": record.fit_count,
            "dev": record.dev_count,
            "dev_discrepancies": record.dev_discrepancies,
            "eta": knn.eta,
            "eta_loc": done.parameters.eta_loc,
        },
        f"KNN and network differ on {record.dev_discrepancies:,} of {record.dev_count:,} dev points "
        f"({record.dev_discrepancies / record.dev_count:.1%}); eta {knn.eta:.4g}, "
        f"localizer's eta {done.parameters.eta_loc:.4g}.",
    )


def export(
    name: Name,
    what: Annotated[
        str,
        typer.Option(
            help="exemplars, neighbours, approximations, calibration, parameters, or unlabelled, which is recent "
            "traffic without labels in random order."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to: .json for parameters, else .parquet or .csv.")],
    calibration: Annotated[int | None, typer.Option(help="Id of a calibration; default: the current one.")] = None,
    as_json: Json = False,
) -> None:
    """Write what is stored to a file."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.files.output.places import check_output
    from venn_admit.service.files.output.tables import check_table_output
    from venn_admit.service.flows.exemplars.export import Export
    from venn_admit.service.flows.exemplars.export import export as flow

    if what not in list(Export):
        raise InvalidInputError(f"what: expected {', '.join(Export)}, got {what!r}")
    if what == Export.PARAMETERS:
        check_output(out, [".json"])
    else:
        check_table_output(out)
    rows = flow(open_session().engine, name, Export(what), out, calibration_id=calibration)
    nothing = (
        ["Every exemplar of recent traffic, which is the newest score requests, has a label: score newer traffic."]
        if what == Export.UNLABELLED and not rows
        else []
    )
    print_result(as_json, {"rows": rows, "out": str(out)}, f"Wrote {what} to {out}: {rows:,} rows.", *nothing)
