"""Verbs that use a calibration: score, evaluate, replay."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, make_report_folder, messages, output, print_result, progress, shown
from venn_admit.service.cli.renamed import MODE_OPTIONS, accepting
from venn_admit.service.cli.verbs.classifier import Name
from venn_admit.service.cli.waiting import resumption_explained, run_job_with_progress, sender
from venn_admit.service.errors import InvalidInputError, VennAdmitError

if TYPE_CHECKING:
    from venn_admit.service.cli.session import Session
    from venn_admit.service.flows.decisions.score import ScoreRequest
    from venn_admit.service.flows.reporting.evaluate import EvaluationRequest
    from venn_admit.service.report.evaluation.dataset import DatasetReport


class ReplayDiffersError(VennAdmitError):
    """A decision did not come out as it is stored."""


Calibration = Annotated[int | None, typer.Option(help="Id of a calibration; default: the current one.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    app.command(rich_help_panel=panels.DECIDING, context_settings=MODE_OPTIONS)(score)
    app.command(rich_help_panel=panels.DECIDING, context_settings=accepting(report="out"))(evaluate)
    app.command(rich_help_panel=panels.DECIDING)(replay)


def score(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Exemplars to score, .npz or .parquet.")],
    out: Annotated[Path, typer.Option(help="Where the decisions go, .parquet or .csv, a row for each of the file's.")],
    unweighted: Annotated[bool, typer.Option("--unweighted", help="Use plain Venn probabilities.")] = False,
    require_full_match: Annotated[
        bool, typer.Option("--require-full-match", help="Reject every prediction with q < K.")
    ] = False,
    calibration: Calibration = None,
    as_json: Json = False,
) -> None:
    """Admit or reject every row of a file."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.cli.shown.score_summary import ScoreSummary, warn_of_rows_in_use
    from venn_admit.service.files.output.tables import check_table_output
    from venn_admit.service.flows.decisions.score import count_scores, write_scores

    check_table_output(out, file)
    session = open_session()
    request = score_file(
        session,
        name,
        file,
        out,
        weighted=not unweighted,
        require_full_match=require_full_match,
        calibration=calibration,
    )
    with resumption_explained(session, request.job_id, out, even_if_done=True):
        write_scores(session.engine, request.job_id, out)
    counted = count_scores(session.engine, request.job_id)
    summary = ScoreSummary(counted.class_names, counted.counts)
    warn_of_rows_in_use(summary)
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
        f"{file.name}: {request.rows:,} rows, {total:,} admitted ({total / request.rows:.1%}), by calibration "
        f"{request.calibration_id}; decisions are in {out}.",
        *summary.lines(),
    )


def score_file(
    session: "Session",
    name: str,
    file: Path,
    out: Path,
    *,
    weighted: bool,
    require_full_match: bool,
    calibration: int | None,
) -> "ScoreRequest":
    """Record and run the job that scores a file, whose decisions go to `out` afterwards; the request."""
    from venn_admit.service.files import count_rows
    from venn_admit.service.flows.decisions.score import request_score

    session.require_worker()
    with progress(f"Storing {file.name}", count_rows(file)) as advance:
        request = request_score(
            session.engine,
            name,
            file,
            weighted=weighted,
            require_full_match=require_full_match,
            calibration_id=calibration,
            chunk_rows=session.settings.chunk_rows,
            on_rows=advance,
            memory_budget=session.memory_budget,
            send=sender(session, out),
        )
    what = f"Scoring {file.name}" + ("" if weighted else ", plain")
    run_job_with_progress(session, request.job_id, what, out)
    return request


def evaluate_file(session: "Session", name: str, file: Path, title: str, calibration: int | None) -> "DatasetReport":
    """Score the labelled rows of a file; the report that compares the methods on them."""
    from venn_admit.service.files import count_rows
    from venn_admit.service.flows.reporting.evaluate import request_evaluation_of_file

    session.require_worker()
    with progress(f"Storing {file.name}", count_rows(file)) as advance:
        request = request_evaluation_of_file(
            session.engine,
            name,
            file,
            calibration_id=calibration,
            chunk_rows=session.settings.chunk_rows,
            on_rows=advance,
            memory_budget=session.memory_budget,
            send=sender(session),
        )
    return _compare(session, request, title)


