"""The views of partitions count what the core and plain NumPy count: real data, and three classes with documents."""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.flows import logits
from tests.running import EXAMPLES, Bench, Golden
from tests.templates import CopyOf, Filled, reviews_of
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.monitoring.bands import admitted_of_vp
from venn_admit.core.monitoring.partitions import calibration_partitions
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.flows.reports.evaluate import compare_methods, request_evaluation_of_decisions
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.calibrations.calibrations import Calibration, SnapshotPoints
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers

PARTITIONS = "SELECT * FROM report.partition_v2 WHERE calibration = :calibration"
SUMMARY = "SELECT * FROM report.partition_summary_v1 WHERE calibration = :calibration AND source = :source"
DECISIONS = """
SELECT decision.*, exemplar.label, abers.score
FROM decision
INNER JOIN exemplar ON exemplar_id = exemplar.id
LEFT JOIN abers_evidence AS abers ON decision_id = decision.id
WHERE calibration_id = :calibration
ORDER BY decision.id
"""


def snapshots(bench: Bench, name: str, method: str) -> list[tuple[Calibration, SnapshotPoints, SnapshotPoints]]:
    query = "SELECT calibration FROM report.calibration_v2 WHERE classifier = :name AND method = :method"
    with connect(bench.engine) as connection:
        of = classifiers.by_name(connection, name)
        found = []
        for row in bench.rows(query, name=name, method=method):
            calibration = calibrations.by_id(connection, of, row.calibration)
            mc, vp = (calibrations.read_points(connection, calibration, split) for split in (Split.MC, Split.VP))
            found.append((calibration, mc, vp))
        return found


def class_count(bench: Bench, name: str) -> int:
    return int(bench.value("SELECT cardinality(class_names) FROM classifier WHERE name = :name", name=name))


