"""The weight of a scored point in its own category."""

import math

import numpy as np
import pytest

from venn_admit.core.calibrators.upweights import upweights
from venn_admit.errors import InvalidInputError


def test_rounding_and_empty_categories() -> None:
    assert upweights(np.array([1.0, 0.5, 0.0, 5e-324, 1 + 1e-9])).tolist() == [1.0, 2.0, math.inf, math.inf, 1.0]


@pytest.mark.parametrize("weight", [math.nan, -1e-9, 1.1])
def test_weights_outside_their_range_are_refused(weight: float) -> None:
    with pytest.raises(InvalidInputError, match=r"point 1: the weight of a category must be in \[0, 1\]; got"):
        upweights(np.array([0.5, weight]))
