"""Which classes a point may be of: split conformal prediction on the score 1 - pi, with a threshold for each class.

For points exchangeable with the labelled ones of a class, the set holds that class with probability at least 1 - alpha.
That is over all points of the class: among points that were picked for their logits, such as rejected ones, it may
hold it less often. Source: Vovk (2013), *Conditional validity of inductive conformal predictors*.
"""

from decimal import Decimal

import numpy as np

from venn_admit.core.approximation.knn import nonconformity, softmax
from venn_admit.core.calibrators.settings import check_alpha
from venn_admit.core.comparison.split import conformal_threshold
from venn_admit.core.types import BoolArray, FloatArray, IntArray


def class_thresholds(logits: FloatArray, labels: IntArray, alpha: Decimal) -> FloatArray:
    """Return the threshold of each class, by the labelled points that are of it.

    Returns:
        (C,) float64; inf for a class of which there are too few points to exclude it.

    Examples:
        >>> logits = np.log(np.array([[0.9, 0.1]] * 9 + [[0.2, 0.8]]))
        >>> class_thresholds(logits, np.array([0] * 9 + [1]), Decimal("0.1")).round(3).tolist()
        [0.1, inf]
    """
    check_alpha(alpha)
    scores = nonconformity(logits, labels)
    return np.array([conformal_threshold(scores[labels == number], alpha) for number in range(logits.shape[1])])


def classes_within(logits: FloatArray, thresholds: FloatArray) -> BoolArray:
    """Return the sets { c : 1 - pi^c <= threshold of c }, (n, C) bool; the prediction need not be in its set.

    Args:
        thresholds: (C,) float64; may be inf.

    Examples:
        >>> classes_within(np.log(np.array([[0.5, 0.5], [0.95, 0.05]])), np.array([0.2, 0.6])).tolist()
        [[False, True], [True, False]]
    """
    return np.asarray(1.0 - softmax(logits) <= thresholds)
