"""Verbs that use a calibration: score, evaluate, replay."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import NOTHING_STATED, Calibration, Deciding, Json, Name, Stating, with_records
from venn_admit.cli.output import print_result, shown, warn
from venn_admit.cli.waiting import Showing, Waiting
from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.report.wording import counted, rows_in_use_text

if TYPE_CHECKING:
    from venn_admit.cli.session import Session
    from venn_admit.report.evaluation.dataset import DatasetReport


class ReplayDiffersError(VennAdmitError):
    """A decision did not come out as it is stored."""


@with_records
def score(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Exemplars to score, .npz or .parquet.")],
    out: Annotated[Path, typer.Option(help="Where the decisions go, .parquet or .csv, a row for each of the file's.")],
    *,
    deciding: Deciding,
    calibration: Calibration = None,
    stating: Stating,
    as_json: Json = False,
) -> None:
    """Admit or reject every row of a file."""
    from venn_admit.cli.tables.summaries import ScoreSummary
    from venn_admit.files.output.tables import check_table_output
    from venn_admit.flows.decisions.score_file import score as flow

    check_table_output(out, file)
    session = open_session()
    session.require_worker()
    with Waiting(session, out) as shell:
        scored = flow(
            session,
            name,
            session.exemplars_in(file, stating),
            **deciding.arguments(),
            calibration_id=calibration,
            shell=shell,
            out=out,
        )
    request, summary = scored.request, ScoreSummary(scored.counted.class_names, scored.counted.counts)
    if said := rows_in_use_text(summary.in_use):
        warn(said)
    total = summary.admitted.total()
    print_result(
        as_json,
        {
            "job": request.job_id,
            "calibration": request.calibration_id,
            "rows": request.rows,
            **summary.payload(),
            "out": str(out),
        },
        f"{file.name}: {counted(request.rows, 'row')}, {total:,} admitted ({total / request.rows:.1%}), by calibration "
        f"{request.calibration_id}; decisions are in {out}.",
        *summary.lines(),
    )


def evaluate_data(
    session: "Session",
    name: str,
    file: Path | None,
    title: str | None,
    calibration: int | None,
    stating: Stating = NOTHING_STATED,
) -> "DatasetReport":
    """Compare the methods on the labelled rows of a file, or on all that the calibration has decided on."""
    from venn_admit.flows.reports.evaluate import evaluate as flow

    session.require_worker()
    with Waiting(session) as shell:
        return flow(
            session,
            name,
            None if file is None else session.exemplars_in(file, stating),
            title=title,
            calibration_id=calibration,
            shell=shell,
        )


def evaluate_sets(
    session: "Session", name: str, files: Mapping[str, Path], calibration: int | None, stating: Stating = NOTHING_STATED
) -> "tuple[DatasetReport, ...]":
    """Do the same of several files, by their titles and one calibration."""
    from venn_admit.flows.reports.evaluate import evaluate_sets as flow

    session.require_worker()
    sources = {title: session.exemplars_in(file, stating) for title, file in files.items()}
    with Waiting(session) as shell:
        return flow(session, name, sources, calibration_id=calibration, shell=shell)


@with_records
def evaluate(
    name: Name,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Labelled exemplars, .npz or .parquet; several files stand side by side. Default: what the "
            "calibration has decided on.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report: an HTML page, its charts as PNG, and JSON.")
    ] = None,
    calibration: Calibration = None,
    *,
    stating: Stating,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Also print shares with their intervals, what the sets cover, accuracies, and partitions by q and d.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare what each method admits of labelled data, and how often it is right."""
    from venn_admit.files.output.atomic import make_folder
    from venn_admit.report.evaluation.payload import report_payload
    from venn_admit.report.evaluation.sets import sets_payload
    from venn_admit.report.evaluation.terminal import report_tables, sets_view

    given = files or []
    titled = _titles(given)
    if out is not None:
        make_folder(out, *given)
    session = open_session()
    if len(given) > 1:
        results = evaluate_sets(session, name, titled, calibration, stating)
        payload, view = sets_payload(results), sets_view(results, details=details)
    else:
        title, file = next(iter(titled.items()), (None, None))
        results = (evaluate_data(session, name, file, title, calibration, stating),)
        payload, view = report_payload(results[0]), report_tables(results[0], details=details)
    more = [] if details or out else ["More tables: add --details; with charts, as a page: add --out FOLDER."]
    print_result(as_json, payload, view, *more)
    if out is not None:
        from venn_admit.flows.reports.folders import write_evaluation, write_evaluation_of_sets

        with Showing() as shell:
            shell.show("Drawing the report")
            if len(results) > 1:
                page = write_evaluation_of_sets(out, name, results)
            else:
                data = shown(given[0].name) if given else "its decisions"
                page = write_evaluation(out, name, data, results[0])
        if not as_json:
            print_result(False, {}, f"The report is in {page}.")


def _titles(files: list[Path]) -> dict[str, Path]:
    """The files by what the report calls them: names without suffixes, or where they are if two share one."""
    stems = [file.stem for file in files]
    titled = {shown(file.stem if stems.count(file.stem) == 1 else str(file)): file for file in files}
    if len(titled) < len(files):
        raise InvalidInputError(f"expected different files, got {', '.join(map(str, files))}; name each once")
    return titled


def replay(
    decision: Annotated[
        int | None, typer.Argument(help="Id of a decision, from `show` or the view report.decision_v2.")
    ] = None,
    classifier: Annotated[
        str | None, typer.Option(help="With --id, instead of a decision's: the newest decision of this classifier.")
    ] = None,
    external_id: Annotated[str | None, typer.Option("--id", help="The exemplar's id, as in the scores.")] = None,
    as_json: Json = False,
) -> None:
    """Compute a stored decision again from its snapshot, and show what it rests on."""
    from venn_admit.cli.tables.decision_tables import print_replayed
    from venn_admit.flows.decisions.replay import replay as flow
    from venn_admit.flows.decisions.replay import replay_newest
    from venn_admit.results import replayed_json

    one_of_two = "expected either the number of a decision, or --classifier and --id"
    if decision is not None:
        if classifier is not None or external_id is not None:
            raise InvalidInputError(one_of_two)
        session = open_session()
        replayed = flow(session, decision)
    else:
        if classifier is None or external_id is None:
            raise InvalidInputError(one_of_two)
        session = open_session()
        replayed = replay_newest(session, classifier, external_id)
    if as_json:
        print_result(True, replayed_json(replayed))
    else:
        print_replayed(replayed)
    if replayed.differing and not replayed.is_rounding:
        raise ReplayDiffersError(
            f"decision {replayed.row.id} differs from what is stored in: {', '.join(replayed.differing)}"
        )
