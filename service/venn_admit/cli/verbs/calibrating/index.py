"""The verbs of `index`: the HNSW index on training vectors, and what searching by it would change."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from venn_admit.advice import Step, Verb
from venn_admit.cli.advice import command
from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name, numbers
from venn_admit.cli.output import messages, print_result, warn

if TYPE_CHECKING:
    from venn_admit.flows.decisions.hnsw_index import SearchAudit
    from venn_admit.store.search.hnsw import HnswIndex

EF_SEARCHES = "40,100,400"


def create(
    name: Name,
    m: Annotated[int, typer.Option(help="Number of links of each vector, 2 to 100.")] = 16,
    ef_construction: Annotated[
        int, typer.Option(help="Candidates considered for the links of a vector, 2 m to 1000.")
    ] = 64,
    memory: Annotated[
        int | None,
        typer.Option(metavar="MIB", help="MiB that the server may take meanwhile. Default: its maintenance_work_mem."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create the HNSW index on a classifier's training vectors."""
    from venn_admit.flows.decisions.hnsw_index import build_memory, create_index

    session = open_session()
    building = build_memory(session.engine, name, m=m)
    allowed_mb = memory or building.allowed_mb
    if allowed_mb < building.needed_mb:
        warn(
            f"building the index takes about {building.needed_mb:,} MiB, and the server may take {allowed_mb:,}: what "
            f"does not fit takes many times as long; if it has the memory, pass --memory {building.needed_mb}"
        )
    with messages.status("Building the index"):
        found = create_index(session.engine, name, m=m, ef_construction=ef_construction, memory_mb=memory)
    _print_index(as_json, name, found)


def show(name: Name, as_json: Json = False) -> None:
    """Show whether a classifier has an HNSW index, and its parameters."""
    from venn_admit.flows.decisions.hnsw_index import find_index

    _print_index(as_json, name, find_index(open_session().engine, name))


def audit(
    name: Name,
    sample: Annotated[int, typer.Option(help="How many stored points to search for.")] = 500,
    ef_search: Annotated[
        str, typer.Option(help="How many candidates a search keeps, K to 1000; several numbers with commas.")
    ] = EF_SEARCHES,
    as_json: Json = False,
) -> None:
    """Compare searches by the HNSW index with exact searches, and the decisions that result.

    The calibration in use must be by the method venn-admit.
    """
    from venn_admit.flows.decisions.hnsw_index import audit as flow

    session = open_session()
    with messages.status("Searching"):
        count, audits = flow(
            session, name, sample=sample, ef_searches=numbers("--ef-search", ef_search, int, EF_SEARCHES)
        )
    payload = {"classifier": name, "sample": count, "searches": [asdict(one) for one in audits]}
    print_result(as_json, payload, _audits_table(name, count, audits))


def drop(name: Name, as_json: Json = False) -> None:
    """Drop the HNSW index; searches are exact again."""
    from venn_admit.flows.decisions.hnsw_index import drop_index

    drop_index(open_session().engine, name)
    _print_index(as_json, name, None)


def _print_index(as_json: bool, name: str, found: "HnswIndex | None") -> None:
    print_result(as_json, {"classifier": name, "hnsw": None if found is None else asdict(found)}, _line(name, found))


def _line(name: str, found: "HnswIndex | None") -> str:
    if found is None:
        return f"{name} has no HNSW index."
    return (
        f"{name} has an HNSW index of {found.size / 2**20:,.1f} MiB: m = {found.m}, ef_construction = "
        f"{found.ef_construction}. `{command(Step(Verb.AUDIT_INDEX, classifier=name))}` shows what searching by it "
        "changes under a calibration by the method venn-admit."
    )


def _audits_table(name: str, count: int, audits: "list[SearchAudit]") -> RenderableType:
    from venn_admit.cli.tables.rows import table

    columns = ("ef_search", "recall", "nearest", "q", "d", "prediction", "set", "decision", "p50", "p99")
    rows = []
    for one in audits:
        shares = (
            one.wrong_nearest,
            one.other_match_count,
            one.other_distance,
            one.other_prediction,
            one.other_set,
            one.other_decision,
        )
        rows.append(
            (
                "exact" if one.ef_search is None else str(one.ef_search),
                f"{one.recall:.3f}",
                *(f"{share:.1%}" for share in shares),
                *(f"{1000 * seconds:.1f} ms" for seconds in (one.p50, one.p99)),
            )
        )
    title = f"{name}: index searches of {count:,} stored points against exact ones; share of points that differ"
    return table(columns, rows, title=title, right=columns)