def evaluate_decisions(session: "Session", name: str, calibration: int | None) -> "DatasetReport":
    """Compare the methods on all labelled exemplars that a calibration has decided on; the report."""
    from venn_admit.service.flows.reporting.evaluate import request_evaluation_of_decisions

    session.require_worker()
    request = request_evaluation_of_decisions(
        session.engine,
        name,
        calibration_id=calibration,
        chunk_rows=session.settings.chunk_rows,
        send=sender(session),
    )
    return _compare(session, request, f"calibration {request.calibration_id}")


def _compare(session: "Session", request: "EvaluationRequest", title: str) -> "DatasetReport":
    from venn_admit.service.flows.reporting.evaluate import evaluate as flow

    if request.job_id is not None:
        run_job_with_progress(session, request.job_id, f"Scoring {title}")
    with messages.status("Comparing the methods"):
        return flow(session.engine, session.cache, request, title, memory_budget=session.memory_budget)


def evaluate(
    name: Name,
    file: Annotated[
        Path | None,
        typer.Argument(help="Labelled exemplars, .npz or .parquet; default: what the calibration has decided on."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report: an HTML page, its charts as PNG, and JSON.")
    ] = None,
    calibration: Calibration = None,
    as_json: Json = False,
) -> None:
    """Compare what each method admits of labelled data, and how often it is right."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.report.evaluation.payload import report_payload
    from venn_admit.service.report.evaluation.terminal import report_tables

    if out is not None:
        make_report_folder(out, *([] if file is None else [file]))
    session = open_session()
    if file is None:
        result, source = evaluate_decisions(session, name, calibration), "its decisions"
    else:
        result, source = evaluate_file(session, name, file, shown(file.stem), calibration), shown(file.name)
    payload = report_payload(result)
    if as_json:
        print_result(True, payload)
    else:
        output.print(report_tables(result))
    if out is not None:
        from venn_admit.service.files.output.exports import write_json
        from venn_admit.service.files.output.places import filling
        from venn_admit.service.report.evaluation.evaluated import calibration_facts
        from venn_admit.service.report.pages.evaluation import write_report

        facts = {"Classifier": name}
        if result.calibration is not None:
            facts |= calibration_facts(result.calibration, result.neighbour_count)
        with filling(out) as folder:
            page, *_ = write_report(folder, f"{name} on {source}", facts, [result])
            write_json(folder / "evaluation.json", payload)
        if not as_json:
            print_result(False, {}, f"The report is in {out / page.name}.")


def replay(
    decision: Annotated[
        int | None, typer.Argument(help="Id of a decision, from `show` or the view report.decision_v1.")
    ] = None,
    classifier: Annotated[
        str | None, typer.Option(help="With --id, instead of a decision's: the newest decision of this classifier.")
    ] = None,
    external_id: Annotated[str | None, typer.Option("--id", help="The exemplar's id, as in the scores.")] = None,
    as_json: Json = False,
) -> None:
    """Compute a stored decision again from its snapshot, and show what it rests on."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.cli.shown.replay import print_replayed, replay_payload
    from venn_admit.service.flows.decisions.replay import newest_decision
    from venn_admit.service.flows.decisions.replay import replay as flow

    by_id = decision is not None and classifier is None and external_id is None
    by_name = decision is None and classifier is not None and external_id is not None
    if not (by_id or by_name):
        raise InvalidInputError("expected either the number of a decision, or --classifier and --id")
    session = open_session()
    if decision is None:
        assert classifier is not None
        assert external_id is not None
        decision = newest_decision(session.engine, classifier, external_id)
    replayed = flow(session.engine, session.cache, decision, memory_budget=session.memory_budget)
    if as_json:
        print_result(True, replay_payload(decision, replayed))
    else:
        print_replayed(decision, replayed)
    if replayed.differing:
        raise ReplayDiffersError(f"decision {decision} differs from what is stored in: {', '.join(replayed.differing)}")
