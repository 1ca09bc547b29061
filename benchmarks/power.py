"""`python -m benchmarks.power FOLDER --task NAME`: what each promise admits of new data, over random divisions.

FOLDER has a folder a task, with `train.npz`, `valid.npz` and `test.npz`: vectors, logits and labels. How `valid` is
divided into knn, mc and vp depends on a seed, and so does all training: for each seed a classifier is created, given
the data, fitted, and calibrated for each promise at alpha 0.1 and confidence .95. All of that is done by the command
line, as a user would, in a database of its own. `test` is scored, and its labels serve for counting only.

A run that was interrupted goes on after the divisions that are done, and a complete one is printed again. On one core,
a division of 16,000 reviews takes about half a minute, one of 60,000 residues some minutes; with `--logits-only`, which
leaves out vectors and with them the reliability score, seconds.
"""

import json
import math
import os
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.table import Table

from venn_admit.cli.main import main
from venn_admit.cli.worker_process import OwnWorker
from venn_admit.core.types import IntArray

PROMISES = {
    "predicted classes": ("--certify", "predicted"),
    "both kinds": ("--certify", "predicted,true"),
    "strongest": (),
    "average": ("--promise", "average"),
}
KEPT = Path("build/power")
Found = dict[str, Any]
"""What was found for a promise in a division: the share admitted of `test`, and what is right of each class of it."""


def venn_admit(*arguments: object) -> Any:
    """Run a command, in this process, which spares its start, and return what it prints as JSON."""
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            main([*map(str, arguments), "--json"])
    except SystemExit as ended:
        if ended.code:
            raise
    return json.loads(printed.getvalue())


def divide(task: Path, seed: int, keep: Path, *, logits_only: bool) -> dict[str, Found]:
    """Calibrate by one division of the held-out data, and count what each promise admits of `test`."""
    with np.load(task / "train.npz") as arrays:
        class_count, dimension = arrays["f"].shape[1], arrays["r"].shape[1]
    name = f"{task.name}-{seed}"
    names = ",".join(str(number) for number in range(class_count))
    vectors = ["--logits-only"] if logits_only else ["--dim", dimension]
    venn_admit("create", name, "--classes", names, "--seed", seed, *vectors)
    valid, test = (
        _without_vectors(task / file, keep) if logits_only else task / file for file in ("valid.npz", "test.npz")
    )
    if not logits_only:
        venn_admit("ingest", name, task / "train.npz", "--split", "train")
    # Words of sentences repeat, in the traffic as often as here.
    venn_admit("ingest", name, valid, "--split", "held-out", "--allow-training-rows")
    if not logits_only:
        venn_admit("fit", name)
    found = {}
    for promise, options in PROMISES.items():
        calibrated = venn_admit("calibrate", name, *options)
        decisions = keep / f"{calibrated['calibration']}.parquet"
        venn_admit("score", name, test, "--calibration", calibrated["calibration"], "--out", decisions)
        found[promise] = _counted(decisions, _labels(test), class_count) | _promised(calibrated)
    venn_admit("delete", name, "--yes")
    return found


def _without_vectors(path: Path, keep: Path) -> Path:
    with np.load(path) as arrays:
        kept = {name: arrays[name] for name in arrays if name != "r"}
    np.savez(keep / path.name, **kept)
    return keep / path.name


def _labels(path: Path) -> IntArray:
    labels: IntArray = np.load(path)["y"].astype(np.int64)
    return labels


def _counted(decisions: Path, label: IntArray, class_count: int) -> Found:
    table = pq.read_table(decisions)
    predicted = table["predicted"].to_numpy()
    admitted = table["decision"].is_valid().to_numpy()
    right = predicted == label

    def counts(classes: IntArray) -> list[list[int]]:
        rows = [admitted & (classes == number) for number in range(class_count)]
        return [[int((right & of_class).sum()), int(of_class.sum())] for of_class in rows]

    return {"admitted": float(admitted.mean()), "predicted": counts(predicted), "true": counts(label)}


def _promised(calibrated: Any) -> Found:
    certificate = calibrated.get("certificate") or {}
    return {
        "certified": certificate.get("certified", False),
        "kinds": certificate.get("kinds", []),
        "lacking": [[one["kind"], one["class"], one["documents_needed"]] for one in certificate.get("lacking", [])],
    }


def _least(found: Found, kind: str) -> float:
    """The share right of the class of the kind where it is least; NaN if nothing is admitted."""
    return min((right / count for right, count in found[kind] if count), default=math.nan)


def _shown(values: Iterable[float]) -> str:
    known = [value for value in values if not math.isnan(value)]
    return f"{mean(known):.3f} ({min(known):.3f} to {max(known):.3f})" if known else "-"


def _table(divisions: list[dict[str, Found]], title: str) -> Table:
    table = Table(title=title)
    for heading in ("promise", "certified", "admitted", "least right, predicted class", "least right, true class"):
        table.add_column(heading)
    for promise in PROMISES:
        each = [found[promise] for found in divisions]
        table.add_row(
            promise,
            f"{sum(one['certified'] for one in each)} of {len(each)}",
            _shown(one["admitted"] for one in each),
            *(_shown(_least(one, kind) for one in each) for kind in ("predicted", "true")),
        )
    return table


def measure(
    folder: Annotated[Path, typer.Argument(help="A folder with a folder a task.")],
    task: Annotated[list[str], typer.Option(help="Tasks, by the names of their folders.")],
    seeds: Annotated[int, typer.Option(help="Divisions of the held-out data of each task.")] = 10,
    logits_only: Annotated[bool, typer.Option("--logits-only", help="Leave vectors out.")] = False,
    keep: Annotated[Path, typer.Option(help="Folder of the database and of the divisions that are done.")] = KEPT,
) -> None:
    """Print, for each task, what each promise admits of `test`: mean, least and most over the divisions."""
    os.environ["VENN_ADMIT_HOME"] = str(keep)
    keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    record = keep / "divisions.jsonl"
    known = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    done = {(one["task"], one["seed"]): one["found"] for one in known}
    venn_admit("list")  # which starts the server, without which no worker stays
    worker = OwnWorker(keep, 1)  # for all commands, which would each start one
    for name in task:
        for seed in range(seeds):
            if (name, seed) not in done:
                done[name, seed] = found = divide(folder / name, seed, keep, logits_only=logits_only)
                with record.open("a") as lines:
                    print(json.dumps({"task": name, "seed": seed, "found": found}), file=lines)
        divisions = [done[name, seed] for seed in range(seeds)]
        Console(width=140).print(_table(divisions, f"{name}, {seeds} divisions"))
    worker.stop()


if __name__ == "__main__":
    typer.run(measure)
