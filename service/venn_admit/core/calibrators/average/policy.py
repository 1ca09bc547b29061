"""The policy of the average promise, by conformal selection, and its form for storage and export.

Conformal selection admits the points of a batch so that few of them are wrong on average. Source: Jin & Candes (2023),
*Selection by prediction with conformal p-values*, JMLR 24, with the procedure of Benjamini & Hochberg (1995). In its
functions all points are of one predicted class, and the greater score is the one more likely to be right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from venn_admit.core.calibrators.certified.policies import Policy, without_threshold
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.documents import document_codes
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


def wrong_from(wrong_score: FloatArray, score: FloatArray) -> IntArray:
    """Return how many wrong calibration points score at least as high as each of m points, (m,) int64 in [0, w].

    With n calibration points, wrong or not, the conformal p-value of a point is (1 + this) / (n + 1).

    Args:
        score: (m,) float64.

    Examples:
        >>> wrong_from(np.array([0.2, 0.7]), np.array([0.9, 0.7, 0.1])).tolist()
        [0, 1, 2]
    """
    return len(wrong_score) - np.searchsorted(np.sort(wrong_score), score, side="left")


def selection_threshold(
    wrong_score: FloatArray, count: int, batch_score: FloatArray, alpha: Decimal, *, further: bool
) -> float | None:
    """Return the least score that conformal selection admits of a batch; None if it admits nothing.

    Benjamini & Hochberg's procedure at alpha admits the points from the least score t of the batch at which
    (1 + wrong_from(t)) / (count + 1) <= alpha * (points of the batch from t) / (points of the batch). Whole numbers are
    compared, points of one score stay together, and no order matters.

    Args:
        count: n >= w, the number of calibration points, wrong or not.
        batch_score: (m,) float64, the scores of the batch.
        further: Whether a point that is not there yet belongs to the batch. If it is admitted it scores at least t, so
            that both counts of the batch have one more.

    Examples:
        >>> scores = np.linspace(0, 1, 101)
        >>> selection_threshold(scores[:20], 101, scores, Decimal("0.1"), further=False)
        0.13
    """
    if not len(batch_score):
        return None
    # The number of points from each score of the batch, equal scores together.
    scores, points = np.unique(batch_score, return_counts=True)
    from_score = np.cumsum(points[::-1])[::-1] + further
    level, parts = alpha.as_integer_ratio()
    # Python's integers, which do not overflow
    wrong = (1 + wrong_from(wrong_score, scores)).astype(object) * ((len(batch_score) + further) * parts)
    passed = np.flatnonzero(wrong <= from_score.astype(object) * ((count + 1) * level))
    return float(scores[passed[0]]) if passed.size else None


@dataclass(frozen=True, slots=True)
class ClassSelection:
    """What the threshold of a predicted class rests on; of a document of several points, one counts.

    Attributes:
        labels: n, the number of calibration points.
        wrong: How many of them are wrong.
        batch: The number of points of the batch: the calibration points, and recent traffic.
        threshold: The least score that admits; None is never.
        admitted: How many points of the batch are admitted.
        admitted_wrong: How many of the wrong calibration points are admitted.
    """

    labels: int
    wrong: int
    batch: int
    threshold: float | None
    admitted: int
    admitted_wrong: int


@dataclass(frozen=True, slots=True)
class AveragePolicy:
    """The thresholds of the average promise, and what they rest on.

    Attributes:
        documents: The number of documents of calibration points.
        points: The number of points in them.
        traffic: The number of points of recent traffic in the batch.
        admitted: How many of the calibration points are admitted.
        classes: (C,), one for each predicted class.
        uncertified: As in `Policy`.
    """

    alpha: Decimal
    documents: int
    points: int
    traffic: int
    admitted: int
    classes: tuple[ClassSelection, ...]
    uncertified: tuple[int, ...] = ()

    @property
    def policy(self) -> Policy:
        """The thresholds, on the score."""
        return Policy(tuple(one.threshold for one in self.classes), uncertified=self.uncertified)

    @property
    def share(self) -> float:
        """The share of the calibration points that is admitted."""
        return self.admitted / self.points

    @property
    def labels_needed(self) -> int:
        """The least number of labels with which a class can have a threshold: below it, no p-value reaches alpha."""
        level, parts = self.alpha.as_integer_ratio()
        return -(-parts // level) - 1


@dataclass(frozen=True, slots=True, eq=False)
class UnlabelledCells:
    """Recent points without their labels.

    Attributes:
        points: n points as Venn-Abers sees them, under the snapshot's score.
    """

    points: CellPoints
    keys: Sequence[str]


NO_TRAFFIC = UnlabelledCells(CellPoints(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)), [])


def select_on_average(
    calibration: LabelledCells, traffic: UnlabelledCells, *, class_count: int, alpha: Decimal
) -> AveragePolicy:
    """Return the threshold of each predicted class by conformal selection. The order of points does not matter.

    The batch of a point that is to be decided on is itself, the calibration points and recent traffic, of its predicted
    class. Calibration points may stand in the batch, because the batch as a whole stays as it is if a wrong point
    changes its place with a wrong calibration point, on which the proof of Jin & Candes (2023) rests.

    Args:
        calibration: At least one labelled point. Their scores were fixed without them.
        traffic: Recent points, none of them among the calibration points; there may be none.
    """
    points = calibration.points
    right = points.predicted == calibration.label
    counted = one_of_each_document(points, right, calibration.keys)
    recent = traffic.points.take(
        one_of_each_document(traffic.points, np.ones(len(traffic.keys), dtype=np.bool_), traffic.keys)
    )
    classes = tuple(
        _of_class(
            points.score[counted & (points.predicted == number)],
            right[counted & (points.predicted == number)],
            recent.score[recent.predicted == number],
            alpha,
        )
        for number in range(class_count)
    )
    least = np.array([np.inf if one.threshold is None else one.threshold for one in classes])
    return AveragePolicy(
        alpha=alpha,
        documents=len(set(calibration.keys)),
        points=len(right),
        traffic=len(traffic.keys),
        admitted=int((points.score >= least[points.predicted]).sum()),
        classes=classes,
        uncertified=without_threshold([one.threshold for one in classes]),
    )


def _of_class(score: FloatArray, right: BoolArray, recent: FloatArray, alpha: Decimal) -> ClassSelection:
    batch, wrong = np.concatenate([score, recent]), score[~right]
    threshold = selection_threshold(wrong, len(right), batch, alpha, further=True)
    return ClassSelection(
        labels=len(right),
        wrong=len(wrong),
        batch=len(batch),
        threshold=threshold,
        admitted=0 if threshold is None else int((batch >= threshold).sum()),
        admitted_wrong=0 if threshold is None else int(wrong_from(wrong, np.array([threshold]))[0]),
    )


def one_of_each_document(points: CellPoints, right: BoolArray, keys: Sequence[str]) -> BoolArray:
    """Return which of n points count: one of each document and predicted class, drawn by a hash of its score.

    Points of a document are not exchangeable with those of others, but the document's points that are drawn without
    their labels are. If points of a document and class have the same score, a wrong one counts.

    Returns:
        (n,) bool, all true if no two points share a document.
    """
    if len(set(keys)) == len(keys):
        return np.ones(len(keys), dtype=np.bool_)
    document = document_codes(keys)
    order = np.lexsort((right, _scattered(points.score.view(np.uint64)), points.predicted, document))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (np.diff(document[order]) != 0) | (np.diff(points.predicted[order]) != 0)
    counted = np.zeros(len(order), dtype=np.bool_)
    counted[order[first]] = True
    return counted


def _scattered(bits: np.ndarray[Any, np.dtype[np.uint64]]) -> IntArray:
    """Numbers that look random and are the same for the same bits; by the finalizer of splitmix64 (Steele et al. 2014).

    With bits of a score in [0, 1].
    """
    mixed = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def to_document(found: AveragePolicy) -> dict[str, Any]:
    """Return a policy as values that JSON can hold; a threshold of null is never."""
    return {"promise": str(AskedPromise.AVERAGE), **asdict(found), "alpha": str(found.alpha)} | {
        "classes": [asdict(one) for one in found.classes]
    }


def from_document(document: Mapping[str, Any]) -> AveragePolicy:
    """Return the policy that `to_document` made a document of.

    Raises:
        InvalidInputError: A field is absent or unknown, or has a value that no policy has.
    """
    try:
        classes = tuple(ClassSelection(**one) for one in document["classes"])
        said = {name: value for name, value in document.items() if name != "promise"}
        uncertified = tuple(document.get("uncertified", ()))
        return AveragePolicy(
            **{**said, "alpha": Decimal(document["alpha"]), "classes": classes, "uncertified": uncertified}
        )
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"expected the document of an average promise, got one that fails at {error!r}; recalibrate to write "
            "it again"
        ) from error
