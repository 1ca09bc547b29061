"""Verbs that set a classifier up and keep it current: create, ingest, label, fit, export."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.advice import due_lines
from venn_admit.cli.opening import open_session
from venn_admit.cli.options import AllowTrainingRows, Json, Name, OwnExtractor, Stating, with_records
from venn_admit.cli.output import print_result, shown, warn
from venn_admit.cli.waiting import Waiting
from venn_admit.errors import InvalidInputError
from venn_admit.report.wording import counted, ignored_text
from venn_admit_client.members import as_json as json_of


def create(
    name: Annotated[str, typer.Argument(help="The name of the new classifier.")],
    classes: Annotated[
        str,
        typer.Option(
            help="Names of the classes in order, such as negative,positive; one with a comma is in double quotes."
        ),
    ],
    dim: Annotated[
        int | None, typer.Option(help="D, the length of an exemplar vector, at most 16000; required with vectors.")
    ] = None,
    k: Annotated[
        int | None, typer.Option(help="K, the number of neighbours of the KNN approximation. Default: 25.")
    ] = None,
    logits_only: Annotated[
        bool,
        typer.Option(
            "--logits-only",
            help="Make a classifier without vectors: nothing is fitted, and decisions are plain ones by Venn-Abers, "
            "with the network's score.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the split hash and of training.")] = 0,
    extractor: OwnExtractor = None,
    as_json: Json = False,
) -> None:
    """Register a classifier."""
    from venn_admit.core.names import listed
    from venn_admit.flows.data.create import create as flow
    from venn_admit.results import created_json

    class_names = tuple(listed("classes", classes, "negative,positive"))
    created = flow(
        open_session().engine,
        name,
        class_names,
        dimension=dim,
        neighbour_count=k,
        logits_only=logits_only,
        seed=seed,
        extractor=extractor,
    )
    knn = created.knn
    size = "logits only" if knn is None else f"D = {knn.dimension}, K = {knn.neighbour_count}"
    print_result(
        as_json, created_json(created), f"Created classifier {name}: {len(created.class_names)} classes, {size}."
    )


@with_records
def ingest(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Exemplars, .npz or .parquet.")],
    split: Annotated[
        str,
        typer.Option(
            help="train; held-out, which a hash divides into knn, mc and vp; or one of these if your data are divided."
        ),
    ],
    *,
    stating: Stating,
    allow_training_rows: AllowTrainingRows = False,
    as_json: Json = False,
) -> None:
    """Store labelled exemplars from a file: all of them, or none if one is refused.

    Rows without ids get one from their content, so re-ingesting a file is a no-op, whatever its name.
    """
    from venn_admit.flows.data.ingest import ingest as flow
    from venn_admit.report.wording import copies_text, training_copies_text, waiting_text

    session = open_session()
    with Waiting(session) as shell:
        source = session.exemplars_in(file, stating)
        shell.show(f"Ingesting {source.name}", source.count_rows())
        done = flow(session.engine, name, source, split, allow_training_rows=allow_training_rows, on_rows=shell.advance)
    per_split, known = done.new_per_split, done.already_stored
    print_result(
        as_json,
        json_of(done),
        f"{file.name}: {counted(done.rows, 'row')}, {done.new:,} new"
        + (f" ({', '.join(f'{key} {value:,}' for key, value in per_split.items())})" if per_split else "")
        + (f", {known:,} already stored." if known else "."),
        *([copies_text(done.copies)] if done.copies else []),
        *([training_copies_text(done.training_copies)] if done.training_copies else []),
        *([f"Labels carried over from other generations: {done.labels_carried:,}."] if done.labels_carried else []),
        *([waiting_text(done.training_waiting)] if done.training_waiting else []),
        *due_lines(name, done.recalibrations_due),
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
            help="How the rows were chosen, if the file has no such column: random labels calibrate; review labels "
            "of points that were drawn to be audited count by the probability, and some of them "
            "calibrate; labels selected by a person or a rule never do either."
        ),
    ] = "random",
    retract: Annotated[bool, typer.Option("--retract", help="Let an empty label retract the stored one.")] = False,
    join_train: Annotated[
        bool,
        typer.Option(
            "--join-train", help="Add the exemplars, whose labels must be selected, to the training exemplars."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Record labels of stored exemplars; the next recalibration uses them."""
    from venn_admit.cli.tables.summaries import label_lines
    from venn_admit.files.label_sources import LabelFile
    from venn_admit.flows.data.label import label as flow

    session = open_session()
    done = flow(
        session.engine,
        name,
        LabelFile(file, session.memory_budget),
        selection=selection,
        retract=retract,
        join_train=join_train,
    )
    if done.ignored:
        warn(f"{ignored_text(file.name, list(map(shown, done.ignored)))}.")
    print_result(as_json, json_of(done), *label_lines(file, done), *due_lines(name, done.recalibrations_due))


