"""Labels that came together count in an order that owes nothing to the rows of their file.

Files are often sorted by label, or by whether the prediction is right. Games that may be looked at after every document
would take the rows of such a file for good times and bad ones.
"""

from math import log
from pathlib import Path

import numpy as np
import pytest

from tests.flows.calibration.test_standing import STANDING, advance, certificate
from tests.flows.logits import NAME, calibrated, make
from tests.running import Arrays, Bench
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.monitor import update_monitor


def points(prefix: str, count: int, seed: int, *, least: float = 0.55) -> Arrays:
    """Rows of two classes, the right ones first; the share right rises with the score, from the least one by .4."""
    rng = np.random.default_rng(seed)
    predicted, height = rng.integers(2, size=count), rng.random(count)
    wrong = rng.random(count) >= least + 0.4 * height
    order = np.argsort(wrong, kind="stable")
    logits = np.where(predicted[:, None] == np.arange(2), 0.1 + 3 * height[:, None], 0.0)
    return {
        "id": np.array([f"{prefix}-{row}" for row in range(count)]),
        "f": logits[order].astype(np.float32),
        "y": np.where(wrong, 1 - predicted, predicted)[order],
    }


def least_right(bench: Bench) -> float:
    """The least share right of what is certified of a class, under the law of the points."""
    policy = certificate(bench).policy
    assert policy is not None
    logits = [log(one / (1 - one)) if one else 0.0 for one in policy.thresholds if one is not None]
    return min(0.75 + 0.2 * max((one - 0.1) / 3, 0.0) for one in logits)


def give(bench: Bench, rows: Arrays) -> None:
    path: Path = bench.folder / "labels.csv"
    pairs = zip(rows["id"].tolist(), rows["y"].tolist(), strict=True)
    path.write_text("\n".join(["external_id,label", *(f"{key},{number}" for key, number in pairs)]) + "\n")
    label(bench.engine, NAME, LabelFile(path), selection="random", retract=False)


def score(bench: Bench, rows: Arrays) -> None:
    bench.score(NAME, bench.write("new.npz", {name: rows[name] for name in ("id", "f")}), weighted=None)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_sorted_file_of_held_out_data_certifies_nothing_that_falls_short(bench: Bench, parts: int) -> None:
    """Nor do two files, of which the first has the right ones."""
    make(bench, class_count=2)
    rows = points("held-out", 3_000, seed=1)
    for part in range(parts):
        of_part = {name: np.array_split(of, parts)[part] for name, of in rows.items()}
        bench.ingest(NAME, bench.write(f"{part}.npz", of_part), "held-out")
    calibrated(bench, **STANDING)
    assert least_right(bench) >= 0.8


def test_a_sorted_file_of_labels_certifies_nothing_that_falls_short(bench: Bench) -> None:
    make(bench, class_count=2)
    bench.ingest(NAME, bench.write("held-out.npz", points("held-out", 3_000, seed=1)), "held-out")
    calibrated(bench, **STANDING)
    rows = points("new", 1_000, seed=2)
    score(bench, rows)
    give(bench, rows)
    advance(bench)
    assert least_right(bench) >= 0.8


def test_a_sorted_file_of_labels_lights_no_lamp(bench: Bench) -> None:
    make(bench, class_count=2)
    bench.ingest(NAME, bench.write("held-out.npz", points("held-out", 2_000, seed=1, least=0.7)), "held-out")
    calibrated(bench)
    rows = points("new", 1_000, seed=2, least=0.7)
    score(bench, rows)
    give(bench, rows)
    found = update_monitor(bench.engine, NAME)
    assert found.documents == 1_000
    assert not found.alarms
