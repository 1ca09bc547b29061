"""Jobs that are recorded and not begun, on real data, and what tells two runs of them apart."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import Engine, make_url, text
from structlog.testing import capture_logs

from tests.conftest import fresh_database, fresh_engine
from tests.running import EXAMPLES, Arrays, Bench, make_reviews, run_chunks
from venn_admit.flows.calibration.calibrate import request_approximations
from venn_admit.store.database.engine import connect, create_engine
from venn_admit.store.database.schema import upgrade

NAME = "reviews"

# What a job leaves, but surrogate keys and times: of each table the key, and the rest; numbers as text are exact.
WRITTEN = {
    "job": ("id", "state, row_count, error"),
    "job_chunk": ("job_id, ordinal", "first_row, end_row, state, error"),
    "neighbours": ("exemplar_id", "support_version, neighbour_ids, distances"),
    "approximation": (
        "exemplar_id, knn_parameters_id",
        "support_version, predicted, match_count, distance, logits",
    ),
    "decision LEFT JOIN admit_evidence ON decision.id = decision_id": (
        "calibration_id, exemplar_id, weighted, require_full_match",
        "support_version, predicted, match_count, distance, logits, admit_set, band_size, threshold, category_size, "
        "upweight, lower, upper, decision, reason",
    ),
}

Row = tuple[str, str, str]  # table, key, the rest


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is to do: rows of each of the three jobs, and of a chunk."""

    rows: int
    chunk_rows: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows of an undisturbed run, and what a disturbed one made of them."""

    rows: int
    lost: int
    doubled: int
    differing: int


@contextmanager
def recorded_jobs(server_url: str, folder: Path, size: Size) -> Iterator[str]:
    """The name of a database with a calibrated classifier and three jobs, that nobody is connected to.

    The jobs approximate new held-out data, and score one file twice: weighted, and plain with q = K required.
    """
    with fresh_database(server_url) as url:
        upgrade(url)
        engine = create_engine(url)
        with capture_logs():
            _record(Bench(engine, folder), size)
        engine.dispose()
        yield make_url(url).database or ""


def _record(bench: Bench, size: Size) -> None:
    make_reviews(bench, held_out_rows=4000)
    later = bench.write("later.npz", _rows("valid", slice(4000, 4000 + size.rows)))
    bench.ingest(NAME, later, "held-out")
    request_approximations(bench.workspace(chunk_rows=size.chunk_rows), NAME)
    scored = bench.write("scored.npz", _rows("ood", slice(size.rows)))
    bench.request_score(NAME, scored, chunk_rows=size.chunk_rows)
    bench.request_score(NAME, scored, weighted=False, require_full_match=True, chunk_rows=size.chunk_rows)


def _rows(file: str, rows: slice) -> Arrays:
    """Some rows of a bundled file, named by their numbers."""
    with np.load(EXAMPLES / f"{file}.npz") as arrays:
        part = {name: values[rows] for name, values in arrays.items()}
    start = rows.start or 0
    return part | {"id": np.array([f"{file}-{start + row}" for row in range(len(part["r"]))])}


def undisturbed(server_url: str, template: str, folder: Path) -> Counter[Row]:
    """What the jobs leave that are computed chunk by chunk in this process."""
    with fresh_engine(server_url, template) as engine:
        with capture_logs():
            for job_id in open_jobs(engine):
                run_chunks(engine, Bench(engine, folder).cache, job_id)
        return written(engine)


def open_jobs(engine: Engine) -> list[int]:
    """The jobs that are not over."""
    with connect(engine) as connection:
        return list(connection.execute(text("SELECT id FROM job WHERE state = 'running' ORDER BY id")).scalars())


def written(engine: Engine) -> Counter[Row]:
    """Every row that a job writes, and how often it is there."""
    with connect(engine) as connection:
        return Counter(
            (table, row.key, row.rest)
            for table, (key, rest) in WRITTEN.items()
            for row in connection.execute(text(f"SELECT ({key})::text AS key, ROW({rest})::text AS rest FROM {table}"))
        )


def compare(calm: Counter[Row], disturbed: Counter[Row]) -> Comparison:
    """Tell the rows of a disturbed run from those of a calm one."""
    calm_keys = Counter((table, key) for table, key, _ in calm.elements())
    disturbed_keys = Counter((table, key) for table, key, _ in disturbed.elements())
    return Comparison(
        rows=calm.total(),
        lost=(calm_keys - disturbed_keys).total(),
        doubled=(disturbed_keys - calm_keys).total(),
        differing=sum(1 for row in disturbed if row not in calm and row[:2] in calm_keys),
    )
