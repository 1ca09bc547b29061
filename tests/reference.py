"""The procedure point by point, slowly, from docs/PROCEDURE.md: what the vectorised core must agree with.

It shares no code with the core but the records, and takes scores 1 - pi as given, so that equal scores are
equal bits on both sides.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.types import BoolArray, CalibrationPoints, FloatArray, IntArray


@dataclass(frozen=True)
class ReferenceSet:
    """One point's ADMIT set: members, n_c, tau_c and the rank-th smallest score of each class."""

    members: frozenset[int]
    band_size: list[int]
    threshold: list[float]
    starved: bool


def radius(mc: CalibrationPoints, delta: float) -> float:
    """Section 3: omega."""
    right = [
        float(mc.distance[j]) for j in range(len(mc.label)) if mc.match_count[j] > 0 and mc.predicted[j] == mc.label[j]
    ]
    mean = math.fsum(right) / len(right)
    s_hat = math.sqrt(math.fsum((d - mean) ** 2 for d in right) / (len(right) - 1))
    return math.inf if math.isinf(delta) else delta * s_hat


def bin_number(q: int, edges: tuple[int, ...]) -> int:
    """The last bin whose lower edge is not above q."""
    return max(number for number, edge in enumerate(edges) if edge <= q)


def band(points: CalibrationPoints, q: int, d: float, edges: tuple[int, ...], omega: float) -> list[int]:
    """Section 3: rows of the points in B(x_t)."""
    own, counts = bin_number(q, edges), points.match_count.tolist()
    return [
        j
        for j, distance in enumerate(points.distance.tolist())
        if d - omega <= distance <= d + omega and bin_number(counts[j], edges) == own
    ]


def admit_set(
    class_score: FloatArray,
    predicted: int,
    q: int,
    d: float,
    mc: CalibrationPoints,
    settings: CalibratorSettings,
    omega: float,
) -> ReferenceSet:
    """Section 4, for one point. class_score: (C,) 1 - pi^c."""
    rows = band(mc, q, d, settings.q_bins, omega)
    class_count = len(class_score)
    members, band_size, threshold = {predicted}, [], []
    scores_of = defaultdict[int, list[float]](list)
    for j in rows:
        scores_of[int(mc.label[j])].append(float(mc.score[j]))
    for c in range(class_count):
        scores = sorted(scores_of[c])
        rank = math.ceil((len(scores) + 1) * (1 - Fraction(settings.alpha)))
        enough = rank <= len(scores)
        if not enough or class_score[c] <= scores[rank - 1]:
            members.add(c)
        band_size.append(len(scores))
        threshold.append(1 - scores[rank - 1] if enough else -math.inf)
    starved = any(size < settings.kappa for size in band_size)
    if starved:
        members = set(range(class_count))
    return ReferenceSet(frozenset(members), band_size, threshold, starved)


def category(
    vp: CalibrationPoints,
    vp_sets: BoolArray,
    own_set: BoolArray,
    predicted: int,
    q: int,
    d: float,
    edges: tuple[int, ...],
    omega: float,
) -> list[int]:
    """Section 5: rows of T, by equality of whole sets; empty unless the point's own set is a singleton."""
    if own_set.sum() != 1:
        return []
    return [
        j for j in band(vp, q, d, edges, omega) if vp.predicted[j] == predicted and np.array_equal(vp_sets[j], own_set)
    ]


def venn_interval(labels: IntArray, of_class: int, class_count: int, upweight: float) -> tuple[float, float]:
    """Section 5: min and max over assumed labels c of p_c(of_class), for the labels of T."""
    if math.isinf(upweight):
        return 0.0, 1.0
    counted = int((labels == of_class).sum())
    probabilities = [
        (counted + (upweight if c == of_class else 0.0)) / (len(labels) + upweight) for c in range(class_count)
    ]
    return min(probabilities), max(probabilities)


class Bag:
    """Points with the one to decide on at last, which has one of the labels that it may have."""

    def __init__(self, points: CalibrationPoints, scores: FloatArray, under: CalibratorSettings, omega: float) -> None:
        self.points, self.scores, self.under, self.omega = points, scores, under, omega

    def band(self, row: int) -> list[int]:
        points = self.points
        return band(points, int(points.match_count[row]), float(points.distance[row]), self.under.q_bins, self.omega)

    def members(self, row: int) -> set[int]:
        """The set of a point, from the band that it is in itself."""
        found, near = {int(self.points.predicted[row])}, self.band(row)
        for c in range(self.scores.shape[1]):
            of_class = sorted(float(self.scores[one, c]) for one in near if self.points.label[one] == c)
            if len(of_class) < self.under.kappa:
                return set(range(self.scores.shape[1]))
            rank = math.ceil((len(of_class) + 1) * (1 - Fraction(self.under.alpha)))
            if rank > len(of_class) or self.scores[row, c] <= of_class[rank - 1]:
                found.add(c)
        return found

    def labels_of_category(self) -> list[int]:
        """Those of the points of the category, the last one's own among them."""
        last = len(self.scores) - 1
        own = self.members(last)
        return [
            int(self.points.label[one])
            for one in self.band(last)
            if self.points.predicted[one] == self.points.predicted[last] and self.members(one) == own
        ]


def joined_bags(
    points: CalibrationPoints,
    scores: FloatArray,
    one: CalibrationPoints,
    own: FloatArray,
    under: CalibratorSettings,
    omega: float,
) -> list[Bag]:
    """Section 5, undivided: the points joined by one with each label that it may have. scores: (n, C), own: (C,)."""
    found = []
    for label in range(scores.shape[1]):
        columns = {each.name: np.append(getattr(points, each.name), getattr(one, each.name)) for each in fields(points)}
        columns["label"][-1], columns["score"][-1] = label, own[label]
        found.append(Bag(CalibrationPoints(**columns), np.vstack([scores, own]), under, omega))
    return found
