"""The verb `index`: the HNSW index on training vectors, and what searching by it would change."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli import panels
from service.cli.output import Json, cell, messages, output, tell
from service.cli.verbs.classifier import Name
from service.errors import InvalidInputError

if TYPE_CHECKING:
    from service.flows.decisions.audit_hnsw import SearchAudit
    from service.store.search.hnsw import HnswIndex

EF_SEARCHES = "40,100,400"


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.RUNNING)(index)


def index(
    name: Name,
    hnsw: Annotated[bool, typer.Option("--hnsw", help="Make the index.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the index.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Compare searches by the index with exact ones, and what is decided then.")
    ] = False,
    m: Annotated[int, typer.Option(help="With --hnsw: links of a vector, 2 to 100.")] = 16,
    ef_construction: Annotated[int, typer.Option(help="With --hnsw: candidates, 2 m to 1000.")] = 64,
    sample: Annotated[int, typer.Option(help="With --audit: stored points to search for.")] = 500,
    ef_search: Annotated[str, typer.Option(help="With --audit: candidates a search keeps, K to 1000.")] = EF_SEARCHES,
    as_json: Json = False,
) -> None:
    """Make, remove or audit the HNSW index for approximate searches by `decide`; without options, say what is there."""
    from service.cli.session import open_session
    from service.flows.decisions.audit_hnsw import audit as audit_flow
    from service.flows.decisions.hnsw_index import create_index, drop_index, find_index

    if hnsw + drop + audit > 1:
        raise InvalidInputError("expected one of --hnsw, --drop and --audit, got several; do one after the other")
    session = open_session()
    if audit:
        with messages.status("Searching"):
            count, audits = audit_flow(
                session.engine, session.cache, name, sample=sample, ef_searches=_numbers(ef_search)
            )
        if as_json:
            tell(True, {"classifier": name, "sample": count, "searches": [asdict(one) for one in audits]})
        else:
            _print_audits(name, count, audits)
        return
    if drop:
        drop_index(session.engine, name)
        found = None
    elif hnsw:
        with messages.status("Building the index"):
            found = create_index(session.engine, name, m=m, ef_construction=ef_construction)
    else:
        found = find_index(session.engine, name)
    tell(as_json, {"classifier": name, "hnsw": None if found is None else asdict(found)}, _line(name, found))


def _line(name: str, found: "HnswIndex | None") -> str:
    if found is None:
        return f"{name} has no HNSW index."
    return (
        f"{name} has an HNSW index of {found.size / 2**20:,.1f} MiB: m = {found.m}, ef_construction = "
        f"{found.ef_construction}. `venn-admit index {name} --audit` shows what searching by it changes."
    )


def _numbers(given: str) -> list[int]:
    try:
        return [int(part) for part in given.split(",")]
    except ValueError as error:
        raise InvalidInputError(f"--ef-search: expected numbers such as {EF_SEARCHES}, got {given!r}") from error


def _print_audits(name: str, count: int, audits: "list[SearchAudit]") -> None:
    from rich.table import Table

    title = f"{name}: {count:,} stored points searched by the index, against exactly; % of points that differ"
    table = Table(title=cell(title), title_justify="left")
    for column in ("ef_search", "recall", "nearest", "q", "d", "prediction", "set", "decision", "p50", "p99"):
        table.add_column(column, justify="right")
    for one in audits:
        shares = (
            one.wrong_nearest,
            one.other_match_count,
            one.other_distance,
            one.other_prediction,
            one.other_set,
            one.other_decision,
        )
        table.add_row(
            "exact" if one.ef_search is None else str(one.ef_search),
            f"{one.recall:.3f}",
            *(f"{share:.1%}" for share in shares),
            *(f"{1000 * seconds:.1f} ms" for seconds in (one.p50, one.p99)),
        )
    output.print(table)
