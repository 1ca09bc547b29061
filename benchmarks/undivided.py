"""`python -m benchmarks.undivided`: what Venn-ADMIT admits undivided and divided, and what it owes to chance.

Half of the held-out points of the bundled reviews outside `knn` calibrate, 2,000 others are decided on, and several
draws of halves show what chance does. Undivided, all of a half calibrate; otherwise it is divided into `mc` and `vp`.
Probabilities are plain. DECISIONS.md, 240, says what follows.
"""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

from venn_admit.core.approximation.fit import fit_knn
from venn_admit.core.approximation.knn import approximate, calibration_points
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.crossfit import AdmitParts
from venn_admit.core.calibrators.venn_admit.decide import decide_undivided
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.neighbours.search import search
from venn_admit.core.split_names import Split
from venn_admit.core.splits import assign_splits
from venn_admit.core.types import Approximation, IntArray, Neighbours, Support

REVIEWS = Path(__file__).parents[1] / "examples" / "sentiment_small"
CLASSES, NEIGHBOURS, KAPPA, JUDGED = 2, 25, 100, 2000
BUDGET = 1 << 30
SETTINGS: dict[str, dict[str, Any]] = {
    "every q": {},
    "q from 0, 1, 6, 16, 25": {"q_bins": (0, 1, 6, 16, 25)},
    "one bin": {"q_bins": (0,)},
    "one bin, delta 2": {"q_bins": (0,), "delta": 2.0},
    "every q, delta infinite": {"delta": float("inf")},
}


def main(draws: Annotated[int, typer.Option(min=2, help="How often halves are drawn.")] = 10) -> None:
    """Print a row for each setting."""
    view, label, knn = held_out()
    table = Table("bins of q", "", "admitted", "least", "most", "standard deviation", "right")
    for name, chosen in SETTINGS.items():
        settings = make_settings(CLASSES, NEIGHBOURS, alpha=Decimal("0.1"), kappa=KAPPA, **chosen)
        found = [admitted(view, label, knn, settings, draw) for draw in range(draws)]
        for way, rows in zip(("divided", "undivided"), zip(*found, strict=True), strict=True):
            shares, right = np.array(rows).T
            figures = shares.mean(), shares.min(), shares.max(), shares.std(), np.nanmean(right)
            table.add_row(name, way, *(f"{figure:.3f}" for figure in figures))
    Console().print(table)


def held_out() -> tuple[Approximation, IntArray, npt.NDArray[np.bool_]]:
    """Return the held-out reviews as the KNN sees them, their labels, and which are of `knn`, on which it is fitted."""
    with np.load(REVIEWS / "train.npz") as train, np.load(REVIEWS / "valid.npz") as valid:
        support, index = Support(train["f"], train["y"].astype(np.int64)), NeighbourIndex.of(train["r"].astype("f4"))
        keys, label, logits = [str(key) for key in valid["doc"]], valid["y"].astype(np.int64), valid["f"]
        near, _ = search(valid["r"].astype(np.float32), index, NEIGHBOURS, memory_budget=BUDGET)
    is_knn = np.array([split is Split.KNN for split in assign_splits(keys, seed=0)])
    chosen = [key for key, one in zip(keys, is_knn.tolist(), strict=True) if one]
    of_knn = Neighbours(near.indices[is_knn], near.distances[is_knn])
    fit = fit_knn(of_knn, logits[is_knn], support, document_keys=chosen, row_keys=chosen, seed=0)
    return approximate(near, support, fit.parameters), label, is_knn


def admitted(
    view: Approximation, label: IntArray, knn: npt.NDArray[np.bool_], settings: CalibratorSettings, draw: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the share admitted and the share right of these, with a half divided, and with the same undivided."""
    order = np.random.default_rng(draw).permutation(np.flatnonzero(~knn))
    half, judged = order[: len(order) // 2], order[len(order) // 2 :][:JUDGED]
    calibrating = calibration_points(view, label)
    parts = AdmitParts(calibrating, view.logits, settings, CLASSES, None, BUDGET)
    mc, vp = half[: len(half) // 2], half[len(half) // 2 :]
    index, omega = parts.index(mc)
    of_vp, of_judged = (
        sets.singleton & (sets.smallest >= [[KAPPA]]) for sets in (parts.sets(index, vp), parts.sets(index, judged))
    )
    (divided,) = parts.lower(judged, of_judged, vp, of_vp, omega)
    of_knn = calibration_points(view.take(np.flatnonzero(knn)), label[knn])
    undivided_index = UndividedIndex(
        calibration_points(view.take(half), label[half]),
        view.logits[half],
        class_count=CLASSES,
        settings=replace(settings, undivided=True),
        omega=band_radius(of_knn, settings.delta, Split.KNN).omega,
    )
    found = decide_undivided(
        undivided_index, view.take(judged), settings, neighbour_count=NEIGHBOURS, require_full_match=False
    )
    undivided = found.probabilities.lower
    right = view.predicted[judged] == label[judged]
    kept = [reaches_threshold(lower, view.predicted[judged], settings.thresholds) for lower in (divided, undivided)]
    first, second = ((float(one.mean()), float(right[one].mean()) if one.any() else np.nan) for one in kept)
    return first, second


if __name__ == "__main__":
    typer.run(main)
