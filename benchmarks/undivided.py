"""`python -m benchmarks.undivided`: what Venn-ADMIT would admit if no division into `mc` and `vp` were drawn.

Both parts are then all held-out points outside `knn`. The point to decide on joins them with each label that it may
have: it bears on bands and categories as they do, and its probabilities are the shares of its category with it. That is
a Venn predictor in full, whose categories do not depend on the order of the points, so that Proposition 1 holds; the
width of bands comes from `knn`. Half of the held-out points of the bundled reviews calibrate, 2,000 others are decided
on, and several draws of halves show what chance does. Each half is divided as well, as Venn-ADMIT divides it.
Probabilities are plain. DECISIONS.md, 221, says what follows.
"""

from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

from venn_admit.core.approximation.fit import fit_knn
from venn_admit.core.approximation.knn import approximate, calibration_points, softmax
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.order_statistics import conformal_rank
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.crossfit import AdmitParts
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.neighbours.search import search
from venn_admit.core.split_names import Split
from venn_admit.core.splits import assign_splits
from venn_admit.core.types import Approximation, FloatArray, IntArray, Neighbours, Support

REVIEWS = Path(__file__).parents[1] / "examples" / "sentiment_small"
CLASSES, NEIGHBOURS, KAPPA, JUDGED = 2, 25, 100, 2000
BUDGET = 1 << 30
SETTINGS: dict[str, dict[str, Any]] = {
    "every q": {},
    "q from 0, 1, 6, 16, 25": {"q_bins": (0, 1, 6, 16, 25)},
    "one bin": {"q_bins": (0,)},
    "one bin, delta 2": {"q_bins": (0,), "delta": 2.0},
}


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """n points: scores 1 - pi (n, C), and predictions, labels, numbers of bins of q, and d, (n,) each."""

    scores: FloatArray
    predicted: IntArray
    label: IntArray
    group: IntArray
    distance: FloatArray

    def take(self, rows: IntArray | slice | npt.NDArray[np.bool_]) -> "Points":
        """Return some of them."""
        return Points(*(getattr(self, field.name)[rows] for field in fields(self)))


class Undivided:
    """The Venn predictor over n points, each of which calibrates sets and probabilities."""

    def __init__(self, points: Points, omega: float, alpha: Decimal, kappa: int) -> None:
        """Take for each point and class what is left of its band's threshold if one score joins it.

        That is the smallest and the largest value that it can have then, and the value that it has if none does.
        """
        self._points = points = points.take(np.lexsort((points.distance, points.group)))
        self._omega, self._alpha, self._kappa = omega, alpha, kappa
        count, classes = points.scores.shape
        self._counts = np.zeros((count, classes), np.int64)
        self._alone, self._least, self._most = (np.full((count, classes), np.inf) for _ in range(3))
        for row in range(count):
            band = self._band(points.group[row], points.distance[row])
            for c in range(classes):
                scores = np.sort(points.scores[band, c][points.label[band] == c])
                self._counts[row, c] = len(scores)
                self._alone[row, c], self._least[row, c], self._most[row, c] = self._thresholds(scores)

    def lower(self, point: Points) -> float:
        """Return the lower probability of the prediction of one point; NaN if its set is no singleton by some label."""
        return float(np.min([self.probability(point, label) for label in range(point.scores.shape[1])]))

    def probability(self, point: Points, label: int) -> float:
        """Return the share of the category of one point that has its prediction for a label, if it has this one itself.

        NaN if its set is no singleton then.
        """
        band = self._band(point.group[0], point.distance[0])
        near, predicted = self._points.take(band), int(point.predicted[0])
        if not self._singleton(point.scores, point.predicted, *self._own(near, point, label))[0]:
            return np.nan
        counts, thresholds = self._counts[band].copy(), self._alone[band].copy()
        counts[:, label] += 1
        joining = float(point.scores[0, label])
        thresholds[:, label] = np.clip(joining, self._least[band, label], self._most[band, label])
        single = self._singleton(near.scores, near.predicted, counts, thresholds)
        labels = near.label[single & (near.predicted == predicted)]
        return float(((labels == predicted).sum() + (label == predicted)) / (len(labels) + 1))

    def _own(self, near: Points, point: Points, of_point: int) -> tuple[IntArray, FloatArray]:
        """How many of each class the band of a point holds, and the thresholds, (1, C) each, with the point in it."""
        label = np.append(near.label, of_point)
        scores = np.concatenate([near.scores, point.scores])
        of_class = [np.sort(scores[label == c, c]) for c in range(scores.shape[1])]
        return np.array([[len(one) for one in of_class]]), np.array([[self._thresholds(one)[0] for one in of_class]])

    def _thresholds(self, scores: FloatArray) -> tuple[float, float, float]:
        """The threshold by sorted scores, and the least and the most that it can be with one more."""
        padded = np.concatenate([[-np.inf], scores, [np.inf, np.inf]])
        alone, joined = conformal_rank(np.array([len(scores), len(scores) + 1]), self._alpha).tolist()
        return padded[alone], padded[joined - 1], padded[joined]

    def _singleton(
        self, scores: FloatArray, predicted: IntArray, counts: IntArray, thresholds: FloatArray
    ) -> npt.NDArray[np.bool_]:
        included = scores <= thresholds
        included[np.arange(len(predicted)), predicted] = True
        single: npt.NDArray[np.bool_] = (included.sum(axis=1) == 1) & (counts.min(axis=1) >= self._kappa)
        return single

    def _band(self, group: int, distance: float) -> slice:
        """The rows of the points with this bin of q within omega of d."""
        start, end = np.searchsorted(self._points.group, [group, group + 1])
        inside = self._points.distance[start:end]
        low = np.searchsorted(inside, distance - self._omega)
        return slice(start + low, start + np.searchsorted(inside, distance + self._omega, side="right"))


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
        sets.singleton & (sets.smallest >= KAPPA) for sets in (parts.sets(index, vp), parts.sets(index, judged))
    )
    divided = parts.lower(judged, of_judged, vp, of_vp, omega)
    group = np.searchsorted(settings.q_bins, view.match_count, side="right")
    points = Points(1 - softmax(view.logits), view.predicted, label, group, view.distance)
    of_knn = calibration_points(view.take(np.flatnonzero(knn)), label[knn])
    predictor = Undivided(points.take(half), band_radius(of_knn, settings.delta).omega, settings.alpha, KAPPA)
    undivided = np.array([predictor.lower(points.take(slice(row, row + 1))) for row in judged.tolist()])
    right = view.predicted[judged] == label[judged]
    kept = [reaches_threshold(lower, view.predicted[judged], settings.thresholds) for lower in (divided, undivided)]
    first, second = ((float(one.mean()), float(right[one].mean()) if one.any() else np.nan) for one in kept)
    return first, second


if __name__ == "__main__":
    typer.run(main)
