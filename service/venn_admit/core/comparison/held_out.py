"""Held-out data by split, as the network and the KNN see it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.comparison.adaptive import uniform_draws
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