def fit(
    name: Name,
    parameters: Annotated[
        Path | None,
        typer.Option(
            help="Use the parameters in this file, written by `export --what parameters`, instead of fitting."
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            help="`auto`: before the first fit, try several numbers of neighbours K on split knn, show what each makes "
            "of it, and take the smallest whose q tells right predictions from wrong ones about as well as any does.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit the KNN approximation, the localizer and the reliability score on split knn.

    Calibrations are out of date then, until `recalibrate` or beat renews them under the new parameters.
    """
    from venn_admit.cli.tables.calibration_tables import chosen_line, tried_payload, tried_table
    from venn_admit.core.approximation.neighbour_counts import TriedCount
    from venn_admit.core.split_names import Split
    from venn_admit.core.types import TrainingEpoch
    from venn_admit.files.text_files import read_parameters
    from venn_admit.flows.calibration.fit import adopt_parameters
    from venn_admit.flows.calibration.fit import fit as flow
    from venn_admit.flows.calibration.neighbour_count import asks_to_choose, choose_neighbour_count
    from venn_admit.report.wording import full_matches_text

    is_chosen = asks_to_choose(k)
    if is_chosen and parameters is not None:
        raise InvalidInputError("expected --parameters or --k, got both; leave one out")
    session = open_session()
    if parameters is not None:
        given = read_parameters(parameters)
        adopted = adopt_parameters(session.engine, name, given.knn, given.eta_loc, given.reliability)
        print_result(
            as_json,
            {"knn_parameters": adopted.parameters.id, "recalibrations_due": adopted.recalibrations},
            f"Took the parameters in {parameters.name}.",
            *due_lines(name, adopted.recalibrations),
        )
        return
    session.require_home()
    tried: list[TriedCount] = []
    chosen_count = None
    with Waiting(session) as shell:

        def show(model: str, line: TrainingEpoch) -> None:
            shell.show(f"Fitting the {model}: epoch {line.epoch}, {line.discrepancies} discrepancies on dev")

        if is_chosen:
            shell.show("Trying numbers of neighbours")
            chosen_count = choose_neighbour_count(session, name, on_tried=tried.append)
        done = flow(session, name, shell=shell, on_epoch=show)
    figures = done.figures
    print_result(
        as_json,
        {
            **json_of(figures),
            **({} if chosen_count is None else tried_payload(tried, chosen_count)),
            "recalibrations_due": done.recalibrations,
        },
        *([] if chosen_count is None else [tried_table(tried), chosen_line(chosen_count)]),
        f"KNN and network differ on {figures.discrepancies:,} of {figures.points:,} dev points "
        f"({figures.discrepancies / figures.points:.1%}); eta {figures.temperature:.4g}, "
        f"localizer's eta {figures.localizer_temperature:.4g}.",
        full_matches_text(done.record.full_matches, Split.KNN),
        *due_lines(name, done.recalibrations),
    )


def export(
    name: Name,
    what: Annotated[
        str,
        typer.Option(
            help="exemplars, neighbours, approximations, calibration, parameters, policy: the certificate with all "
            "that was proposed, or unlabelled: recent traffic to label, in random order."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The file to write: .json for parameters and policy, otherwise .parquet or .csv.")
    ],
    calibration: Annotated[int | None, typer.Option(help="Id of a calibration; default: the one in use.")] = None,
    as_json: Json = False,
) -> None:
    """Write what is stored to a file."""
    from venn_admit.flows.data.export import Export, check_export
    from venn_admit.flows.data.export import export as flow

    kind = check_export(what, out)
    done = flow(open_session().engine, name, kind, out, calibration_id=calibration)
    notes = []
    if kind is Export.UNLABELLED and not done.rows:
        notes.append("No stored decision on recent traffic is on a point without a label: score newer traffic.")
    if done.forgotten:
        notes.append(
            f"Points of the calibration that were forgotten since, and are not among them: {done.forgotten:,}."
        )
    payload = {"rows": done.rows, "forgotten": done.forgotten, "out": str(out)}
    print_result(as_json, payload, f"Wrote {what} to {out}: {counted(done.rows, 'row')}.", *notes)
