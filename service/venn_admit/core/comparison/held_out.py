"""Held-out data by split, as the network and the KNN see it, and under the scores of Venn-Abers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, join_points
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells, proposing_rows
from venn_admit.core.calibrators.venn_abers.crossfit import ScoreChoice, cross_fit, crossfitted_points
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel, scored_points
from venn_admit.core.comparison.adaptive import uniform_draws
from venn_admit.core.comparison.confidence import fit_temperature, scaled_confidence
from venn_admit.core.types import Approximation, BoolArray, Float32Array, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ViewedPoints:
    """n points as the network and the KNN see them.

    Attributes:
        network_logits: (n, C) float32, f.
        view: The KNN's; None if the classifier has logits only.
    """

    network_logits: Float32Array
    view: Approximation | None

    @property
    def knn(self) -> Approximation:
        """The KNN's view, if there are vectors."""
        assert self.view is not None, "a classifier with logits only has no KNN"
        return self.view


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutPoints:
    """The labelled points of one split."""

    keys: Sequence[str]
    label: IntArray
    seen: ViewedPoints

    @property
    def right(self) -> BoolArray:
        """(n,) bool, whether the network's prediction is the label."""
        right: BoolArray = network_prediction(self.seen.network_logits) == self.label
        return right


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Held-out data by split: `knn`, of which there is nothing with logits only, `mc` and `vp`."""

    knn: HeldOutPoints
    mc: HeldOutPoints
    vp: HeldOutPoints


def document_sample(keys: Sequence[str], *, seed: int, most: int) -> IntArray:
    """Return whole documents, at least one, with about `most` points if there are more: (m,) int64, ascending rows.

    Args:
        seed: The classifier's seed; the same points are taken whatever their order.
        most: The number of points.
    """
    if len(keys) <= most:
        return np.arange(len(keys))
    draws = uniform_draws(keys, seed=seed)
    return np.flatnonzero(draws <= max(most / len(keys), draws.min()))


class ScoredSplits:
    """n points of `knn` and of other splits, one after the other, under either score.

    What proposes a certificate is not evidence, so that the score is chosen by it too.

    Attributes:
        logits: (n, C) float32, the network's.
        of_knn: (n,) bool.
        proposing: (n,) bool, as `proposing_rows` gives it; the others are evidence, unless they are of `knn`.
    """

    def __init__(
        self,
        knn: HeldOutPoints | None,
        others: Sequence[HeldOutPoints],
        reliability: ReliabilityModel | None,
        *,
        neighbour_count: int | None,
        seed: int,
        groups: Mapping[str, Sequence[str | None]] | None = None,
    ) -> None:
        """Take in the points.

        Args:
            knn: None if there are none.
            others: `mc`, or `mc` and `vp`.
            reliability: The model of that score; None if only the network's is asked for.
            groups: As in `LabelledCells`; None without any.
        """
        parts = list(others) if knn is None else [knn, *others]
        self.keys = [key for part in parts for key in part.keys]
        self.label = np.concatenate([part.label for part in parts])
        self.logits = np.concatenate([part.seen.network_logits for part in parts])
        self.of_knn = np.repeat([part is knn for part in parts], [len(part.keys) for part in parts])
        self.proposing = proposing_rows(self.keys, self.of_knn, seed=seed)
        self._knn, self._others, self._groups = knn, others, groups or {}
        self._reliability, self._neighbour_count, self._seed = reliability, neighbour_count, seed
        self._under: dict[ScoreKind, LabelledCells] = {}

    def cells(self, kind: ScoreKind) -> LabelledCells:
        """Return all points under a score; that of `knn` is cross-fitted, because it is fitted there."""
        if kind not in self._under:
            score_by = partial(scored_points, kind, self._reliability, neighbour_count=self._neighbour_count)
            scored = [score_by(part.seen.network_logits, part.seen.view) for part in self._others]
            if self._knn is not None:
                scored.insert(0, self._crossfitted(kind, self._knn))
            points = join_points(scored)
            self._under[kind] = LabelledCells(points, self.label, self.keys, self._groups)
        return self._under[kind]

    def choice(self, settings: VennAbersSettings) -> ScoreChoice:
        """Return the score that admits more of the proposing points, as `cross_fit` chooses it."""
        network, reliability = (self.cells(kind).take(self.proposing) for kind in ScoreKind)
        right = network.points.predicted == network.label
        found = cross_fit(network.points, reliability.points, right, network.keys, seed=self._seed, settings=settings)
        return found.choice

    def by_softmax(self, alpha: Decimal) -> BoolArray:
        """Which points the network's softmax at 1 - alpha admits, with a temperature that the proposing points fit."""
        temperature = fit_temperature(self.logits[self.proposing], self.label[self.proposing])
        return scaled_confidence(self.logits, temperature) >= float(1 - alpha)

    def _crossfitted(self, kind: ScoreKind, knn: HeldOutPoints) -> CellPoints:
        return crossfitted_points(
            kind,
            knn.seen.network_logits,
            knn.seen.view,
            knn.label,
            knn.keys,
            seed=self._seed,
            neighbour_count=self._neighbour_count,
        )
