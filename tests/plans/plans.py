"""What Postgres makes of a statement, as a list of the plan's nodes, and a classifier to ask it about."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from sqlalchemy import Connection, Engine, event, text

from benchmarks.reporting_data import fill
from tests.conftest import fresh_engine
from venn_admit.store.database.engine import driver_cursor, transaction
from venn_admit.store.database.statements import statement, statement_names
from venn_admit.store.exemplars import classifiers

Node = dict[str, Any]


def explain(connection: Connection, query: str, parameters: Mapping[str, Any], *, analyze: bool = False) -> list[Node]:
    """The nodes of a plan, the root first; with `analyze` the statement is run and they hold what it took."""
    options = "FORMAT JSON, ANALYZE, BUFFERS" if analyze else "FORMAT JSON"
    (found,) = connection.execute(text(f"EXPLAIN ({options}) {query}"), parameters).scalar_one()
    return list(_nodes(found["Plan"]))


def scans(nodes: list[Node], table: str) -> list[Node]:
    """The nodes that read a table or, by bitmap, one of its indexes."""
    return [
        node
        for node in nodes
        if node.get("Relation Name") == table
        or (node["Node Type"] == "Bitmap Index Scan" and node["Index Name"].startswith(table))
    ]


def kinds(nodes: list[Node]) -> set[tuple[str, str | None]]:
    """How and by which index."""
    return {(node["Node Type"], node.get("Index Name")) for node in nodes}


def buffers(node: Node) -> int:
    """Pages read, from memory or not."""
    found: int = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    return found


def read(nodes: list[Node], table: str) -> int:
    """The rows that the scans of a table looked at, in all their loops, or that they found in its indexes."""
    found = {"Relation Name": 0.0, "Index Name": 0.0}
    for node in scans(nodes, table):
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        kind = "Relation Name" if "Relation Name" in node else "Index Name"
        found[kind] += (node["Actual Rows"] + removed) * node["Actual Loops"]
    return round(max(found.values()))


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def add_filled_classifier(connection: Connection, name: str, *, calibrating: int, scored: int, days: int) -> None:
    """Store one of two classifiers, `one` or `other`, with calibrations and decisions, as `fill` makes them."""
    classifier = classifiers.create(
        connection,
        name=name,
        class_names=("a", "b"),
        dimension=2,
        neighbour_count=2,
        knn_share=Decimal("0.1"),
        mc_share=Decimal("0.45"),
        seed=0,
    )
    fill(
        connection,
        classifier.id,
        first=1 if name == "one" else 10_001,
        training=100,
        calibrating=calibrating,
        scored=scored,
        days=days,
        neighbour_count=2,
    )


@contextmanager
def filled_engine(server_url: str, template: str, queries: Iterable[str], *, analysed: bool) -> Iterator[Engine]:
    """Yield an engine on a copy of a template that statements fill, with or without statistics of it."""
    with fresh_engine(server_url, template) as engine:
        with transaction(engine) as connection:
            for query in queries:
                connection.exec_driver_sql(query)
            if analysed:
                connection.exec_driver_sql("ANALYZE")
        yield engine


@contextmanager
def rows_read() -> Iterator[dict[str, int]]:
    """Yield the most rows that the scans of each statement look at meanwhile, by its name; COPY is left out.

    Each is explained first, in a savepoint that is taken back.
    """
    names = {str(statement(name)): name for name in _statement_names()}
    found: dict[str, int] = {}

    def look(connection: Connection, _: Any, query: str, parameters: Any, context: Any, are_many: bool) -> None:
        name = names.get(str(context.compiled.statement)) if context.compiled is not None else None
        if name is None:
            return
        with driver_cursor(connection).connection.cursor(row_factory=tuple_row) as beside:
            is_open = beside.connection.info.transaction_status != TransactionStatus.IDLE
            beside.execute("SAVEPOINT explained" if is_open else "BEGIN")
            beside.execute(f"EXPLAIN (FORMAT JSON, ANALYZE) {query}", parameters[0] if are_many else parameters)
            (((plan,),),) = beside.fetchall()
            nodes = list(_nodes(plan["Plan"]))
            beside.execute("ROLLBACK TO explained" if is_open else "ROLLBACK")
        tables = {node["Relation Name"] for node in nodes if "Relation Name" in node}
        found[name] = max(found.get(name, 0), *(read(nodes, table) for table in tables), 0)

    event.listen(Engine, "before_cursor_execute", look)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", look)


@cache
def _statement_names() -> list[str]:
    files = [Path(file.name).stem for file in resources.files("venn_admit.store").joinpath("sql").iterdir()]
    return [f"{file}.{name}" for file in files for name in statement_names(file)]
