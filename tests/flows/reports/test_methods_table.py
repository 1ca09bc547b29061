"""The table of methods names each method once, the calibration's first."""

from collections import Counter

import numpy as np
import pytest

from tests.flows.logits import NAME, calibrated, exemplars, make
from tests.running import Bench
from venn_admit.errors import NotReadyError
from venn_admit.flows.reports.methods_table import MethodsTable, methods_table


def table(edge: Bench) -> MethodsTable:
    found = methods_table(edge.workspace(), "edge", None)
    assert set(Counter(one.name for one in found.methods).values()) == {1}
    assert [one.is_own for one in found.methods] == [True] + [False] * (len(found.methods) - 1)
    return found


def test_the_method_of_the_calibration_takes_the_place_of_the_rival_that_it_is(edge: Bench) -> None:
    edge.calibrate("edge", kappa=3)
    by_bands = [one.name for one in table(edge).methods]
    assert by_bands[0] == "Venn-ADMIT weighted"
    assert "Venn-Abers network" in by_bands
    edge.calibrate_abers("edge", score="network")
    found = table(edge)
    assert found.methods[0].name == "Venn-Abers network"
    assert not found.is_certified
    assert {one.name for one in found.methods} == {*by_bands} - {"Venn-ADMIT weighted"}
    edge.calibrate_abers("edge", score="network", q_bins=(0, 1))
    assert table(edge).methods[0].name == "Venn-Abers network, bins of q"
    edge.calibrate_abers("edge", score="network", certify=["predicted"])
    assert table(edge).is_certified


ONE_FOLD = (
    "points of mc in several folds, .* got all 60 in one: a fold holds whole documents, of which mc has 1, and copies "
    "count as one; ingest held-out data of other documents"
)


def test_points_of_a_single_document_cannot_be_divided(bench: Bench) -> None:
    make(bench)
    rows = exemplars("mc", 60, seed=1)
    bench.ingest(NAME, bench.write("mc.npz", rows | {"doc": np.full(60, "one")}), "mc")
    bench.ingest(NAME, bench.write("vp.npz", exemplars("vp", 60, seed=2)), "vp")
    calibrated(bench)
    with pytest.raises(NotReadyError, match=ONE_FOLD):
        methods_table(bench.workspace(), NAME, None)


def test_points_that_are_all_copies_cannot_be_divided(bench: Bench) -> None:
    bench.create("copies", dimension=2, neighbour_count=3)
    for place, split in enumerate(("train", "mc", "vp")):
        rows = np.arange(60) if split == "train" else np.zeros(60)
        arrays = {
            "id": [f"{split}-{row}" for row in range(60)],
            "r": np.c_[rows, rows + place].astype(np.float32),
            "f": np.c_[rows, rows - 1].astype(np.float32),
            "y": np.arange(60) % 2,
        }
        bench.ingest("copies", bench.write(f"{split}.npz", arrays), split)
    bench.adopt("copies")
    bench.calibrate_abers("copies", score="network")
    with pytest.raises(NotReadyError, match=ONE_FOLD):
        methods_table(bench.workspace(), "copies", None)
