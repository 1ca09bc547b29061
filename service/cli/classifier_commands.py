"""Verbs that set a classifier up and keep it current: create, ingest, label, fit, calibrate, export."""

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli.output import Json, messages, progress, tell, warn
from service.errors import InvalidInputError

DECIMAL_PLACES = 20

Name = Annotated[str, typer.Argument(help="The classifier's name.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    for verb in (create, ingest, label, fit, calibrate, export):
        app.command()(verb)


def create(
    name: Name,
    classes: Annotated[str, typer.Option(help="Names of the classes in order, such as negative,positive.")],
    dim: Annotated[int, typer.Option(help="D, the length of an exemplar vector; up to 16000.")],
    k: Annotated[int, typer.Option(help="K, the neighbours of the KNN approximation.")] = 25,
    seed: Annotated[int, typer.Option(help="Seed of the split hash and of training.")] = 0,
    as_json: Json = False,
) -> None:
    """Register a classifier."""
    from service.cli.session import open_session
    from service.flows.create import create as flow

    class_names = tuple(part.strip() for part in classes.split(","))
    created = flow(open_session().engine, name, class_names, dimension=dim, neighbour_count=k, seed=seed)
    tell(
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
    from service.cli.session import open_session
    from service.files import count_rows
    from service.flows.ingest import ingest as flow

    session = open_session()
    with progress(f"Ingesting {file.name}", count_rows(file)) as advance:
        done = flow(session.engine, name, file, split, on_rows=advance, memory_budget=session.memory_budget)
    per_split = {str(split): count for split, count in done.new_per_split.items()}
    known = done.rows - done.new
    tell(
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
    from service.cli.session import open_session
    from service.flows.label import label as flow

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
        warn(f"{file.name}: these columns are ignored: {', '.join(map(ascii, done.ignored))}.")
    joined = {str(split): count for split, count in done.joined.items()}
    counts = {
        "new": done.new,
        "corrected": done.corrected,
        "retracted": done.retracted,
        "unchanged": done.unchanged,
    }
    in_use = ", ".join(f"{key} {value:,}" for key, value in sorted(joined.items()))
    tell(
        as_json,
        {
            "rows": done.rows,
            **counts,
            "joined": joined,
            "left": done.left,
            "recalibrations_due": done.recalibrations,
        },
        f"{file.name}: {done.rows:,} labels, " + ", ".join(f"{value:,} {key}" for key, value in counts.items()) + ".",
        *([f"In use from now on: {in_use}."] if joined else []),
        *([f"In use no longer: {done.left:,}."] if done.left else []),
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
    from service.cli.session import open_session
    from service.core.types import TrainingEpoch
    from service.files.parameters import read_parameters
    from service.flows.fit import adopt_parameters, request_neighbours
    from service.flows.fit import fit as flow

    session = open_session()
    if parameters is not None:
        knn, eta_loc = read_parameters(parameters)
        stored = adopt_parameters(session.engine, name, knn, eta_loc)
        tell(as_json, {"knn_parameters": stored.id}, f"Took the parameters in {parameters.name}.")
        return
    session.require_home()
    job_id = request_neighbours(session.engine, name, chunk_rows=session.settings.chunk_rows)
    run_job_with_progress(session, job_id, "Searching neighbours")
    with messages.status("Fitting") as status:

        def show(model: str, line: TrainingEpoch) -> None:
            status.update(f"Fitting the {model}: epoch {line.epoch}, {line.discrepancies} discrepancies on dev")

        done = flow(session.engine, session.cache, name, on_epoch=show)
    record, knn = done.record, done.parameters.knn
    tell(
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


def calibrate(
    name: Name,
    alpha: Annotated[str, typer.Option(help="Error level in (0, 1), exact decimal.")] = "0.1",
    delta: Annotated[float, typer.Option(help="Band radius in standard deviations of d; inf: bands of q alone.")] = 1.0,
    kappa: Annotated[
        int, typer.Option(min=1, max=2**31 - 1, help="Least number of points of each class in a band.")
    ] = 1000,
    thresholds: Annotated[
        str | None,
        typer.Option(help="Least lower probability per predicted class, each at least 1 - alpha, its default."),
    ] = None,
    q_bins: Annotated[
        str | None, typer.Option(help="Lower edges of bins of q, such as 0,1,6,16,25; default: every q its own.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute a calibration snapshot from the held-out data and make it current."""
    from service.cli.session import open_session
    from service.core.calibrator_settings import make_settings
    from service.core.types import CalibratorSettings
    from service.flows.calibrate import calibrate as flow
    from service.flows.calibrate import request_approximations
    from service.store.classifiers import Classifier

    asked: dict[str, Any] = {"alpha": _decimal("alpha", alpha), "delta": delta, "kappa": kappa}
    if thresholds is not None:
        asked["thresholds"] = tuple(_decimal("thresholds", part) for part in thresholds.split(","))
    if q_bins is not None:
        asked["bin_edges"] = tuple(_integer("q-bins", part) for part in q_bins.split(","))

    def settings_of(classifier: Classifier) -> CalibratorSettings:
        return make_settings(classifier.class_count, classifier.neighbour_count, **asked)

    session = open_session()
    session.require_worker()
    job_id = request_approximations(session.engine, name, settings_of, chunk_rows=session.settings.chunk_rows)
    run_job_with_progress(session, job_id, "Approximating")
    with messages.status("Calibrating"):
        done = flow(
            session.engine,
            name,
            settings_of,
            reason="asked for on the command line",
            keep=session.settings.keep_calibrations,
        )
    if done.usable_count == 0:
        hint = (
            f"--kappa {done.largest_kappa} would leave some; coarser --q-bins or a larger --delta would leave more"
            if done.largest_kappa
            else "every band lacks a class altogether; try coarser --q-bins or a larger --delta, or ingest more"
        )
        warn(f"kappa {kappa} is above every band, so everything will be rejected: {hint}.")
    tell(
        as_json,
        {
            "calibration": done.calibration_id,
            "alpha": str(done.settings.alpha),
            "delta": done.settings.delta,
            "kappa": done.settings.kappa,
            "s_hat": done.radius.s_hat,
            "omega": done.radius.omega,
            "mc": done.mc_count,
            "vp": done.vp_count,
            "vp_in_usable_bands": done.usable_count,
            "vp_singletons": done.singleton_count,
            "largest_usable_kappa": done.largest_kappa,
            "rows_closed": done.changed.closed,
            "rows_opened": done.changed.opened,
        },
        f"Calibration {done.calibration_id} is current: alpha {done.settings.alpha}, kappa "
        f"{done.settings.kappa}, omega {done.radius.omega:.4g}; points: {done.mc_count:,} mc, {done.vp_count:,} vp.",
        f"Of vp, {done.usable_count / done.vp_count:.1%} lie in bands with enough points, "
        f"{done.singleton_count / done.vp_count:.1%} have a singleton set; {done.changed.opened:,} rows written.",
    )


def export(
    name: Name,
    what: Annotated[str, typer.Option(help="exemplars, neighbours, approximations, calibration or parameters.")],
    out: Annotated[Path, typer.Option(help="Where to: .json for parameters, else .parquet.")],
    calibration: Annotated[int | None, typer.Option(help="Number of a calibration; default: the current one.")] = None,
    as_json: Json = False,
) -> None:
    """Write what is stored to a file."""
    from service.cli.session import open_session
    from service.flows.export import Export
    from service.flows.export import export as flow

    if what not in list(Export):
        raise InvalidInputError(f"what: expected {', '.join(Export)}, got {what!r}")
    rows = flow(open_session().engine, name, Export(what), out, calibration_id=calibration)
    tell(as_json, {"rows": rows, "out": str(out)}, f"Wrote {what} to {out}: {rows:,} rows.")


def run_job_with_progress(session: Any, job_id: int, what: str) -> None:
    """Wait for a job behind a bar."""
    from service.store import jobs
    from service.store.engine import connect

    with connect(session.engine) as connection:
        total = jobs.progress(connection, job_id).row_count
    if not total:
        return
    with progress(what, total) as advance:
        done = 0

        def show(state: jobs.Progress) -> None:
            nonlocal done
            advance(state.rows_done - done)
            done = state.rows_done

        session.run_job(job_id, show)


def _decimal(option: str, text: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("NaN")
    exponent = number.as_tuple().exponent
    # Few enough places for 1 - alpha to be exact; an exponent that is text is that of infinity or NaN.
    if isinstance(exponent, str) or exponent < -DECIMAL_PLACES:
        raise InvalidInputError(
            f"{option}: expected a decimal number with at most {DECIMAL_PLACES} places, got {text!r}"
        )
    return number


def _integer(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"{option}: expected whole numbers, got {text!r}") from None
