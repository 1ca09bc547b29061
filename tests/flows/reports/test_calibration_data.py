"""An evaluation measures the points that its calibration rests on too, as loops over single points find them."""

import math
from typing import Any

import numpy as np
import pytest

from tests.running import Bench, Golden
from venn_admit.core.calibrators.venn_abers.crossfit import fold_of
from venn_admit.files.sources import FileSource
from venn_admit.flows.reports.evaluate import compare_methods, request_evaluation_of_source
from venn_admit.report.evaluation.payload import report_payload

GOLDEN = Golden("edge")
K, C, ALPHA = int(GOLDEN["K"]), 3, float(GOLDEN["alpha"])
PARTS = ("mc", "vp")


@pytest.fixture
def measured(edge: Bench) -> dict[str, Any]:
    request = request_evaluation_of_source(
        edge.workspace(), "edge", FileSource(edge.folder / "score.npz"), calibration_id=None
    )
    assert request.job_id is not None
    edge.run(request.job_id)
    found: dict[str, Any] = report_payload(compare_methods(edge.workspace(), request, "score"))["calibration_data"]
    return found


def f_half(label: list[int], predicted: list[int]) -> float:
    """The mean over the classes of 1.25 P R / (0.25 P + R)."""
    each = []
    for c in range(C):
        hits = sum(y == said == c for y, said in zip(label, predicted, strict=True))
        if not hits:
            each.append(0.0)
            continue
        precision, recall = hits / predicted.count(c), hits / label.count(c)
        each.append(1.25 * precision * recall / (0.25 * precision + recall))
    return sum(each) / C


def localized() -> list[int]:
    """What the localizer says of mc by all of vp, and of vp by the points of vp in other folds."""
    names = [f"vp-{row}" for row in range(len(GOLDEN["vp_y"]))]
    fold = fold_of(names, seed=0)
    vectors, logits = GOLDEN["vp_r"].astype(np.float64), GOLDEN["vp_logits"]
    said = []
    for part in PARTS:
        for row, vector in enumerate(GOLDEN[f"{part}_r"].astype(np.float64)):
            others = np.flatnonzero([part == "mc" or one != fold[row] for one in fold])
            distances = np.sqrt(((vectors[others] - vector) ** 2).sum(axis=1))
            weights = np.exp((distances.min() - distances) / float(GOLDEN["eta_loc"]))
            said.append(int((weights @ logits[others]).argmax()))
    return said


def column(name: str) -> list[Any]:
    return [value for part in PARTS for value in GOLDEN[f"{part}_{name}"].tolist()]


def test_accuracy_and_f_half(measured: dict[str, Any]) -> None:
    label = column("y")
    predictions = {
        "network": [row.index(max(row)) for row in column("f")],
        "KNN": column("predicted"),
        "localizer": localized(),
    }
    assert measured["points"] == len(label) == 1000
    assert list(measured["accuracy"]) == list(predictions)
    for name, predicted in predictions.items():
        found = measured["accuracy"][name]
        right = [y == said for y, said in zip(label, predicted, strict=True)]
        assert found["accuracy"] == sum(right) / len(right)
        assert found["f_half_macro"] == pytest.approx(f_half(label, predicted), rel=1e-12)
        for c in range(C):
            of_class = [one for one, y in zip(right, label, strict=True) if y == c]
            assert found["per_true_class"][f"class {c}"] == sum(of_class) / len(of_class)


def quantile(values: list[float], share: float) -> float:
    """The linearly interpolated quantile."""
    ordered, place = sorted(values), share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def partitions() -> dict[tuple[str, str, int | None], tuple[int, int, float | None]]:
    """Points, right ones and threshold by q, d and true class (None: over all)."""
    label, q, d = column("y"), column("q"), column("d")
    median = quantile(d, 0.5)
    held: dict[tuple[str, str, int | None], list[tuple[bool, float]]] = {}
    for y, said, logits, matches, distance in zip(label, column("predicted"), column("logits"), q, d, strict=True):
        pi = math.exp(logits[y]) / sum(math.exp(logit) for logit in logits)
        groups = ["any q", *(["q = 0"] if matches == 0 else ["q = K"] if matches == K else [])]
        for group in groups:
            for side in ("any d", "d < median" if distance < median else "d >= median"):
                for c in (None, y):
                    held.setdefault((group, side, c), []).append((said == y, pi))
    return {
        key: (len(points), sum(right for right, _ in points), quantile([pi for _, pi in points], ALPHA))
        for key, points in held.items()
    }


def test_partitions(measured: dict[str, Any]) -> None:
    expected = partitions()
    assert measured["median_d"] == pytest.approx(quantile(column("d"), 0.5), rel=1e-9)
    found = {}
    for row in measured["partitions"]:
        for c, cell in [(None, row["all"]), *((c, row["per_true_class"][f"class {c}"]) for c in range(C))]:
            found[row["q"], row["d"], c] = cell
    assert len(found) == 9 * (C + 1)
    for key, cell in found.items():
        count, right, threshold = expected.get(key, (0, 0, None))
        assert (cell["n"], cell["N"]) == (count, 1000)
        if count:
            assert cell["share_correct"] == right / count
            assert cell["threshold"] == pytest.approx(threshold, rel=1e-9)


def test_the_view_has_the_same_partitions(edge: Bench) -> None:
    rows = edge.rows(
        "SELECT q, d, class AS label, points, share, correct, accuracy, threshold FROM report.partition_summary_v1 "
        "WHERE classifier = 'edge' AND source = 'calibration'"
    )
    expected = partitions()
    assert {(row.q, row.d, row.label) for row in rows} == set(expected)
    for row in rows:
        count, right, threshold = expected[row.q, row.d, row.label]
        assert (row.points, row.correct, row.share) == (count, right, count / 1000)
        assert row.accuracy == pytest.approx(right / count, rel=1e-15)
        assert row.threshold == pytest.approx(threshold, rel=1e-9)


def test_the_view_has_the_same_accuracy(edge: Bench, measured: dict[str, Any]) -> None:
    rows = edge.rows("SELECT * FROM report.point_accuracy_v1 WHERE classifier = 'edge'")
    found = {(row.predictor, row.class_name): row for row in rows}
    names = [f"class {c}" for c in range(C)]
    assert found.keys() == {(who, name) for who in ("network", "KNN") for name in (*names, None)}
    assert len(rows) == len(found)
    for who in ("network", "KNN"):
        expected, tallies = measured["accuracy"][who], measured["accuracy"][who]["tallies"]
        everything = found[who, None]
        assert everything.f_half == pytest.approx(expected["f_half_macro"], rel=1e-12)
        assert everything.accuracy == expected["accuracy"] == everything.correct / everything.points
        assert everything.points == everything.predictions == tallies["all"]["n"]
        for name in names:
            row = found[who, name]
            assert row.f_half == pytest.approx(expected["f_half"][name], rel=1e-12)
            assert row.accuracy == expected["per_true_class"][name]
            assert row.points == tallies["per_true_class"][name]["n"]
            assert row.predictions == tallies["per_predicted_class"][name]["n"]
            assert row.correct == round(row.accuracy * row.points)


def test_the_view_has_the_network_alone_under_venn_abers(edge: Bench) -> None:
    edge.calibrate_abers("edge", score="network")
    query = "SELECT predictor, method, points FROM report.point_accuracy_v1 WHERE calibration = 2 AND class IS NULL"
    (row,) = edge.rows(query)
    assert (row.predictor, row.method, row.points) == ("network", "venn-abers", len(GOLDEN["mc_y"]))
