"""Reports to look at: real points of two classes, and made ones of many classes with hostile names."""

from collections.abc import Callable

import pytest

from service.report.dataset import DatasetReport, build_dataset_report
from tests.report.samples import ALPHA, HOSTILE_NAMES, golden_points, made_points


@pytest.fixture(scope="session")
def sentiment() -> DatasetReport:
    """400 real points of two classes."""
    return build_dataset_report("test", ("negative", "positive"), golden_points(slice(400)), 25, ALPHA)


@pytest.fixture(scope="session")
def hostile() -> DatasetReport:
    """Eight classes whose names are markup in one language or another; class c is right in 12 + c of 20."""
    label = [c for c in range(8) for _ in range(20)]
    predicted = [c if i < 12 + c else (c + 1) % 8 for c in range(8) for i in range(20)]
    return build_dataset_report("<i>$set$", HOSTILE_NAMES, made_points(label, predicted, predicted, 8), 5, ALPHA)


@pytest.fixture
def two_class_report() -> Callable[[list[tuple[int, int, int]]], DatasetReport]:
    """A report of counts: (label, admitted as, how many points)."""

    def build(counts: list[tuple[int, int, int]]) -> DatasetReport:
        label = [y for y, _, n in counts for _ in range(n)]
        decision = [said for _, said, n in counts for _ in range(n)]
        points = made_points(label, [max(said, 0) for said in decision], decision, 2)
        return build_dataset_report("made", ("rare", "common"), points, 5, ALPHA)

    return build
