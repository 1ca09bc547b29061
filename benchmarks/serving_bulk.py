"""A file scored over HTTP, from upload to download, against the command line on the same database and workers."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.measure import Measurement
from benchmarks.scoring import workers
from benchmarks.served import NAME, Served

_TURNS = 2


def measure_bulk(served: Served, size: str, rows: int) -> Measurement:
    """Score files of points that are all new, in turns."""
    with workers(served.engine, served.files / "home"):
        turns = []
        for turn in range(_TURNS + 1):  # the first reads what is kept, and does not count
            both = (
                _over_http(served, _file(served, f"http-{turn}", rows)),
                _by_command(served, _file(served, f"command-{turn}", rows)),
            )
            turns += [both] if turn else []
    ours, peer = (float(np.median([turn[side] for turn in turns])) for side in (0, 1))
    return Measurement(
        what="score a file over HTTP",
        size=f"{size}, {rows:,} rows",
        against="venn-admit score",
        ours=ours,
        peer=peer,
        ratio=float(np.median([theirs / own for own, theirs in turns])),
        note=f"rows a second {rows / ours:,.0f}, peer {rows / peer:,.0f}",
    )


def _file(served: Served, name: str, rows: int) -> Path:
    """The points of the service, again and again with a little noise, under new ids."""
    rng = np.random.default_rng(len(name))
    drawn = rng.integers(len(served.vectors), size=rows)
    vectors = served.vectors[drawn] + rng.normal(scale=0.01, size=(rows, 1)).astype(np.float32)
    path = served.files / f"{name}.parquet"
    columns = {
        "external_id": pa.array([f"{name}-{row}" for row in range(rows)]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
        "logits": pa.FixedSizeListArray.from_arrays(pa.array(served.logits[drawn].ravel()), served.logits.shape[1]),
    }
    pyarrow.parquet.write_table(
        pa.table({name: _as_list(column) for name, column in columns.items()}), path, compression="none"
    )
    return path


def _as_list(column: pa.Array) -> pa.Array:
    return column.cast(pa.list_(pa.float32())) if isinstance(column, pa.FixedSizeListArray) else column


def _over_http(served: Served, file: Path) -> float:
    start = time.perf_counter()
    with served.client() as http:
        with file.open("rb") as opened:
            posted = http.post(
                f"/v1/classifiers/{NAME}/jobs",
                content=opened,
                headers={"Content-Type": "application/vnd.apache.parquet"},
            ).raise_for_status()
        job = posted.headers["location"]
        with http.stream("GET", f"{job}/events") as events:
            assert any(line == "event: end" for line in events.iter_lines()), "the job came to an end"
        with http.stream("GET", f"{job}/scores") as scores, file.with_suffix(".http").open("wb") as written:
            scores.raise_for_status()
            for block in scores.iter_bytes():
                written.write(block)
    return time.perf_counter() - start


def _by_command(served: Served, file: Path) -> float:
    """The whole command, its start included."""
    settings = {
        "VENN_ADMIT_DATABASE_URL": served.engine.url.render_as_string(hide_password=False),
        "VENN_ADMIT_HOME": str(served.files / "command"),
    }
    start = time.perf_counter()
    command = [sys.executable, "-m", "venn_admit.cli", "score", NAME, file, "--out", f"{file}.scores.parquet"]
    subprocess.run(list(map(str, command)), env=os.environ | settings, check=True, capture_output=True)
    return time.perf_counter() - start
