"""Verbs that run the service: worker, beat, db upgrade, status, check, grant-reader, grant-service."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.cli.opening import connect_unchecked, open_session
from venn_admit.cli.options import Json
from venn_admit.cli.output import messages, print_result
from venn_admit.errors import Code, DatabaseError, NotReadyError

if TYPE_CHECKING:
    from venn_admit.cli.session import Session
    from venn_admit.store.database.schema import Group

DatabaseRole = Annotated[str, typer.Argument(metavar="ROLE", help="A role of the database server.")]


def worker(
    concurrency: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per CPU.")] = None,
) -> None:
    """Run a worker, which computes the chunks of jobs, until it is stopped."""
    from venn_admit.cli.worker_process import worker_command

    session = open_session()
    session.require_home()
    _become(session, worker_command(concurrency or session.settings.worker_concurrency))


def beat() -> None:
    """Run the scheduler until it is stopped. Run only one.

    It has workers send lost messages again, recalibrate, update monitors, and remove old jobs.
    """
    from venn_admit.cli.worker_process import beat_command

    session = open_session()
    session.require_home()
    _become(session, beat_command(session.settings.home))


def _become(session: "Session", command: list[str]) -> None:
    """Replace this process by a command, so that a supervisor of this process supervises the command.

    The embedded Postgres stays up: it outlives the process that started it, and the command takes it over.
    """
    from venn_admit.cli.worker_process import worker_environment

    session.engine.dispose()
    os.execve(command[0], command, worker_environment())  # noqa: S606 - our own command


def upgrade(as_json: Json = False) -> None:
    """Upgrade the database to the schema that this program needs."""
    from venn_admit.store.database import schema

    session = open_session(migrate=True)
    revision = schema.current_revision(session.engine)
    print_result(as_json, {"revision": revision}, f"The database is at revision {revision}.")


def status(
    worker_here: Annotated[
        bool,
        typer.Option(
            "--worker-here",
            help="Require a worker on this machine, or in this container; the exit code is 4 if none takes messages.",
        ),
    ] = False,
    beat_here: Annotated[
        bool,
        typer.Option(
            "--beat-here",
            help="Require a beat in this home folder; the exit code is 4 if none has looked at its schedule within a "
            "minute.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show where the database is, the revision of its schema, and how many workers are up.

    The exit code is 4 if the schema does not serve this program.
    """
    from venn_admit.cli.worker_process import require_beat
    from venn_admit.flows.jobs.listing import has_worker_here, live_workers
    from venn_admit.store.database import schema

    session = connect_unchecked()
    if worker_here and not has_worker_here(session.engine):
        raise NotReadyError("no worker on this machine takes messages; run `venn-admit worker`, or see its log")
    if beat_here:
        require_beat(session.settings.home)
    current, head = schema.current_revision(session.engine), schema.head_revision()
    refusal = _refusal_of_schema(session)
    if current == head:
        said = "which is up to date."
    elif refusal is None:
        said = f"by a newer program; this one is of {head}, and works on it."
    elif refusal.code is Code.PROGRAM_OUTDATED:
        said = f"by a newer program; this one is of {head}, and too old for it: install the newer version."
    else:
        said = f"needed {head}: run `venn-admit db upgrade`."
    workers = live_workers(session.engine)
    where = session.settings.home if session.settings.database_url is None else "the server in VENN_ADMIT_DATABASE_URL"
    print_result(
        as_json,
        {"database": str(where), "revision": current, "needed": head, "workers": workers},
        f"Database: {where}.",
        f"Revision {current or 'none'}, {said}",
        f"Workers up: {workers}.",
    )
    if refusal is not None:
        raise typer.Exit(NotReadyError.exit_code)


def _refusal_of_schema(session: "Session") -> NotReadyError | None:
    from venn_admit.store.database import schema

    try:
        schema.require_usable(session.engine)
    except NotReadyError as refusal:
        return refusal
    return None


def check(as_json: Json = False) -> None:
    """Check that a restored or running database is complete, without writing to it.

    Compares the schema with that of this program; exemplars with vectors, digests and labels; neighbour lists;
    snapshots; decisions; and jobs. The exit code is 5 if anything is missing or contradicts itself, and 4 if the schema
    is at another revision than this program's, which is all that is compared then.
    """
    from venn_admit.cli.tables.rows import table
    from venn_admit.flows.reports.check import check_database
    from venn_admit.store.database import schema

    session = connect_unchecked()
    with messages.status("Checking") as shown:
        checks = check_database(session, on_check=lambda what: shown.update(f"Checking {what}"))
    found = [one for check in checks for one in check.found]
    done = [
        {"what": one.what, "classifier": one.classifier, "rows": one.rows, "damage": len(one.found)} for one in checks
    ]
    damage = [
        {
            "damage": one.damage,
            "meaning": one.damage.meaning,
            "classifier": one.classifier,
            "count": one.count,
            "first": one.first,
        }
        for one in found
    ]
    rows = [
        (
            one.what,
            one.classifier,
            one.rows,
            ", ".join(f"{each.count:,} {each.damage}, the first {each.first}" for each in one.found),
        )
        for one in checks
    ]
    print_result(
        as_json,
        {"complete": not found, "checks": done, "damage": damage},
        table(("checked", "classifier", "rows", "wrong"), rows),
    )
    if found:
        schema.require_checkable(session.engine)
        raise DatabaseError(
            f"the database is not complete: {', '.join(sorted({one.damage for one in found}))}; restore a backup that "
            "is, or store again what is missing",
            code=Code.DAMAGED,
        )


def grant_reader(role: DatabaseRole, as_json: Json = False) -> None:
    """Let a role read the views and functions in schema report, and nothing else that venn-admit keeps."""
    from venn_admit.store.database.schema import Group

    _grant(Group.READER, role, "may read the schema report", as_json)


def grant_service(role: DatabaseRole, as_json: Json = False) -> None:
    """Let a role run all commands and workers, except those that change tables: `db upgrade` and `index`."""
    from venn_admit.store.database.schema import Group

    _grant(Group.SERVICE, role, "may run commands and workers", as_json)


def _grant(group: "Group", role: str, words: str, as_json: bool) -> None:
    from venn_admit.store.database.schema import grant

    grant(open_session().engine, group, role)
    print_result(as_json, {"role": role, "member_of": group}, f"Role {role} {words}.")
