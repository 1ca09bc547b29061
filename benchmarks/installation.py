"""A large installation, stage by stage: `python -m benchmarks.installation FOLDER --rows 1000000`.

Each stage is recorded in FOLDER once it is done, so that a run that was interrupted goes on after it; given a larger
number of rows, another folder is needed. What a stage took is printed beside the bare thing that does the same work.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, text

from benchmarks import watching
from benchmarks.data import draw_vectors
from benchmarks.installation_stages import Run, Size, Way
from benchmarks.storage import database
from benchmarks.watching import Used
from venn_admit.store.database.engine import connect

_BLOCK_ROWS, _BLOCK_COLUMNS = 1024, 1 << 14


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stage took. rows: that it was about. tables: bytes by which each table grew, indexes included.

    bare: CPU seconds of the float32 products that the stage cannot do without, None if there are none.
    """

    name: str
    rows: int
    used: Used
    tables: dict[str, int]
    bare: float | None


@dataclass(slots=True)
class Record:
    """The stages that are done, kept in a file."""

    path: Path
    size: Size
    stages: list[Stage] = field(default_factory=list)

    @classmethod
    def at(cls, path: Path, size: Size) -> "Record":
        """Return what is recorded there; typer.BadParameter if it was another size."""
        if not path.exists():
            return cls(path, size)
        kept = json.loads(path.read_text())
        if Size(**kept["size"]) != size:
            raise typer.BadParameter(f"{path.parent} holds a run of {kept['size']}; name another folder")
        stages = [Stage(**(stage | {"used": Used(**stage["used"])})) for stage in kept["stages"]]
        return cls(path, size, stages)

    def add(self, stage: Stage) -> None:
        """Keep a stage that is done."""
        self.stages.append(stage)
        kept = {"size": asdict(self.size), "stages": [asdict(one) for one in self.stages]}
        self.path.write_text(json.dumps(kept, indent=1))

    def has(self, name: str) -> bool:
        """Whether a stage is done."""
        return any(stage.name == name for stage in self.stages)


def main(
    folder: Annotated[Path, typer.Argument(help="Where the database and the record are kept.")],
    rows: Annotated[int, typer.Option(min=1000)] = 20_000,
    held_out: Annotated[int | None, typer.Option(min=1000, help="Default: half as many.")] = None,
    scored: Annotated[int | None, typer.Option(min=100, help="Default: half as many.")] = None,
    dimension: Annotated[int, typer.Option(min=2)] = 128,
    neighbours: Annotated[int, typer.Option(min=1)] = 25,
) -> None:
    """Store, fit, calibrate, score, take in what arrives, decide on one point, and print what each stage took."""
    size = Size(rows, held_out or rows // 2, scored or rows // 2, dimension, neighbours)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # root runs the embedded server as another user
    record = Record.at(folder / "installation.json", size)
    console = Console(width=160)
    with database(folder.resolve() / "home") as engine:
        for name, run in Way(engine, folder.resolve(), size).stages():
            if record.has(name):
                continue
            console.print(f"{name} ...")
            record.add(_measure(engine, folder.resolve() / "home", name, run, size))
    console.print(_table(record))


def _measure(engine: Engine, home: Path, name: str, run: Run, size: Size) -> Stage:
    before = _table_bytes(engine)
    with watching.watch(engine, home) as watched:
        rows = run()
    after = _table_bytes(engine)
    grown = {table: held - before.get(table, 0) for table, held in after.items() if held != before.get(table, 0)}
    return Stage(name, rows, watched.used, grown, _bare(name, rows, size))


def _bare(name: str, rows: int, size: Size) -> float | None:
    """CPU seconds of the float32 products of rows that are searched with all training exemplars, by some."""
    if name not in {"fit", "calibrate", "score"}:
        return None
    # A fit searches splits knn and vp, a tenth and nine twentieths of what is held out; a calibration the rest.
    share = {"fit": 0.55, "calibrate": 0.45, "score": 1.0}[name]
    count = round(rows * share)
    blocks = torch.split(torch.from_numpy(draw_vectors(size.rows, size.dimension)).T, _BLOCK_COLUMNS, dim=1)
    queries = torch.from_numpy(draw_vectors(min(count, _BLOCK_ROWS), size.dimension))
    with watching.cpu_seconds() as spent:
        for columns in blocks:
            torch.matmul(queries, columns)
    return spent.seconds * count / len(queries)


def _table_bytes(engine: Engine) -> dict[str, int]:
    """The bytes of each table with its indexes and partitions."""
    query = text(
        "SELECT coalesce(parent.relname, held.relname) AS name, sum(pg_total_relation_size(held.oid))::bigint AS bytes"
        " FROM pg_class AS held LEFT JOIN pg_inherits ON held.oid = inhrelid"
        " LEFT JOIN pg_class AS parent ON inhparent = parent.oid AND parent.relnamespace = held.relnamespace"
        " WHERE held.relnamespace = 'venn_admit'::regnamespace AND held.relkind = 'r' GROUP BY 1"
    )
    with connect(engine) as connection:
        return {row.name: row.bytes for row in connection.execute(query)}


def _table(record: Record) -> Table:
    size = record.size
    table = Table(
        title=f"{size.rows:,} training exemplars, {size.held_out:,} held out, {size.scored:,} scored, "
        f"D={size.dimension}, K={size.neighbours}",
        caption="CPU seconds; peak memory of this process, of the largest backend, and of the largest worker",
    )
    for heading in ("stage", "rows", "seconds", "CPU: here", "backends", "workers", "bare", "peaks, MiB", "WAL, MiB"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    table.add_column("tables grew by, bytes a row")
    for stage in record.stages:
        used = stage.used
        grown = sorted(stage.tables.items(), key=lambda item: -abs(item[1]))
        table.add_row(
            stage.name,
            f"{stage.rows:,}",
            f"{used.seconds:.1f}",
            *(f"{seconds:.1f}" for seconds in (used.client_cpu, used.backend_cpu, used.worker_cpu)),
            f"{stage.bare:.1f}" if stage.bare is not None else "",
            " ".join(f"{peak >> 20:,}" for peak in (used.client_peak, used.backend_peak, used.worker_peak)),
            f"{used.wal_bytes / 2**20:,.0f}",
            ", ".join(f"{name} {held / stage.rows:,.0f}" for name, held in grown if abs(held) > stage.rows),
        )
    return table


if __name__ == "__main__":
    typer.run(main)
