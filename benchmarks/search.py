"""`python -m benchmarks.search`: bulk neighbours on the processor, and on a GPU if there is one.

With `--faiss PYTHON` FAISS stands beside them, in turns: its flat index, and its inverted lists, of which as few are
visited as reach some recall. It has an environment of its own; for the GPU, install a build for that instead:

    python -m venn faiss && faiss/bin/pip install "faiss-cpu==1.15.1"
    python -m benchmarks.search --faiss faiss/bin/python

`--support A.npz --support B.npz --queries C.npz` takes vectors of files, their arrays `r`, instead of synthetic ones;
`--times 8` makes a support of eight times as many from them.
Neither index of FAISS certifies anything: recall is the share of its rows that are no farther than the K-th nearest.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.data import draw_vectors
from benchmarks.measure import Cost, Measurement, compare_costs
from venn_admit.core.neighbours.bounds import faster_precision
from venn_admit.core.neighbours.on_device import neighbours_on
from venn_admit.core.types import Float32Array, FloatArray, IntArray

NEIGHBOUR_COUNT = 25
RECALLS = (0.95, 0.99, 0.9999)
_TURNS = 3
_SYNTHETIC = ((100_000, 128), (100_000, 384))


@dataclass(frozen=True, eq=False)
class Faiss:
    """FAISS in another process, asked a line at a time."""

    process: "subprocess.Popen[str]"
    folder: Path
    about: dict[str, Any]

    def search(self, kind: str) -> tuple[Cost, IntArray]:
        """Search by `flat` or `ivf NPROBE`."""
        told = _ask(self.process, kind)
        rows: IntArray = np.load(self.folder / "found.npy")
        return Cost(told["seconds"]), rows


@contextmanager
def running_faiss(python: Path, queries: Float32Array, support: Float32Array, device: str) -> Iterator[Faiss]:
    """FAISS on these vectors, as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        for name, vectors in (("queries", queries), ("support", support)):
            np.save(Path(folder) / f"{name}.npy", vectors)
        script = str(Path(__file__).with_name("faiss_search.py"))
        command = [str(python), script, folder, str(NEIGHBOUR_COUNT), str(torch.get_num_threads()), device]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield Faiss(process, Path(folder), _ask(process, None))
            assert process.stdin is not None
            process.stdin.close()


def _ask(process: "subprocess.Popen[str]", line: str | None) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    if line is not None:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    told = process.stdout.readline()
    if not told:
        raise typer.BadParameter(f"FAISS ended with status {process.wait()}: see its message above")
    found: dict[str, Any] = json.loads(told)
    return found


def recall(rows: IntArray, farthest: FloatArray, queries: Float32Array, support: Float32Array) -> float:
    """The share of the rows found that are no farther than the K-th nearest; -1 stands for a row that is lacking."""
    right = 0
    for query, limit, found in zip(queries, farthest, rows, strict=True):
        distances = np.linalg.norm(support[found[found >= 0]].astype(np.float64) - query, axis=1)
        right += int(np.count_nonzero(distances <= limit * (1 + 1e-12)))
    return right / rows.size


def beside_faiss(
    faiss: Faiss, size: str, device: str, queries: Float32Array, support: Float32Array
) -> Iterator[tuple[Measurement, float]]:
    """Each index of FAISS beside ours, with its recall."""
    farthest = neighbours_on(device, queries, support, NEIGHBOUR_COUNT).distances[:, -1]

    def line(kind: str, against: str, found: float) -> tuple[Measurement, float]:
        ours, peer = _searching(device, queries, support), lambda: faiss.search(kind)[0]
        return compare_costs(device, size, against, ours, peer, _TURNS), found

    found = recall(faiss.search("flat")[1], farthest, queries, support)
    yield line("flat", f"FAISS {faiss.about['version']} flat", found)
    probes, wanted = 1, list(RECALLS)
    while wanted and probes <= faiss.about["lists"]:
        found = recall(faiss.search(f"ivf {probes}")[1], farthest, queries, support)
        if found >= wanted[0]:
            wanted = [share for share in wanted if share > found]
            yield line(f"ivf {probes}", f"FAISS IVF, {probes} of {faiss.about['lists']} lists", found)
        probes *= 2


def _searching(device: str, queries: Float32Array, support: Float32Array) -> Callable[[], Cost]:
    def search() -> Cost:
        start = time.perf_counter()
        neighbours_on(device, queries, support, NEIGHBOUR_COUNT)
        return Cost(time.perf_counter() - start)

    return search


def read_vectors(paths: list[Path]) -> Float32Array:
    """The arrays `r` of files, one after the other."""
    return np.concatenate([np.load(path)["r"].astype(np.float32) for path in paths])


def larger(vectors: Float32Array, times: int) -> Float32Array:
    """This number of vectors for each one: itself, and points on the way from it to random others, up to the middle."""
    generator = np.random.default_rng(0)
    made = [vectors]
    for _ in range(times - 1):
        others = vectors[generator.permutation(len(vectors))]
        share = generator.uniform(0, 0.5, (len(vectors), 1)).astype(np.float32)
        made.append(vectors + share * (others - vectors))
    return np.concatenate(made)


def main(
    faiss: Path | None = None,
    support: list[Path] | None = None,
    queries: list[Path] | None = None,
    query_count: int = 2048,
    times: int = 1,
) -> None:
    """Measure, and print a table.

    Args:
        faiss: A Python that has FAISS.
        support: Files with the support, their array `r`; synthetic vectors by default.
        queries: Files with the queries.
        query_count: How many queries are asked.
        times: How many vectors are made of each one of the files' support.
    """
    if bool(support) != bool(queries):
        raise typer.BadParameter("expected both --support and --queries, or neither")
    data = (
        [(read_vectors(queries)[:query_count], larger(read_vectors(support), times))]
        if support and queries
        else [
            (vectors[:query_count], vectors[query_count:])
            for vectors in (draw_vectors(total + query_count, dimension) for total, dimension in _SYNTHETIC)
        ]
    )
    on = [f"cpu ({faster_precision()})".replace("torch.", "")]
    on += [torch.cuda.get_device_name()] if torch.cuda.is_available() else ["no GPU"]
    about = f"{', '.join(on)}; torch {torch.__version__}, {torch.get_num_threads()} threads"
    table = Table(caption=f"{about}; ratio: peer's time / ours")
    for heading in ("device", "size", "peer"):
        table.add_column(heading)
    for heading in ("recall", "ours", "peer", "ratio"):
        table.add_column(heading, justify="right")
    for asked, among in data:
        for found, share in _lines(faiss, asked, among):
            took = (f"{found.ours:.2f} s", f"{found.peer:.2f} s", f"{found.ratio:.2f}")
            table.add_row(found.what, found.size, found.against, f"{share:.5g}", *took)
    console = Console()
    console.width = max(console.width, 120)
    console.print(table)


def _lines(faiss: Path | None, queries: Float32Array, support: Float32Array) -> Iterator[tuple[Measurement, float]]:
    """Ours on each device, beside the processor and FAISS, with the peer's recall."""
    size = f"{len(queries):,} x {len(support):,}, D={support.shape[1]}"
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        ours, here = (_searching(where, queries, support) for where in (device, "cpu"))
        if faiss is None or device != "cpu":
            yield compare_costs(device, size, "ours on the processor", ours, here, _TURNS), 1.0
        if faiss is not None:
            with running_faiss(faiss, queries, support, device) as peer:
                yield from beside_faiss(peer, size, device, queries, support)


if __name__ == "__main__":
    typer.run(main)
