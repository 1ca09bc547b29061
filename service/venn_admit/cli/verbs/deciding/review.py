"""The verbs of `review`: claims on points of the queue, and their labels."""

import getpass
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.cli.advice import due_lines
from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name, labels_by_id
from venn_admit.cli.output import print_result
from venn_admit.cli.session import Session
from venn_admit.errors import InvalidInputError
from venn_admit.report.wording import counted
from venn_admit_client.members import as_json as json_of
from venn_admit_client.records.reviews import Reviewed
from venn_admit_client.reviewer_interface import FILE_LEASE, FILE_POINTS, LEASE_SECONDS

if TYPE_CHECKING:
    from venn_admit.labelling.tool import LabellingTool

Reviewer = Annotated[
    str | None,
    typer.Option(help="Who labels, by whose name claims and labels are told apart. Default: the name of the user."),
]
Lease = Annotated[float, typer.Option(help="Seconds for which claims hold unless they are renewed.")]
Count = Annotated[int, typer.Option("--count", "-n", help="How many points to hold, at most 1,000.")]
FileLease = Annotated[float, typer.Option(help="Seconds for which the claims hold; default: a week.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID...]", help="Ids of points; default: all that are held.")]
Format = Annotated[
    str | None, typer.Option("--format", help="csv, label-studio or argilla; default: csv for a .csv file.")
]

Place = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="A project of Label Studio or dataset of Argilla, as the browser shows it: https://host/projects/12 or "
        "https://host/dataset/ID.",
    ),
]


