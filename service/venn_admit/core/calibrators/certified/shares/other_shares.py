"""What a policy does in traffic with any class shares: bounds that hold for all shares at once.

Under label shift, let a_cy be how often a point of class y is admitted as c. In traffic with the shares q, the part of
what is admitted as c that is wrong is E / (E + q_c a_cc), with E the sum of q_y a_cy over the other classes y. It grows
with each a_cy and falls with a_cc, so that upper bounds of the former and lower ones of the latter bound it for
every q.

The thresholds were chosen by the same labels. A bound by the number of points admitted must therefore hold at every
threshold. If it fails at some threshold that admits k of n points, it fails at the threshold at which the true rate
reaches the bound for k, which is fixed. So the exact bound for each k from 0 to n - 1 has an equal part of the level;
nothing can fail for n.

Source: Clopper & Pearson (1934), for each k; docs/explanation/certificate.md for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certified.shares.bounds import least_probabilities
from venn_admit.core.calibrators.certified.shares.mixes import confusion_counts
from venn_admit.core.calibrators.class_shares import check_share_count
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class UnderShares:
    """What a policy does in traffic with some class shares.

    Attributes:
        shares: (C,), one for each class.
        admitted: The share of traffic that is admitted, as estimated.
        wrong: (C,) float64, the share wrong of what is admitted as each class, as estimated; NaN for a class of
            which none is.
        most_wrong: (C,) float64, its upper bound; NaN for such a class.
    """

    shares: tuple[Decimal, ...]
    admitted: float
    wrong: FloatArray
    most_wrong: FloatArray


def under_shares(
    label: IntArray,
    predicted: IntArray,
    admitted: BoolArray,
    shares: Sequence[tuple[Decimal, ...]],
    *,
    class_count: int,
    level: float,
) -> list[UnderShares]:
    """Return what thresholds of predicted classes on a score do under each of some class shares.

    All bounds, of every class and under all shares there are, hold together with a probability of at least 1 - level,
    however the thresholds were chosen by these points, if the points are independent, the score does not rest on
    their labels, and points of each class in traffic are like these.

    Args:
        label: (n,) int64, those of independent random points, some of each class.
        predicted: (n,) int64.
        admitted: (n,) bool, by the thresholds.
        shares: (C,) each, in [0, 1], with a sum of 1.

    Raises:
        InvalidInputError: Shares are none, or a class has no label.
    """
    for one in shares:
        _check_shares(one, class_count)
    of_class = np.bincount(label, minlength=class_count)
    if not of_class.all():
        raise InvalidInputError(
            f"class_shares: expected labels of every class, got none of class {int(np.argmin(of_class))}, so that "
            "nothing is known of what would be admitted of it; label some"
        )
    count = confusion_counts(predicted[admitted], label[admitted], class_count)
    rate = count / of_class  # by predicted and by true class
    bound = np.empty(rate.shape)
    for y, n in enumerate(of_class.tolist()):
        trials, each = np.full(class_count, n), level / (class_count**2 * n)
        bound[:, y] = 1 - least_probabilities(n - count[:, y], trials, each)
        bound[y, y] = least_probabilities(count[y, y : y + 1], trials[:1], each)[0]
    some = count.any(axis=1)
    found = []
    for one in shares:
        q = np.array([float(share) for share in one])
        parts = _wrong(rate, q), _wrong(bound, q)
        wrong, most_wrong = (np.where(some, part, np.nan) for part in parts)
        found.append(UnderShares(one, float((rate @ q).sum()), wrong, most_wrong))
    return found


def _wrong(rate: FloatArray, q: FloatArray) -> FloatArray:
    """The share wrong of each predicted class, (C,), NaN if none is admitted; rate: (C, C), by predicted and true."""
    total = rate @ q
    wrong: FloatArray = np.divide(total - np.diag(rate) * q, total, out=np.full(len(q), np.nan), where=total > 0)
    return wrong


def _check_shares(shares: tuple[Decimal, ...], class_count: int) -> None:
    check_share_count(shares, class_count)
    if not all(share.is_finite() and 0 <= share <= 1 for share in shares) or sum(shares) != 1:
        raise InvalidInputError(
            "class_shares: expected shares from 0 to 1 that sum to 1 exactly, got "
            f"{', '.join(f'{share}' for share in shares)}"
        )
