"""Reports to look at: real points of two classes, and made ones of many classes with hostile names."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.report.samples import (
    ALPHA,
    HOSTILE_NAMES,
    PARAMETERS,
    SCRIPTS,
    abers_points,
    bare_points,
    calibration_points,
    compared_points,
    golden_points,
    made_points,
    selective_points,
)
from venn_admit.core.documents import Documents
from venn_admit.core.types import MethodSets
from venn_admit.report.evaluation.dataset import DatasetReport, build_dataset_report


@pytest.fixture(scope="session")
def sentiment() -> DatasetReport:
    """400 real points of two classes."""
    return build_dataset_report("test", ("negative", "positive"), golden_points(slice(400)), 25, ALPHA)


@pytest.fixture(scope="session")
def compared() -> DatasetReport:
    """500 real points, with the comparison methods."""
    points = compared_points(slice(500))
    return build_dataset_report("test", ("negative", "positive"), points, 25, ALPHA, parameters=PARAMETERS, left_out=12)


@pytest.fixture(scope="session")
def selective() -> DatasetReport:
    """The same points, and methods that admit or reject, one of them nothing; other points calibrate."""
    points = replace(selective_points(slice(500)), calibration_data=calibration_points(slice(100, 300)))
    return build_dataset_report("test", ("negative", "positive"), points, 25, ALPHA, parameters=PARAMETERS)


@pytest.fixture(scope="session")
def by_abers() -> DatasetReport:
    """The same points, evaluated for a calibration by Venn-Abers."""
    points = abers_points(slice(500))
    words = (*PARAMETERS, ("Venn-ADMIT", "left out: no band holds kappa = 1,000 points of each class in mc"))
    return build_dataset_report("test", ("negative", "positive"), points, 25, ALPHA, parameters=words)


@pytest.fixture(scope="session")
def logits_only() -> DatasetReport:
    """The same points as if their classifier had logits only."""
    return build_dataset_report("test", ("negative", "positive"), bare_points(slice(500)), None, ALPHA)


@pytest.fixture(scope="session")
def of_documents() -> DatasetReport:
    """The same points as if five of them made a document."""
    points = compared_points(slice(500), Documents(np.arange(500) // 5, 100))
    return build_dataset_report("test", ("negative", "positive"), points, 25, ALPHA, parameters=PARAMETERS)


@pytest.fixture(scope="session")
def of_few_documents() -> DatasetReport:
    """90 points of two classes, all right and all admitted, of three documents."""
    label = [0, 1] * 45
    points = replace(made_points(label, label, label, 2), documents=Documents(np.arange(90) // 30, 3))
    return build_dataset_report("few", ("a", "b"), points, 5, ALPHA)


@pytest.fixture(scope="session")
def hostile() -> DatasetReport:
    """Eight classes whose names are markup in one language or another; class c is right in 12 + c of 20."""
    label = [c for c in range(8) for _ in range(20)]
    predicted = [c if i < 12 + c else (c + 1) % 8 for c in range(8) for i in range(20)]
    points = made_points(label, predicted, predicted, 8)
    parameters = (("<b>$x", "[red]1 & $2"),)
    return build_dataset_report("<i>$set$", HOSTILE_NAMES, points, 5, ALPHA, parameters=parameters)


@pytest.fixture(scope="session")
def ten_classes() -> DatasetReport:
    """Ten classes of 30 points, and a method whose sets have every size."""
    label = [c for c in range(10) for _ in range(30)]
    points = made_points(label, label, label, 10)
    size = np.arange(300) % 10
    after = (np.arange(10) - np.array(label)[:, None]) % 10  # (n, C)
    sets = MethodSets("of every size", points.knn.predicted, after <= size[:, None])
    names = tuple(f"class {c}" for c in range(10))
    return build_dataset_report("ten", names, replace(points, comparisons=(sets,)), 5, ALPHA)


@pytest.fixture(scope="session")
def many_scripts() -> DatasetReport:
    """Five classes with names in Chinese and Arabic, an emoji, and one too long for any column."""
    label = [c for c in range(5) for _ in range(32)]
    predicted = [c if i >= c else (c + 1) % 5 for c in range(5) for i in range(32)]
    points = made_points(label, predicted, predicted, 5)
    return build_dataset_report("评价", SCRIPTS, points, 5, ALPHA)


@pytest.fixture
def two_class_report() -> Callable[[list[tuple[int, int, int]]], DatasetReport]:
    """A report of counts: (label, admitted as, how many points)."""

    def build(counts: list[tuple[int, int, int]]) -> DatasetReport:
        label = [y for y, _, n in counts for _ in range(n)]
        decision = [said for _, said, n in counts for _ in range(n)]
        points = made_points(label, [max(said, 0) for said in decision], decision, 2)
        return build_dataset_report("made", ("rare", "common"), points, 5, ALPHA)

    return build
