"""Decisions from a snapshot and approximations: sections 4 to 6 of docs/PROCEDURE.md in one call."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from venn_admit.core.approximation.localizer import Weigh, category_weight
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex, admit_sets
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex, joined_probabilities
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, select, venn_probabilities
from venn_admit.core.types import (
    AdmitSets,
    Approximation,
    Float32Array,
    FloatArray,
    IntArray,
    Selection,
    VennProbabilities,
)


@dataclass(frozen=True, slots=True, eq=False)
class Localizer:
    """What up-weighting needs.

    Attributes:
        queries: (m, D) float32, the scored points.
        weigh: Returns the weights of categories, which are windows of `VennIndex.order`.
    """

    queries: Float32Array
    weigh: Weigh

    @classmethod
    def over(
        cls, support: Float32Array, eta_loc: float, queries: Float32Array, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> Self:
        """Return a localizer over vectors.

        Args:
            support: (n_vp, D) float32, all of vp in the order of `VennIndex.order`.
            queries: (m, D) float32, the scored points.
        """

        def weigh(vectors: Float32Array, low: IntArray, high: IntArray) -> FloatArray:
            return category_weight(vectors, support, low, high, eta_loc, memory_budget=memory_budget)

        return cls(queries, weigh)


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """The verdict on each of m points, with the evidence that it rests on."""

    sets: AdmitSets
    probabilities: VennProbabilities
    selection: Selection


def decide(
    admit: AdmitIndex,
    venn: VennIndex,
    approximation: Approximation,
    settings: CalibratorSettings,
    *,
    neighbour_count: int,
    require_full_match: bool,
    localizer: Localizer | None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Decisions:
    """Decide on m points. The result of a point does not depend, to the last bit, on the points decided with it.

    Args:
        approximation: The approximation of the points, under the snapshot's parameters.
    """
    predicted, match_count = approximation.predicted, approximation.match_count
    sets = admit.sets(approximation.logits, predicted, match_count, approximation.distance, memory_budget=memory_budget)
    categories = venn.categories(sets.singleton, predicted, match_count, approximation.distance)
    weight = None
    if localizer is not None:
        weight = np.zeros(len(predicted))
        single = np.flatnonzero(sets.singleton)
        step = block_rows(memory_budget, 4 * localizer.queries.shape[1])
        for start in range(0, len(single), step):
            rows = single[start : start + step]
            weight[rows] = localizer.weigh(localizer.queries[rows], categories.low[rows], categories.high[rows])
    probabilities = venn_probabilities(sets.singleton, categories.size, categories.correct, weight)
    return _decisions(
        sets, probabilities, approximation, settings, neighbour_count, require_full_match=require_full_match
    )


def decide_undivided(
    index: UndividedIndex,
    approximation: Approximation,
    settings: CalibratorSettings,
    *,
    neighbour_count: int,
    require_full_match: bool,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Decisions:
    """Decide on m points without a division of the calibration data, each as if it were alone, to the last bit.

    Args:
        index: All points of the snapshot.
        approximation: The approximation of the points, under the snapshot's parameters.
    """
    predicted, match_count = approximation.predicted, approximation.match_count
    evidence = approximation.logits, predicted, match_count, approximation.distance
    sets = index.admit.sets(*evidence, memory_budget=memory_budget)
    probabilities = joined_probabilities(sets.singleton, predicted, index.categories(sets.singleton, *evidence))
    return _decisions(
        sets, probabilities, approximation, settings, neighbour_count, require_full_match=require_full_match
    )


def decide_one(
    approximation: Approximation,
    settings: CalibratorSettings,
    *,
    band_size: IntArray,
    threshold_score: FloatArray,
    category_count: IntArray,
    neighbour_count: int,
    require_full_match: bool,
) -> Decisions:
    """Return what `venn_admit.decide.decide` gives for the one point of `approximation` without weights, bit for bit.

    Args:
        approximation: The approximation of one point.
        category_count: (C,) int64, points of each label in the category that the prediction has as a singleton.
    """
    predicted = approximation.predicted
    sets = admit_sets(
        approximation.logits,
        predicted,
        band_size[np.newaxis],  # (1, C)
        threshold_score[np.newaxis],  # (1, C)
        kappa=settings.kappa,
    )
    size, correct = category_count.sum(keepdims=True), category_count[predicted]
    probabilities = venn_probabilities(sets.singleton, size, correct, None)
    return _decisions(
        sets, probabilities, approximation, settings, neighbour_count, require_full_match=require_full_match
    )


def _decisions(
    sets: AdmitSets,
    probabilities: VennProbabilities,
    approximation: Approximation,
    settings: CalibratorSettings,
    neighbour_count: int,
    *,
    require_full_match: bool,
) -> Decisions:
    """The decisions that sets and probabilities come to."""
    selection = select(
        sets,
        probabilities,
        approximation.predicted,
        approximation.match_count,
        neighbour_count=neighbour_count,
        thresholds=settings.thresholds,
        require_full_match=require_full_match,
    )
    return Decisions(sets, probabilities, selection)