def next_points(
    name: Name,
    count: Count = 1,
    reviewer: Reviewer = None,
    lease: Lease = LEASE_SECONDS,
    again: Annotated[
        bool, typer.Option("--again", help="Claim points that one other reviewer has labelled, for a second opinion.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the points that you hold, and claim the next ones of the queue until there are as many as you ask for.

    Nobody else gets them until you label or release them, or the claim ends. What was predicted is not shown before.
    """
    from venn_admit.cli.tables.review_tables import claims_lines
    from venn_admit.flows.reviews.claims import claim

    found = claim(open_session().engine, name, _who(reviewer), count=count, lease_seconds=lease, again=again)
    print_result(as_json, json_of(found), *claims_lines(name, found, again=again))


def label(
    name: Name,
    labels: Annotated[
        list[str], typer.Argument(metavar="ID=CLASS...", help="Labels, such as review-1=positive, by class or number.")
    ],
    reviewer: Reviewer = None,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="These labels end disagreements about their points.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Record labels of points, and show what was predicted; the claims on them end."""
    from venn_admit.cli.tables.review_tables import reviewed_lines
    from venn_admit.flows.data.catalogue import find
    from venn_admit.flows.reviews.labels import give

    session = open_session()
    given = labels_by_id(
        "labels",
        labels,
        find(session.engine, name).class_names,
        expected="an id and a class with = between, such as review-1=positive",
    )
    done = give(session.engine, name, _who(reviewer), given, resolves=resolve, memory_budget=session.memory_budget)
    print_result(as_json, json_of(done), *reviewed_lines(done), *due_lines(name, done.recalibrations_due))


def renew(
    name: Name, ids: Ids = None, reviewer: Reviewer = None, lease: Lease = LEASE_SECONDS, as_json: Json = False
) -> None:
    """Extend claims that still hold."""
    from venn_admit.flows.reviews.claims import renew as flow

    held = flow(open_session().engine, name, _who(reviewer), ids or None, lease_seconds=lease)
    print_result(as_json, {"renewed": held}, f"{counted(held, 'claim')} renewed.")


def release(name: Name, ids: Ids = None, reviewer: Reviewer = None, as_json: Json = False) -> None:
    """Give claims back, so that others get the points."""
    from venn_admit.flows.reviews.claims import release as flow

    done = flow(open_session().engine, name, _who(reviewer), ids or None)
    print_result(as_json, {"released": done}, f"{counted(done, 'claim')} released.")


def export(
    name: Name,
    out: Annotated[Path, typer.Argument(help="The file, .csv, or .json for the tools.")],
    file_format: Format = None,
    count: Count = FILE_POINTS,
    reviewer: Reviewer = None,
    lease: FileLease = FILE_LEASE,
    as_json: Json = False,
) -> None:
    """Claim points, and write all that you hold to a file, for a sheet or a tool for labelling.

    Nothing of what was predicted is in it.
    """
    from venn_admit.files.reviews.formats import format_of
    from venn_admit.flows.reviews.exchange import export_points

    wanted, engine = format_of(file_format, out), open_session().engine
    found = export_points(engine, name, _who(reviewer), out, wanted, count=count, lease_seconds=lease)
    payload = {"out": str(out), "points": len(found.points), "waiting": found.waiting}
    said = f"{counted(len(found.points), 'point')} in {out}; {found.waiting:,} more wait."
    print_result(as_json, payload, said)


def import_labels(
    name: Name,
    file: Annotated[Path, typer.Argument(help="The file with the labels.")],
    file_format: Format = None,
    reviewer: Reviewer = None,
    as_json: Json = False,
) -> None:
    """Record the labels of a file that `review export` wrote and people filled in, or that a tool has exported.

    Each label is that of the reviewer whom the file names; of whom it names none, that of --reviewer. Again, it is a
    no-op.
    """
    from venn_admit.files.reviews.formats import format_of
    from venn_admit.flows.reviews.exchange import import_labels as flow

    session, wanted = open_session(), format_of(file_format, file)
    found = flow(session.engine, name, file, wanted, reviewer=_who(reviewer), memory_budget=session.memory_budget)
    _print_reviewed(name, found, as_json, otherwise="These labels were recorded before.")


def push(
    name: Name,
    address: Place,
    count: Count = FILE_POINTS,
    reviewer: Reviewer = None,
    lease: FileLease = FILE_LEASE,
    as_json: Json = False,
) -> None:
    """Claim points, and send those that you hold to Label Studio or Argilla, except for what is there.

    Nothing of what was predicted is sent. The token is that of VENN_ADMIT_REVIEW_TOKEN, or is asked for.
    """
    from venn_admit.flows.reviews.tools import push as flow

    session, who = open_session(), _who(reviewer)
    with _tool(session, address) as tool:
        done = flow(session.engine, name, who, tool, count=count, lease_seconds=lease)
    there = done.points - done.sent
    said = f"{counted(done.sent, 'point')} sent, {there:,} there already; {done.waiting:,} more wait."
    print_result(as_json, json_of(done), said)


def pull(name: Name, address: Place, reviewer: Reviewer = None, as_json: Json = False) -> None:
    """Record the labels that were given in Label Studio or Argilla; again, it is a no-op.

    Each label is that of the user who gave it there; of whom the tool does not know that, it is that of --reviewer. The
    token is that of VENN_ADMIT_REVIEW_TOKEN, or is asked for.
    """
    from venn_admit.flows.reviews.tools import pull as flow

    session, who = open_session(), _who(reviewer)
    with _tool(session, address) as tool:
        found = flow(session.engine, name, tool, reviewer=who, memory_budget=session.memory_budget)
    _print_reviewed(name, found, as_json, otherwise="There are no new labels.")


def status(name: Name, as_json: Json = False) -> None:
    """Show how many points wait, who holds some, and about how many reviewers disagree."""
    from venn_admit.cli.tables.review_tables import queue_lines
    from venn_admit.flows.reviews.claims import queue

    found = queue(open_session().engine, name)
    print_result(as_json, json_of(found), *queue_lines(name, found))


def disagreements(name: Name, as_json: Json = False) -> None:
    """List points of which the newest labels of two reviewers differ, and no label has resolved it since."""
    from venn_admit.cli.tables.review_tables import disagreements_table
    from venn_admit.flows.reviews.labels import disagreements as flow

    found = flow(open_session().engine, name)
    shown = disagreements_table(name, found) if found else "Reviewers disagree about no point."
    print_result(as_json, {"disagreements": [json_of(one) for one in found]}, shown)


def _print_reviewed(name: str, found: Sequence[Reviewed], as_json: bool, *, otherwise: str) -> None:
    from venn_admit.cli.tables.review_tables import reviewed_lines

    lines = [line for done in found for line in reviewed_lines(done)]
    due = max((done.recalibrations_due for done in found), default=0)
    shown = lines or [otherwise]
    print_result(as_json, {"reviewers": [json_of(done) for done in found]}, *shown, *due_lines(name, due))


def _tool(session: Session, address: str) -> "LabellingTool":
    """The tool at an address. Raises InvalidInputError, also if there is neither a token nor somebody to ask for it."""
    from venn_admit.labelling.places import tool_at

    token = session.settings.review_token
    if token is None:
        if not sys.stdin.isatty():
            raise InvalidInputError("token: expected one in VENN_ADMIT_REVIEW_TOKEN, got none; set it")
        token = typer.prompt("Token", hide_input=True, err=True)
    return tool_at(address, token)


def _who(reviewer: str | None) -> str:
    """The reviewer who is named, or the user. Raises InvalidInputError if neither is known."""
    if reviewer is not None:
        return reviewer
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise InvalidInputError("reviewer: expected a name, and this user has none; give --reviewer") from error
