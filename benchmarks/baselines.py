"""The comparison methods, calibration and sets, against sorting the softmax; the localized one against its products."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np

from benchmarks.data import draw_vectors, draw_view, generator
from benchmarks.measure import Measurement, Work, compare
from venn_admit.core.approximation.distance_tiles import QUERY_TILE, SUPPORT_TILE
from venn_admit.core.approximation.knn import nonconformity, softmax
from venn_admit.core.comparison.adaptive import AdaptiveRule, adaptive_sets, label_scores
from venn_admit.core.comparison.adaptive_tuning import tuned_rules
from venn_admit.core.comparison.confidence import fit_temperature
from venn_admit.core.comparison.localized import local_thresholds
from venn_admit.core.comparison.split import conformal_threshold, sets_within
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray

_ALPHA = Decimal("0.1")
_CLASS_COUNT = 50
_CALIBRATING = 50_000
_SCORED = 100_000
_DIMENSION = 384
_ETA_LOC = 5.0


def measure(large: bool) -> Iterator[Measurement]:
    case = _Case.draw()
    # The points that a method ranks: those it is calibrated on, and those it gives sets.
    logits = np.concatenate([case.knn_logits, case.scored])
    pi = softmax(logits)
    size = f"{_SCORED:,} by {_CALIBRATING:,}, C={_CLASS_COUNT}"

    def beside_sort(what: str, work: Work) -> Measurement:
        return compare(what, size, "np.sort of both softmax", work, lambda: np.sort(pi, axis=1), turns=7)

    yield beside_sort("the softmax itself", lambda: softmax(logits))
    yield beside_sort("Conf_BASE", case.conf_base)
    yield beside_sort("APS", case.aps)
    yield beside_sort("RAPS, both lambdas tuned", case.raps)
    yield beside_sort("temperature", lambda: fit_temperature(case.logits, case.label))

    count = _SCORED if large else 640
    vectors = draw_vectors(count + _CALIBRATING, _DIMENSION)
    queries, support = vectors[:count], vectors[count:]
    for dtype in (np.float32, np.float64):
        yield compare(
            "LocalConf_BASE, thresholds",
            f"{count:,} by {_CALIBRATING:,}, D={_DIMENSION}",
            f"{np.dtype(dtype)} products",
            lambda: local_thresholds(queries, support, case.nonconformity, alpha=_ALPHA, eta_loc=_ETA_LOC),
            partial(_products, queries, support, dtype),
            turns=1 if large else 3,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """Labelled points to calibrate on, and points to score; the network's logits are the KNN's in float32."""

    knn_logits: FloatArray
    logits: Float32Array
    label: IntArray
    draws: FloatArray
    tuning: BoolArray
    nonconformity: FloatArray
    temperature: float
    scored: FloatArray
    scored_logits: Float32Array
    scored_draws: FloatArray

    @classmethod
    def draw(cls) -> "_Case":
        rng = generator()
        view, label = draw_view(rng, _CALIBRATING, _CLASS_COUNT, neighbour_count=25)
        scored, _ = draw_view(rng, _SCORED, _CLASS_COUNT, neighbour_count=25)
        logits = view.logits.astype(np.float32)
        return cls(
            knn_logits=view.logits,
            logits=logits,
            label=label,
            draws=rng.random(_CALIBRATING),
            tuning=rng.random(_CALIBRATING) < 0.3,
            nonconformity=nonconformity(view.logits, label),
            temperature=fit_temperature(logits, label),
            scored=scored.logits,
            scored_logits=scored.logits.astype(np.float32),
            scored_draws=rng.random(_SCORED),
        )

    def conf_base(self) -> BoolArray:
        threshold = conformal_threshold(nonconformity(self.knn_logits, self.label), _ALPHA)
        return sets_within(self.scored, threshold)[1]

    def aps(self) -> BoolArray:
        scores = label_scores(self.logits, self.label, self.draws, self.temperature)
        return self.sets(AdaptiveRule(1, 0.0, conformal_threshold(scores.score(1, 0.0), _ALPHA)))

    def raps(self) -> BoolArray:
        scores = label_scores(self.logits, self.label, self.draws, self.temperature)
        rules = tuned_rules(self.logits, self.draws, scores, self.tuning, temperature=self.temperature, alpha=_ALPHA)
        return self.sets(rules.size)

    def sets(self, rule: AdaptiveRule) -> BoolArray:
        return adaptive_sets(self.scored_logits, self.scored_draws, self.temperature, rule)


def _products(queries: Float32Array, support: Float32Array, dtype: type[np.float32] | type[np.float64]) -> None:
    queries, support = queries.astype(dtype), support.astype(dtype)
    for start in range(0, len(support), SUPPORT_TILE):
        columns = support[start : start + SUPPORT_TILE].T
        for row in range(0, len(queries), QUERY_TILE):
            np.matmul(queries[row : row + QUERY_TILE], columns)
