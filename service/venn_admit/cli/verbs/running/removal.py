"""The verbs that remove what is stored: `forget` exemplars, `delete` a classifier or a generation."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.cli.advice import due_lines
from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name
from venn_admit.cli.output import print_result
from venn_admit.cli.waiting import Showing, Waiting
from venn_admit.errors import InvalidInputError
from venn_admit.report.wording import counted
from venn_admit_client.members import as_json as json_of

if TYPE_CHECKING:
    from venn_admit_client.records.data import Forgetting

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, by table, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; required without a terminal.")]


def forget(
    name: Name,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="Id of an exemplar; may be given several times.")
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option("--document", help="Id of a document, all of whose exemplars go; may be given several times."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="A file with ids of exemplars, one a line; the shell's history does not keep them."),
    ] = None,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Leave unknown ids out; otherwise nothing is removed if there is one.")
    ] = False,
    dry_run: DryRun = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait for jobs of the classifier that score, fit or certify; or else be refused."),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove all that is stored of exemplars, in every generation of a classifier, for good.

    A tombstone stays, by which an id that comes back is refused. Snapshots that count an exemplar keep their counts,
    and say how many of their points are gone.
    """
    from venn_admit.files.text_files import read_ids
    from venn_admit.flows.removal.forget import forget as flow

    asked = [*(ids or []), *([] if file is None else read_ids(file))]
    if not asked and not documents:
        raise InvalidInputError("expected --id, --document or --file, got none of them")
    count = len(set(asked)) + len(set(documents or []))
    what = f"{counted(count, 'id')} of {name}"
    if not dry_run:
        _confirm(f"Remove all that is stored of {what}? It cannot be taken back.", yes=yes)
    session = open_session()
    with Waiting(session) as shell:
        shell.show("Forgetting")
        done = flow(session, name, asked, documents or [], missing_ok=missing_ok, dry_run=dry_run, wait=wait)
        for job_id in done.jobs:
            shell.run_job(job_id, "Searching neighbours again")
    if done.is_done:
        session.remove_abandoned()
    print_result(as_json, json_of(done), *_forgotten_lines(done))


def _forgotten_lines(done: "Forgetting") -> list[str]:
    name = done.classifier
    verb = "Forgot" if done.is_done else "Would forget"
    lines = [f"{verb} {counted(done.exemplars, 'exemplar')} of {name}, in all its generations{_rows(done.rows)}."]
    if done.forgotten_before:
        lines.append(f"Ids that were forgotten before: {done.forgotten_before:,}.")
    if done.unknown:
        lines.append(f"Ids that are unknown: {done.unknown:,}.")
    if done.calibrations_renewed:
        lines.append(f"Calibrations that replace those that counted them: {done.calibrations_renewed:,}.")
    return [*lines, *due_lines(name, done.recalibrations_due)]


def delete(
    name: Annotated[
        str, typer.Argument(help="The classifier's name, for all its generations; or NAME@NUMBER, for that one.")
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete a classifier with all that belongs to it, or a generation of it that is not current, for good.

    From its first moment on the classifier cannot be used. If it is interrupted, run it again.
    """
    from venn_admit.flows.removal.delete import delete as flow

    if not dry_run:
        _confirm(f"Delete {name} with all that is stored of it? It cannot be taken back.", yes=yes)
    session = open_session()
    with Showing() as shell:
        shell.show(f"Deleting {name}")
        done = flow(session, name, dry_run=dry_run)
    verb = "Deleted" if done.is_done else "Would delete"
    print_result(
        as_json,
        json_of(done),
        f"{verb} {done.classifier}: generation{'s' if len(done.generations) > 1 else ''} "
        f"{', '.join(done.generations)}{_rows(done.rows)}.",
    )


def _rows(rows: Mapping[str, int]) -> str:
    return f"; rows: {', '.join(f'{table} {count:,}' for table, count in rows.items())}" if rows else ""


def _confirm(question: str, *, yes: bool) -> None:
    """Ask, unless that was answered before; InvalidInputError if nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError("expected --yes, because there is no terminal to ask at; --dry-run only counts")
    if not typer.confirm(question, err=True):
        raise typer.Exit
