"""How long an upgrade keeps others waiting: `python -m benchmarks.upgrading --rows 1000000`.

A database of version 0.1.0 with so many points is migrated to this version, one migration after the other, while other
connections read from each table, and take the lock that writing a row takes. Beside each stands the longest that one of
them waited.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from alembic import command
from alembic.script import ScriptDirectory
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine

from benchmarks.storage import folder
from venn_admit.service.store.database.engine import create_engine
from venn_admit.service.store.database.schema import alembic_config
from venn_admit.service.store.embedded.users import start_embedded, stop_embedded

RELEASED = "0016"
"""The revision of version 0.1.0."""

TABLES = (
    "classifier",
    "exemplar",
    "exemplar_vector",
    "label_event",
    "neighbours",
    "knn_parameters",
    "approximation",
    "calibrator",
    "calibration",
    "calibration_point",
    "job",
    "job_chunk",
    "job_row",
    "decision",
)
PAUSE_SECONDS = 0.01
ROWS = Path(__file__).with_name("rows_at_0016.sql")


class Waits:
    """The longest that readers and writers of each table waited since the last look, in seconds."""

    def __init__(self, engine: Engine) -> None:
        self._longest: dict[str, float] = defaultdict(float)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        statements = {f"reading {table}": f"SELECT FROM venn_admit.{table} LIMIT 1" for table in TABLES}
        # It takes the lock that any change of rows takes, and changes none.
        statements |= {f"writing {table}": f"DELETE FROM venn_admit.{table} WHERE false" for table in TABLES}
        self._threads = [
            threading.Thread(target=self._probe, args=(_address(engine), name, statement))
            for name, statement in statements.items()
        ]

    @contextmanager
    def probing(self) -> Iterator["Waits"]:
        """Ask again and again while the block runs."""
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join()

    def longest(self) -> tuple[str, float]:
        """Return who waited longest since the last look, and for how long."""
        with self._lock:
            name, seconds = max(self._longest.items(), key=lambda item: item[1], default=("", 0.0))
            self._longest.clear()
        return name, seconds

    def _probe(self, address: dict[str, Any], name: str, statement: str) -> None:
        with psycopg.connect(**address, autocommit=True) as connection:
            while not self._ended.wait(PAUSE_SECONDS):
                start = time.perf_counter()
                connection.execute(statement.encode())
                with self._lock:
                    self._longest[name] = max(self._longest[name], time.perf_counter() - start)


def main(rows: Annotated[int, typer.Option(min=1000)] = 100_000) -> None:
    """Migrate a database of version 0.1.0 with so many points, and print what each migration took."""
    console = Console(width=120)
    with folder() as files:
        url = start_embedded(files / "home")
        engine = create_engine(url)
        try:
            _move(engine, RELEASED)
            _fill(engine, rows)
            console.print(_upgraded(engine, rows))
        finally:
            engine.dispose()
            stop_embedded(files / "home")


def _fill(engine: Engine, rows: int) -> None:
    with psycopg.connect(**_address(engine), autocommit=True) as connection:
        connection.execute(ROWS.read_text().replace(":rows", str(rows)).encode())
        connection.execute("VACUUM (ANALYZE)")


def _upgraded(engine: Engine, rows: int) -> Table:
    table = Table("migration", "seconds", "longest wait", "of whom", title=f"{rows:,} points of version 0.1.0")
    script = ScriptDirectory.from_config(alembic_config())
    later = [one.revision for one in script.iterate_revisions("head", RELEASED)][::-1]
    total, worst = 0.0, ("", 0.0)
    with Waits(engine).probing() as waits:
        time.sleep(1)
        name, seconds = waits.longest()
        table.add_row("none, for a second", "", f"{seconds:.3f}", name)
        for revision in later:
            start = time.perf_counter()
            _move(engine, revision)
            taken, (name, seconds) = time.perf_counter() - start, waits.longest()
            total, worst = total + taken, max(worst, (name, seconds), key=lambda one: one[1])
            table.add_row(revision, f"{taken:.2f}", f"{seconds:.3f}", name)
    table.add_row("all", f"{total:.2f}", f"{worst[1]:.3f}", worst[0])
    return table


def _address(engine: Engine) -> dict[str, Any]:
    return dict(engine.dialect.create_connect_args(engine.url)[1])


def _move(engine: Engine, revision: str) -> None:
    config = alembic_config()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


if __name__ == "__main__":
    typer.run(main)
