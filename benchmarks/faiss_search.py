"""FAISS as a peer of `benchmarks.search`, in a process and a Python of its own.

It takes a folder with `queries.npy` and `support.npy`, K, the number of threads, and `cpu` or `cuda`. For each line of
its input, `flat` or `ivf NPROBE`, it searches, leaves the rows found in `found.npy`, and prints a line of JSON: the
seconds of the search, for an index that is filled and trained beforehand.
"""

import json
import sys
import time
from pathlib import Path

import faiss
import numpy as np

_TRAINED_PER_LIST = 40


def main(folder: Path, neighbour_count: int, threads: int, device: str) -> None:
    """Make both indices, say what they took, and search as asked."""
    faiss.omp_set_num_threads(threads)
    queries, support = (np.load(folder / f"{name}.npy") for name in ("queries", "support"))
    dimension = support.shape[1]
    flat = faiss.IndexFlatL2(dimension)
    lists = int(4 * len(support) ** 0.5)
    inverted = faiss.IndexIVFFlat(faiss.IndexFlatL2(dimension), dimension, lists)
    if device == "cuda":
        resources = faiss.StandardGpuResources()
        flat = faiss.index_cpu_to_gpu(resources, 0, flat)
        inverted = faiss.index_cpu_to_gpu(resources, 0, inverted)
    flat.add(support)
    start = time.perf_counter()
    chosen = np.random.default_rng(0).permutation(len(support))[: _TRAINED_PER_LIST * lists]
    inverted.train(support[chosen])
    inverted.add(support)
    _say(version=faiss.__version__, lists=lists, build=time.perf_counter() - start)
    for line in sys.stdin:
        kind, *probes = line.split()
        index = flat
        if kind == "ivf":
            index = inverted
            index.nprobe = int(probes[0])
        start = time.perf_counter()
        _, rows = index.search(queries, neighbour_count)
        seconds = time.perf_counter() - start
        np.save(folder / "found.npy", rows)
        _say(seconds=seconds)


def _say(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
