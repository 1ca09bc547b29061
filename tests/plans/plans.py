"""What Postgres makes of a statement, as a list of the plan's nodes."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, text

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


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
