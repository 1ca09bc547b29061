"""How many labels the rejected points lack whose band is below kappa (docs/PROCEDURE.md, section 4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from service.core.checks import check_lengths
from service.core.types import FloatArray, IntArray
from service.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class Shortfall:
    """Rejected points of one bin of q, or of all.

    points: how many. lacking: (C,) int64, median over the points of how many more points of mc of each class their
    band needs to hold kappa. labels_per_class: (C,) float64, median of the random labels that takes.
    labels: median of the random labels after which every class holds kappa. inf where there is none to tell by.
    """

    points: int
    lacking: IntArray
    labels_per_class: FloatArray
    labels: float


@dataclass(frozen=True, slots=True, eq=False)
class LabelBudget:
    """kappa, the shortfall of the points of each bin of q that has any, by bin, and that of all points."""

    kappa: int
    per_bin: dict[int, Shortfall]
    overall: Shortfall


def label_budget(band_size: IntArray, q_bin: IntArray, *, kappa: int, label_count: float) -> LabelBudget:
    """What rejected points lack, in mc points of each class and in labels of a random sample.

    band_size: (n, C) int64, n_c of the points rejected as `band below kappa`, n >= 1. q_bin: (n,) int64.
    label_count: > 0, random labels that came so far: the points of mc over the share of labels that goes there.

    A point lacks max(0, kappa - n_c) points of class c. So far one random label in label_count / n_c became a point
    of class c in its band; at that rate it takes lacking * label_count / n_c more of them, in expectation, and
    as many as the slowest class takes until all classes are there. Where a band holds none of a class the rate is
    unknown and the number is inf. Medians are upper ones: of an even number of points the larger middle value.
    InvalidInputError for no points or arrays of different length.
    """
    check_lengths(band_size=band_size, q_bin=q_bin)
    if not len(band_size):
        raise InvalidInputError("a label budget needs at least one rejected point, got none")
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
    """Of each column; a value that occurs, so that it is a number where the one below is infinite."""
    median: npt.NDArray[Any] = np.partition(values, len(values) // 2, axis=0)[len(values) // 2]
    return median
