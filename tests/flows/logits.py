"""A classifier with logits only, its data, and what is asked of it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from tests.running import Arrays, Bench
from venn_admit.core.types import KnnParameters
from venn_admit.flows.calibration.calibrate import Calibrated, calibrate_on_stored, settings_for
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.store.exemplars.classifiers import Classifier

NAME, WITH_VECTORS = "logits", "vectors"
CLASSES = 3
ALPHA = Decimal("0.2")


def exemplars(prefix: str, count: int, seed: int) -> Arrays:
    """Rows of which the largest logit is mostly the label, some of them alike, in documents of two."""
    generator = np.random.default_rng(seed)
    label = generator.integers(CLASSES, size=count)
    logits = np.round(generator.normal(size=(count, CLASSES)) + 2 * np.eye(CLASSES)[label], 1)
    return {
        "id": np.array([f"{prefix}-{row}" for row in range(count)]),
        "doc": np.array([f"{prefix}-{row // 2}" for row in range(count)]),
        "f": logits.astype(np.float32),
        "y": label,
    }


def with_regions(prefix: str, count: int, seed: int) -> Arrays:
    """Rows of a region, and of a floor that is a number; what is right in the south is often labelled wrong."""
    rows = exemplars(prefix, count, seed)
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south", "west"], count, p=[0.6, 0.2, 0.2])
    weak = (region == "south") & (rng.random(count) < 0.25)
    rows["y"] = np.where(weak, (rows["f"].argmax(axis=1) + 1) % CLASSES, rows["y"])
    return rows | {"region": region, "floor": rng.integers(3, size=count)}


def make(bench: Bench, name: str = NAME, *, class_count: int = CLASSES) -> Classifier:
    names = tuple(f"class {number}" for number in range(class_count))
    return create(bench.engine, name, names, seed=0, logits_only=True)


def calibrated(bench: Bench, name: str = NAME, **settings: Any) -> Calibrated:
    known = find(bench.engine, name)
    asked = settings_for(
        known, "venn-abers", {"alpha": ALPHA, "promise": None if "certify" in settings else "pointwise", **settings}
    )
    return calibrate_on_stored(bench.workspace(), known, asked, reason="test")


def prepared(bench: Bench, name: str = NAME) -> Calibrated:
    """The classifier with held-out data, calibrated."""
    make(bench, name)
    bench.ingest(name, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
    return calibrated(bench, name)


def with_vectors(bench: Bench, rows: Arrays, *, seed: int) -> Path:
    """A file of the rows, with vectors that say nothing."""
    vectors = np.random.default_rng(seed).normal(size=(len(rows["id"]), 2)).astype(np.float32)
    return bench.write("rows.npz", rows | {"r": vectors})


def make_both(bench: Bench) -> None:
    """Classifiers with and without vectors, calibrated by the same points of mc and vp; none is in knn."""
    bench.create(WITH_VECTORS, dimension=2, class_count=CLASSES, neighbour_count=3)
    make(bench)
    for split, count, seed in (("train", 40, 5), ("mc", 800, 1), ("vp", 700, 2)):
        rows = exemplars(split, count, seed)
        bench.ingest(WITH_VECTORS, with_vectors(bench, rows, seed=seed), split)
        if split != "train":
            bench.ingest(NAME, bench.write("rows.npz", rows), split)
    bench.adopt(WITH_VECTORS, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0)
    bench.calibrate_abers(WITH_VECTORS, score="network", alpha=ALPHA)
    calibrated(bench)
