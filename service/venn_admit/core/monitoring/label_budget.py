"""The labels that rejected points need if their band is below kappa (docs/PROCEDURE.md, section 4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.checks import check_lengths
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class Shortfall:
    """The shortfall of rejected points of one bin of q, or of all bins.

    The labels are inf if there is nothing to estimate them from.

    Attributes:
        points: The number of points.
        lacking: (C,) int64, the median over the points of how many more points of mc of each class their band needs to
            hold kappa.
        labels_per_class: (C,) float64, the median of the number of random labels that this takes.
        labels: The median of the number of random labels after which every class holds kappa.
    """

    points: int
    lacking: IntArray
    labels_per_class: FloatArray
    labels: float


@dataclass(frozen=True, slots=True, eq=False)
class LabelBudget:
    """The shortfall of all rejected points, and of those in each bin of q.

    Attributes:
        kappa: The kappa that bands must reach.
        per_bin: The same for each bin that has such points.
        overall: The same of all points.
    """

    kappa: int
    per_bin: dict[int, Shortfall]
    overall: Shortfall


def label_budget(band_size: IntArray, q_bin: IntArray, *, kappa: int, label_count: float) -> LabelBudget:
    """Estimate what rejected points lack, in mc points of each class and in labels of a random sample.

    A point lacks max(0, kappa - n_c) points of class c. So far, one random label in label_count / n_c became a point of
    class c in its band. At that rate it takes lacking * label_count / n_c more labels in expectation, and as many as
    the slowest class takes until all classes are complete. If a band holds no point of a class, the rate is unknown and
    the number is inf. Medians are upper ones: for an even number of points, the larger middle value.

    Args:
        band_size: (n, C) int64, n_c of the points rejected as `band below kappa`, n >= 1.
        q_bin: (n,) int64, the bin of q of each point.
        kappa: The kappa that bands must reach.
        label_count: > 0, the number of random labels so far: the points of mc over the share of labels that goes there.

    Raises:
        InvalidInputError: There are no points, or the arrays differ in length.
    """
    check_lengths(band_size=band_size, q_bin=q_bin)
    if not len(band_size):
        raise InvalidInputError(
            "a label budget needs at least one rejected point, got none; pass points rejected for their band"
        )
    lacking = np.maximum(0, kappa - band_size)  # (n, C)
    per_label = band_size / label_count  # (n, C)
    labels = np.divide(lacking, per_label, out=np.full(lacking.shape, np.inf), where=per_label > 0)

    def shortfall(rows: IntArray) -> Shortfall:
        return Shortfall(
            points=len(rows),
            lacking=_upper_median(lacking[rows]),
            labels_per_class=_upper_median(labels[rows]),
            labels=float(_upper_median(labels[rows].max(axis=1))),
        )

    bins = np.unique(q_bin).tolist()
    return LabelBudget(
        kappa,
        {number: shortfall(np.flatnonzero(q_bin == number)) for number in bins},
        shortfall(np.arange(len(q_bin))),
    )


def _upper_median(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The upper median of each column. It is a value that occurs, and so a number even if the one below is infinite."""
    median: npt.NDArray[Any] = np.partition(values, len(values) // 2, axis=0)[len(values) // 2]
    return median