def tally(rows: list[Any], column: str, *by: str) -> Counter[tuple[Any, ...]]:
    """The sums of a column of a view, without zeros, since a partition without points has no row."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        found[tuple(getattr(row, name) for name in by)] += getattr(row, column) or 0
    return +found


def occupied(counts: IntArray) -> Counter[tuple[Any, ...]]:
    """Counts by bin, quartile (from 1) and what else an array of counts has as axes."""
    cells = np.argwhere(counts > 0)
    return Counter({(place[0], place[1] + 1, *place[2:]): int(counts[tuple(place)]) for place in cells.tolist()})


def test_partitions_of_bands(classifier: tuple[Bench, str]) -> None:
    bench, name = classifier
    classes = class_count(bench, name)
    found = snapshots(bench, name, "venn-admit")
    for calibration, mc, vp in found:
        settings, omega = calibration.settings, calibration.radius.omega
        expected = calibration_partitions(
            mc.points, vp.points, vp.singleton, class_count=classes, settings=settings, omega=omega
        )
        rows = bench.rows(PARTITIONS, calibration=calibration.id)
        of_mc, of_vp = ([row for row in rows if row.split == split] for split in ("mc", "vp"))
        assert tally(of_mc, "points", "bin", "d_quartile", "label") == occupied(expected.mc_count)
        assert tally(of_vp, "points", "bin", "d_quartile", "label") == occupied(expected.vp_count)
        assert tally(of_vp, "singletons", "bin", "d_quartile") == occupied(expected.singleton)
        in_singletons = sum(round((row.share_correct_of_singletons or 0) * row.singletons) for row in of_vp)
        assert in_singletons == expected.right.sum()
        bounds = {row.d_quartile: (row.d_from, row.d_below) for row in rows}
        edges = [0.0, *expected.distance_edges.tolist(), np.inf]
        for quartile, (low, high) in bounds.items():
            assert [low, high] == pytest.approx(edges[quartile - 1 : quartile + 1], rel=1e-12)

        admitted = admitted_of_vp(vp.points, vp.singleton, class_count=classes, settings=settings, omega=omega)
        bins = bin_of(vp.points.match_count, settings.q_bins)
        assert tally(of_vp, "admitted", "bin", "label") == Counter(
            zip(bins[admitted].tolist(), vp.points.label[admitted].tolist(), strict=True)
        )
        assert {row.admitted for row in of_mc} == {None}
        for row in rows:
            points = (mc if row.split == "mc" else vp).points
            inside = (bin_of(points.match_count, settings.q_bins) == row.bin) & (points.label == row.label)
            inside &= (points.distance >= row.d_from) & (points.distance < row.d_below)
            assert row.correct == (points.predicted == points.label)[inside].sum()
            assert row.accuracy == pytest.approx(row.correct / row.points, rel=1e-12)
            assert row.mean_score == pytest.approx(points.score[inside].mean(), rel=1e-9)
            quantile = np.quantile(1 - points.score[inside], float(settings.alpha))
            assert row.threshold == pytest.approx(quantile, rel=1e-9, abs=1e-15)
    assert len(found) == (1 if name == "reviews" else 2)


def test_partitions_of_cells(classifier: tuple[Bench, str]) -> None:
    bench, name = classifier
    ((calibration, mc, _),) = snapshots(bench, name, "venn-abers")
    settings, points = calibration.abers_settings, mc.points
    rows = bench.rows(PARTITIONS, calibration=calibration.id)
    cells = CellPoints(points.predicted, points.match_count, points.score)
    right = points.predicted == points.label
    index = VennAbersIndex(cells, right, class_count=class_count(bench, name), q_bins=settings.q_bins)
    admitted = reaches_threshold(index.bounds(cells).lower, points.predicted, settings.thresholds)
    bins = bin_of(points.match_count, settings.q_bins)
    quartiles = np.searchsorted(np.quantile(points.distance, [0.25, 0.5, 0.75]), points.distance, side="right") + 1
    keys = list(zip(bins.tolist(), quartiles.tolist(), points.label.tolist(), strict=True))
    for column, members in (("points", np.ones_like(right)), ("correct", right), ("admitted", admitted)):
        expected = Counter(key for key, member in zip(keys, members, strict=True) if member)
        assert tally(rows, column, "bin", "d_quartile", "label") == expected
    assert {(row.split, row.singletons) for row in rows} == {("mc", None)}
    assert 0 < admitted.sum() < len(admitted)


def test_a_policy_admits_in_sql_what_it_admits(copy_of: CopyOf, filled: Filled) -> None:
    bench = copy_of(filled(reviews_of(4000)))
    asked: dict[str, Any] = {"score": "network", "certify": ("predicted", "true"), "confidence": Decimal("0.9")}
    bench.calibrate_abers("reviews", **asked)
    bench.calibrate_abers("reviews", **asked, alpha=Decimal("0.001"))
    bench.calibrate_abers("reviews", score="network", promise="average")
    for calibration, mc, vp in snapshots(bench, "reviews", "venn-abers"):
        with connect(bench.engine) as connection:
            policy = venn_abers.policy_of(connection, calibration.id)
        of_mc, of_vp = (CellPoints(of.points.predicted, of.points.match_count, of.points.score) for of in (mc, vp))
        assert (policy is None) == (calibration.abers_settings.alpha < Decimal("0.01"))
        rows = bench.rows(PARTITIONS, calibration=calibration.id)
        for split, points in (("mc", of_mc), ("vp", of_vp)):
            found = [row for row in rows if row.split == split]
            admitted = 0 if policy is None else int(admit(points.score, points.predicted, policy).sum())
            assert sum(row.admitted or 0 for row in found) == admitted
            assert sum(row.points for row in found) == len(points.predicted)


def summary(
    label: IntArray, right: BoolArray, probability: FloatArray, q: IntArray, d: FloatArray, k: int, alpha: float
) -> dict[tuple[str, str, int | None], tuple[int, int, float]]:
    """The coarse table by masks: points, right ones, and the quantile, of what is there."""
    median, every = np.median(d), np.ones_like(right)
    matches = {"q = 0": q == 0, "q = K": q == k, "any q": every}
    distances = {"d < median": d < median, "d >= median": d >= median, "any d": every}
    found = {}
    for q_name, of_q in matches.items():
        for d_name, of_d in distances.items():
            for number in (None, *range(int(label.max()) + 1)):
                inside = of_q & of_d & (every if number is None else label == number)
                if inside.any():
                    threshold = float(np.quantile(probability[inside], alpha))
                    found[q_name, d_name, number] = int(inside.sum()), int(right[inside].sum()), threshold
    return found


def check_summary(
    rows: list[Any], expected: dict[tuple[str, str, int | None], tuple[int, int, float]], rel: float = 1e-9
) -> None:
    found = {(row.q, row.d, row._mapping["class"]): row for row in rows}
    assert found.keys() == expected.keys()
    total = expected["any q", "any d", None][0]
    for key, (points, correct, threshold) in expected.items():
        assert (found[key].points, found[key].correct) == (points, correct), key
        assert found[key].threshold == pytest.approx(threshold, rel=rel, abs=1e-15), key
        assert found[key].accuracy == pytest.approx(correct / points, rel=1e-12)
        assert found[key].share == pytest.approx(points / total, rel=1e-12)


@pytest.mark.parametrize("method", ["venn-admit", "venn-abers"])
def test_the_coarse_table(classifier: tuple[Bench, str], method: str) -> None:
    bench, name = classifier
    k = bench.value("SELECT neighbour_count FROM classifier WHERE name = :name", name=name)
    for calibration, mc, vp in snapshots(bench, name, method):
        parts = [mc.points, vp.points] if method == "venn-admit" else [mc.points]
        label, predicted, q, d, score = (
            np.concatenate([getattr(part, field) for part in parts])
            for field in ("label", "predicted", "match_count", "distance", "score")
        )
        probability = 1 - score if method == "venn-admit" else score
        alpha = float(calibration.method_settings.alpha)
        rows = bench.rows(SUMMARY, calibration=calibration.id, source="calibration")
        check_summary(rows, summary(label, predicted == label, probability, q, d, k, alpha))

        decided = bench.rows(DECISIONS, calibration=calibration.id)
        variants = {(row.weighted, row.require_full_match) for row in decided if row.label is not None}
        scored = bench.rows(SUMMARY, calibration=calibration.id, source="scored")
        assert {(row.weighted, row.require_full_match) for row in scored} == variants
        for variant in variants:
            of_variant = [row for row in decided if (row.weighted, row.require_full_match) == variant]
            known = [row for row in of_variant if row.label is not None]
            label = np.array([row.label for row in known])
            probability = softmax(np.array([row.logits for row in known]))[np.arange(len(known)), label]
            if method == "venn-abers":
                probability = np.array([row.score for row in known])
            rows = [row for row in scored if (row.weighted, row.require_full_match) == variant]
            check_summary(
                rows,
                summary(
                    label,
                    np.array([row.predicted for row in known]) == label,
                    probability,
                    np.array([row.match_count for row in known]),
                    np.array([row.distance for row in known]),
                    k,
                    alpha,
                ),
            )
            (whole,) = [row for row in rows if (row.q, row.d, row._mapping["class"]) == ("any q", "any d", None)]
            assert whole.admitted == sum(row.decision is not None for row in known)


def test_the_coarse_table_is_that_of_evaluate(copy_of: CopyOf, filled: Filled) -> None:
    bench = copy_of(filled(reviews_of(4000)))
    bench.score("reviews", EXAMPLES / "test.npz", weighted=False)
    request = request_evaluation_of_decisions(bench.workspace(), "reviews", calibration_id=1)
    if request.job_id is not None:
        bench.run(request.job_id)
    table = compare_methods(bench.workspace(), request, "all").partitions
    assert table is not None
    expected = {}
    for row in table.rows:
        cells = {None: row.overall} | dict(enumerate(row.per_class))
        for number, cell in cells.items():
            if cell.tally.count:
                expected[row.matches, row.distances, number] = cell.tally.count, cell.tally.correct, cell.threshold
    scored = bench.rows(SUMMARY, calibration=1, source="scored")
    rows = [row for row in scored if not row.weighted]
    check_summary(rows, expected)
    assert [row.median for row in rows] == pytest.approx([table.median] * len(rows), rel=1e-12)


def test_the_papers_table_of_the_golden_data_from_sql_alone(engine: Engine, tmp_path: Path) -> None:
    bench, golden = Bench(engine, tmp_path), Golden("sentiment")
    golden.prepare(bench, "sentiment")
    bench.calibrate("sentiment", **golden.settings)
    bench.score("sentiment", bench.write("score.npz", golden.exemplars("score")), weighted=False)
    label = golden["score_y"]
    probability = softmax(golden["score_logits"])[np.arange(len(label)), label]
    right = golden["score_predicted"] == label
    expected = summary(label, right, probability, golden["score_q"], golden["score_d"], int(golden["K"]), 0.1)
    check_summary(bench.rows(SUMMARY, calibration=1, source="scored"), expected, rel=1e-6)


@pytest.mark.parametrize("method", ["venn-admit", "venn-abers"])
def test_rejections(classifier: tuple[Bench, str], method: str) -> None:
    bench, name = classifier
    for calibration, mc, vp in snapshots(bench, name, method):
        distances = np.concatenate([mc.points.distance, vp.points.distance])
        edges = np.quantile(distances, [0.25, 0.5, 0.75])
        decided = bench.rows(DECISIONS, calibration=calibration.id)
        bins = bin_of(
            np.array([row.match_count for row in decided], dtype=np.int64), calibration.method_settings.q_bins
        )
        quartile = np.searchsorted(edges, [row.distance for row in decided], side="right") + 1
        expected = Counter(
            (row.weighted, row.require_full_match, int(number), int(part), row.predicted, row.reason)
            for row, number, part in zip(decided, bins, quartile, strict=True)
        )
        rows = bench.rows("SELECT * FROM report.rejection_v1 WHERE calibration = :id", id=calibration.id)
        keys = ("weighted", "require_full_match", "bin", "d_quartile", "predicted", "reason")
        assert tally(rows, "points", *keys) == expected
        shares: Counter[tuple[bool, bool]] = Counter()
        for row in rows:
            shares[row.weighted, row.require_full_match] += row.share
        assert all(share == pytest.approx(1.0) for share in shares.values())


def test_points_without_q_and_d_are_counted(engine: Engine, tmp_path: Path) -> None:
    """Those of a classifier with logits only lie in one bin and no quartile: in partitions of any q and any d alone."""
    bench = Bench(engine, tmp_path)
    logits.prepared(bench)
    bench.score(logits.NAME, bench.write("score.npz", logits.exemplars("scored", 300, seed=7)), weighted=None)
    calibration = bench.value("SELECT max(id) FROM calibration")
    rows = bench.rows(PARTITIONS, calibration=calibration)
    assert sum(row.points for row in rows) == bench.value("SELECT count(*) FROM calibration_point")
    assert {(row.bin, row.q_to, row.d_quartile, row.d_from, row.d_below) for row in rows} == {(0, *[None] * 4)}
    for source in ("calibration", "scored"):
        rows = bench.rows(SUMMARY, calibration=calibration, source=source)
        assert {(row.q, row.d) for row in rows} == {("any q", "any d")}
    rejected = bench.rows("SELECT * FROM report.rejection_v1")
    assert sum(row.points for row in rejected) == 300
    assert {(row.bin, row.q_to, row.d_quartile) for row in rejected} == {(0, None, None)}
    traffic = bench.rows("SELECT * FROM report.traffic_v1")
    assert sum(row.points for row in traffic) == 300
    assert {row.d_quartile for row in traffic} == {None}
    # Labels that are held count, so that fewer are lacking than of nothing.
    assert all(row.held > 0 for row in bench.rows("SELECT * FROM report.label_budget_v1"))
    assert bench.value("SELECT count(*) FROM report.decision_v2 WHERE q IS NULL AND d IS NULL") == 300
