"""The independent reference's results: bands, sets, thresholds, categories, probabilities, decisions."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from venn_admit.core.approximation.knn import nonconformity
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, select, venn_probabilities
from venn_admit.core.types import AdmitSets, CalibrationPoints, IntArray

GOLDEN = Path(__file__).parents[1] / "golden"


class Golden:
    """One golden file, read as the core's records."""

    def __init__(self, name: str) -> None:
        with np.load(GOLDEN / f"{name}.npz") as arrays:
            self.arrays: dict[str, npt.NDArray[Any]] = dict(arrays)
        self.class_count = self["mc_logits"].shape[1]
        self.settings = make_settings(
            self.class_count,
            int(self["K"]),
            alpha=Decimal(str(self["alpha"])),
            delta=float(self["delta"]),
            kappa=int(self["kappa"]),
        )
        self.mc, self.vp = self.points("mc"), self.points("vp")

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.arrays[name]

    def points(self, split: str) -> CalibrationPoints:
        labels = self[f"{split}_y"].astype(np.int64)
        return CalibrationPoints(
            label=labels,
            predicted=self.integers(f"{split}_predicted"),
            match_count=self.integers(f"{split}_q"),
            distance=self[f"{split}_d"],
            score=nonconformity(self[f"{split}_logits"], labels),
        )

    def integers(self, name: str) -> IntArray:
        return self[name].astype(np.int64)

    def sets(self, split: str) -> AdmitSets:
        omega = band_radius(self.mc, self.settings.delta).omega
        index = AdmitIndex(self.mc, class_count=self.class_count, settings=self.settings, omega=omega)
        return index.sets(
            self[f"{split}_logits"],
            self.integers(f"{split}_predicted"),
            self.integers(f"{split}_q"),
            self[f"{split}_d"],
        )


@pytest.fixture(scope="module", params=["sentiment", "edge"])
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.param)


def test_band_radius(golden: Golden) -> None:
    radius = band_radius(golden.mc, golden.settings.delta)
    np.testing.assert_allclose([radius.s_hat, radius.omega], [golden["s_hat"], golden["omega"]], rtol=1e-12)


@pytest.mark.parametrize("split", ["vp", "score"])
def test_sets_band_sizes_and_thresholds(golden: Golden, split: str) -> None:
    sets = golden.sets(split)
    np.testing.assert_array_equal(sets.included, golden[f"{split}_set"])
    np.testing.assert_array_equal(sets.band_size, golden[f"{split}_band_size"])
    np.testing.assert_allclose(sets.threshold, golden[f"{split}_threshold"], rtol=1e-6, atol=0)


def test_categories_probabilities_and_decisions(golden: Golden) -> None:
    sets, vp_sets = golden.sets("score"), golden.sets("vp")
    omega = band_radius(golden.mc, golden.settings.delta).omega
    index = VennIndex(
        golden.vp, vp_sets.singleton, class_count=golden.class_count, settings=golden.settings, omega=omega
    )
    predicted, match_count = golden.integers("score_predicted"), golden.integers("score_q")
    categories = index.categories(sets.singleton, predicted, match_count, golden["score_d"])
    np.testing.assert_array_equal(categories.size, golden["score_category_size"])

    for kind, weight in (("plain", None), ("weighted", 1 / golden["score_upweight"])):
        found = venn_probabilities(sets.singleton, categories.size, categories.correct, weight)
        np.testing.assert_allclose(found.lower, golden[f"score_lower_{kind}"], rtol=1e-9, atol=0)
        selection = select(
            sets,
            found,
            predicted,
            match_count,
            neighbour_count=int(golden["K"]),
            thresholds=golden.settings.thresholds,
            require_full_match=False,
        )
        np.testing.assert_array_equal(selection.decision, golden[f"score_decision_{kind}"])
        np.testing.assert_array_equal(selection.reason == -1, selection.decision >= 0)
