"""p0 of calibration points by cross-fitting, and the choice of a score by it.

Source: docs/PROCEDURE.md, section 9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_abers.reliability import fit_reliability, scored_points
from venn_admit.core.checks import check_lengths
from venn_admit.core.documents import document_codes
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import Approximation, BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

FOLD_COUNT = 5


def fold_of(keys: Sequence[str], *, seed: int) -> IntArray:
    """Return the fold of each point, a function of its key and the seed alone: (n,) int64 in [0, FOLD_COUNT).

    Args:
        keys: The document id of each point, or its external id if it has no document; equal keys share a fold.

    Examples:
        >>> fold_of(["review-1", "review-2", "review-1"], seed=0).tolist()
        [3, 0, 3]
    """
    return (hash_keys(keys, seed=seed, purpose="fold") % FOLD_COUNT).astype(np.int64)


def crossfitted_points(
    kind: ScoreKind,
    logits: Float32Array,
    view: Approximation | None,
    label: IntArray,
    keys: Sequence[str],
    *,
    seed: int,
    neighbour_count: int | None,
) -> CellPoints:
    """Return labelled points of `knn` under a score that has not seen their own labels.

    The reliability model is fitted on `knn`, so it scores these points better than others, and would foretell more of
    policies than they keep. Each fold is scored by a model of the other folds.

    Args:
        kind: The kind of score; that of the network sees no label.
    """
    score_by = partial(scored_points, kind, neighbour_count=neighbour_count)
    if kind is ScoreKind.NETWORK:
        return score_by(None, logits, view)
    assert view is not None, "the reliability score needs the KNN's view"
    assert neighbour_count is not None, "the KNN's view comes with K"
    fold = fold_of(keys, seed=seed)
    score = np.empty(len(label))
    for number in np.unique(fold).tolist():
        rows, others = fold == number, fold != number
        model = fit_reliability(logits[others], view.take(others), label[others], neighbour_count=neighbour_count)
        score[rows] = score_by(model, logits[rows], view.take(rows)).score
    return CellPoints(network_prediction(logits), view.match_count, score)


def crossfitted_lower(
    points: CellPoints,
    right: BoolArray,
    fold: IntArray,
    *,
    class_count: int,
    q_bins: tuple[int, ...] = (0,),
    upweight: FloatArray | None = None,
) -> FloatArray:
    """Return p0 of each point, from the points of the other folds: (n,) float64 in [0, 1].

    Args:
        points: n labelled points, usually of `mc`.
        fold: (n,) int64, as `fold_of` gives it.
        upweight: (n,) float64, w of each point, where psi' is taken over the other folds; None for plain bounds.
    """
    check_lengths(points=points.predicted, right=right, fold=fold)
    lower = np.empty(len(right))
    for number in np.unique(fold).tolist():
        rows = fold == number
        others = VennAbersIndex(points.take(~rows), right[~rows], class_count=class_count, q_bins=q_bins)
        weight = None if upweight is None else upweight[rows]
        lower[rows] = others.bounds(points.take(rows), weight).lower
    return lower


@dataclass(frozen=True, slots=True)
class ScoreChoice:
    """What `auto` chose, and on what ground.

    Attributes:
        network_share: The share of the points that the `network` score admits by cross-fitting; NaN without points.
        reliability_share: That of the `reliability` score.
        standard_error: The standard error, over documents, of the difference between the shares; NaN with fewer than
            two documents.
    """

    kind: ScoreKind
    network_share: float
    reliability_share: float
    standard_error: float
    documents: int


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """Cross-fitted p0 of n points under each score, and the choice that follows.

    Attributes:
        fold: (n,) int64.
        lower: (n,) float64 for each kind of score.
        choice: What `auto` takes.
    """

    fold: IntArray
    lower: Mapping[ScoreKind, FloatArray]
    choice: ScoreChoice


def cross_fit(
    network: CellPoints,
    reliability: CellPoints,
    right: BoolArray,
    keys: Sequence[str],
    *,
    seed: int,
    settings: VennAbersSettings,
) -> CrossFit:
    """Cross-fit plain p0 under both scores, and choose one of them by the settings' thresholds.

    Args:
        network: n points of `mc`, or of those that propose a certificate, with the `network` score.
        reliability: The same points with the `reliability` score.
        settings: For the bins of q and the thresholds; their score is ignored.
    """
    fold = fold_of(keys, seed=seed)
    lower, admitted = {}, {}
    for kind, points in ((ScoreKind.NETWORK, network), (ScoreKind.RELIABILITY, reliability)):
        lower[kind] = crossfitted_lower(
            points, right, fold, class_count=len(settings.thresholds), q_bins=settings.q_bins
        )
        admitted[kind] = reaches_threshold(lower[kind], points.predicted, settings.thresholds)
    choice = choose_score(admitted[ScoreKind.NETWORK], admitted[ScoreKind.RELIABILITY], keys)
    return CrossFit(fold=fold, lower=lower, choice=choice)


def choose_score(
    admitted_by_network: BoolArray, admitted_by_reliability: BoolArray, keys: Sequence[str]
) -> ScoreChoice:
    """Choose `network`, unless `reliability` admits a share greater by more than one standard error over documents.

    With D_g the difference in admitted points of document g, n_g its points, n all points and G documents, the
    difference between the shares is S / n with S = sum D_g. Its variance is that of a ratio (Cochran 1977, *Sampling
    Techniques*, section 6.4): G / (G - 1) sum_g (D_g - n_g S / n)^2 / n^2. Both are compared in whole numbers.

    Args:
        admitted_by_network: (n,) bool, whether p0 of `crossfitted_lower` reaches the threshold under this score.
        admitted_by_reliability: (n,) bool, the same by the reliability score.
    """
    count = len(keys)
    if not len(admitted_by_network) == len(admitted_by_reliability) == count:
        raise InvalidInputError(
            f"expected as many verdicts as keys, got {len(admitted_by_network)}, {len(admitted_by_reliability)} and "
            f"{count}; pass the same points"
        )
    document = document_codes(keys)
    size = np.bincount(document)
    documents = len(size)
    gain = np.bincount(document[admitted_by_reliability], minlength=documents) - np.bincount(
        document[admitted_by_network], minlength=documents
    )
    total = int(gain.sum())
    # sum_g (n D_g - n_g S)^2, in Python's integers, which do not overflow
    spread = count**2 * int(gain @ gain) - 2 * count * total * int(gain @ size) + total**2 * int(size @ size)
    better = documents > 1 and total > 0 and (total * count) ** 2 * (documents - 1) > documents * spread
    return ScoreChoice(
        kind=ScoreKind.RELIABILITY if better else ScoreKind.NETWORK,
        network_share=_share(admitted_by_network),
        reliability_share=_share(admitted_by_reliability),
        standard_error=sqrt(documents / (documents - 1) * spread) / count**2 if documents > 1 else float("nan"),
        documents=documents,
    )


def _share(admitted: BoolArray) -> float:
    return int(np.count_nonzero(admitted)) / len(admitted) if len(admitted) else float("nan")
