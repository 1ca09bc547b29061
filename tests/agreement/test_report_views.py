"""The views and functions on traffic, labels, neighbours and snapshots against arrays: real data, and three classes."""

from collections import Counter
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.agreement.test_partition_views import snapshots
from tests.running import Bench, Golden
from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.monitoring.bands import label_budget

DECISIONS = """
SELECT decision.*, exemplar.label, exemplar.external_id, admit.band_size
FROM decision
INNER JOIN exemplar ON exemplar_id = exemplar.id
LEFT JOIN admit_evidence AS admit ON decision_id = decision.id
WHERE calibration_id = :calibration
ORDER BY decision.id
"""
LISTS = """
SELECT point.split, point.label, neighbour_ids, approximation.match_count, approximation.predicted
FROM neighbours
INNER JOIN exemplar AS point ON point.id = exemplar_id
LEFT JOIN approximation USING (exemplar_id)
"""


def index_of_stability(counts: Counter[Any], calibrated: Counter[Any]) -> float:
    """The sum of (p - c) ln(p / c), with half a point more in each partition that either has."""
    places = sorted(counts.keys() | calibrated.keys())
    shares = []
    for side in (counts, calibrated):
        smoothed = np.array([side[place] + 0.5 for place in places])
        shares.append(smoothed / smoothed.sum())
    return float(((shares[0] - shares[1]) * np.log(shares[0] / shares[1])).sum())


@pytest.mark.parametrize("method", ["venn-admit", "venn-abers"])
def test_traffic_by_partition(classifier: tuple[Bench, str], method: str) -> None:
    bench, name = classifier
    jobs = 0
    for calibration, mc, vp in snapshots(bench, name, method):
        parts = [part.points for part in (mc, vp)]
        edges = calibration.method_settings.q_bins
        quartiles = np.quantile(np.concatenate([part.distance for part in parts]), [0.25, 0.5, 0.75])

        def place(q: Any, d: Any, edges: Any = edges, quartiles: Any = quartiles) -> list[tuple[int, int]]:
            quartile = np.searchsorted(quartiles, d, side="right") + 1
            return list(zip(bin_of(np.asarray(q), edges).tolist(), quartile.tolist(), strict=True))

        calibrated = Counter(found for part in parts for found in place(part.match_count, part.distance))
        right = Counter(
            found
            for part in parts
            for found, hit in zip(place(part.match_count, part.distance), part.predicted == part.label, strict=True)
            if hit
        )
        rows = bench.rows("SELECT * FROM report.traffic_v1 WHERE calibration = :id", id=calibration.id)
        for job in {row.job for row in rows}:
            asked = bench.rows(
                f"SELECT found.* FROM ({DECISIONS}) AS found INNER JOIN job ON job.weighted = found.weighted"
                " AND job.require_full_match = found.require_full_match INNER JOIN job_row ON job.id = job_id"
                " AND job_row.exemplar_id = found.exemplar_id WHERE job.id = :job",
                calibration=calibration.id,
                job=job,
            )
            places = place([row.match_count for row in asked], [row.distance for row in asked])
            counts = Counter(places)
            found = {(row.bin, row.d_quartile): row for row in rows if row.job == job}
            assert found.keys() == counts.keys() | calibrated.keys()
            for key, row in found.items():
                own = [each for each, where in zip(asked, places, strict=True) if where == key]
                labelled = [each for each in own if each.label is not None]
                assert (row.points, row.calibration_points) == (counts[key], calibrated[key])
                assert row.admitted == sum(each.decision is not None for each in own)
                assert (row.labelled, row.correct) == (
                    len(labelled),
                    sum(each.predicted == each.label for each in labelled),
                )
                if calibrated[key]:
                    assert row.calibration_accuracy == pytest.approx(right[key] / calibrated[key], rel=1e-12)
                assert row.share == pytest.approx(counts[key] / len(asked), rel=1e-12)
                assert row.stability_index == pytest.approx(index_of_stability(counts, calibrated), rel=1e-9)
            jobs += 1
    assert jobs == (2 if (name, method) == ("documents", "venn-admit") else 1)


def test_traffic_by_day(classifier: tuple[Bench, str]) -> None:
    """The jobs of a day together, of each snapshot."""
    bench, name = classifier
    jobs: dict[tuple[Any, int], list[Any]] = {}
    for row in bench.rows("SELECT * FROM report.traffic_v1 WHERE classifier = :name", name=name):
        jobs.setdefault((row.day, row.calibration), []).append(row)
    days: dict[tuple[Any, int], list[Any]] = {}
    for row in bench.rows("SELECT * FROM report.daily_traffic_v1 WHERE classifier = :name", name=name):
        days.setdefault((row.day, row.calibration), []).append(row)
    assert days.keys() == jobs.keys()
    assert max(len({row.job for row in rows}) for rows in jobs.values()) == (2 if name == "documents" else 1)
    for key, rows in days.items():
        counts, calibrated = Counter[Any](), Counter[Any]()
        for row in jobs[key]:
            counts[row.bin, row.d_quartile] += row.points
            calibrated[row.bin, row.d_quartile] = row.calibration_points
        assert {(row.bin, row.d_quartile): row.points for row in rows} == counts
        for row in rows:
            own = [each for each in jobs[key] if (each.bin, each.d_quartile) == (row.bin, row.d_quartile)]
            assert row.share == pytest.approx(row.points / counts.total(), rel=1e-12)
            for column in ("admitted", "labelled", "correct"):
                assert getattr(row, column) == sum(getattr(each, column) for each in own)
            for column in ("q_from", "q_to", "calibration_points", "calibration_share", "calibration_accuracy"):
                assert {getattr(each, column) for each in own} == {getattr(row, column)}
            assert row.accuracy == (row.correct / row.labelled if row.labelled else None)
            assert row.stability_index == pytest.approx(index_of_stability(counts, calibrated), rel=1e-9)


def test_label_budget_of_bands(classifier: tuple[Bench, str]) -> None:
    bench, name = classifier
    mc_share = float(bench.value("SELECT mc_share FROM classifier WHERE name = :name", name=name))
    compared = 0
    for calibration, _, _ in snapshots(bench, name, "venn-admit"):
        decided = {row.exemplar_id: row for row in bench.rows(DECISIONS, calibration=calibration.id)}
        starved = [row for row in decided.values() if row.reason == "band below kappa"]
        rows = bench.rows("SELECT * FROM report.label_budget_v1 WHERE calibration = :id", id=calibration.id)
        if not starved:
            assert rows == []
            continue
        settings = calibration.settings
        bins = bin_of(np.array([row.match_count for row in starved]), settings.q_bins)
        sizes = np.array([row.band_size for row in starved])
        budget = label_budget(sizes, bins, kappa=settings.kappa, label_count=calibration.mc_count / mc_share)
        found = {(row.bin, row._mapping["class"]): row for row in rows}
        assert found.keys() == {(number, c) for number in budget.per_bin for c in range(sizes.shape[1])}
        for (number, c), row in found.items():
            expected = budget.per_bin[number]
            assert (row.points, row.lacking) == (expected.points, expected.lacking[c])
            assert row.labels == pytest.approx(expected.labels_per_class[c], rel=1e-12)
            assert row.labels_of_all == pytest.approx(expected.labels, rel=1e-12)
            assert row.points_per_label == pytest.approx(expected.points / expected.labels, rel=1e-12)
            assert row.rank == 1 + sum(other.points_per_label > row.points_per_label for other in rows)
            compared += 1
    assert compared


def test_label_budget_of_cells(classifier: tuple[Bench, str]) -> None:
    """A cell is starved if even a point that ranks above all its points, all right, would not be admitted."""
    bench, name = classifier
    ((calibration, mc, _),) = snapshots(bench, name, "venn-abers")
    settings, classes = calibration.abers_settings, 3 if name == "documents" else 2
    cell = bin_of(mc.points.match_count, settings.q_bins) * classes + mc.points.predicted
    held = np.bincount(cell, minlength=len(settings.q_bins) * classes)
    rejected = Counter(
        int(bin_of(np.array([row.match_count]), settings.q_bins)[0]) * classes + row.predicted
        for row in bench.rows(DECISIONS, calibration=calibration.id)
        if row.reason == "probability below threshold"
    )
    rows = bench.rows("SELECT * FROM report.label_budget_v1 WHERE calibration = :id", id=calibration.id)
    found = {row.bin * classes + row._mapping["class"]: row for row in rows}
    least = {
        number: next(n for n in range(10_000) if n / (n + 1) >= float(settings.thresholds[number % classes]))
        for number in rejected
    }
    assert found.keys() == {number for number in rejected if held[number] < least[number]}
    for number, row in found.items():
        assert (row.held, row.lacking) == (held[number], least[number] - held[number])
        assert row.points == rejected[number]


def test_neighbours_are_the_golden_ones(engine: Engine, tmp_path: Path) -> None:
    bench, golden = Bench(engine, tmp_path), Golden("edge")
    golden.prepare(bench, "edge")
    bench.calibrate("edge", **golden.settings)
    bench.score("edge", bench.write("score.npz", golden.exemplars("score")), weighted=False)
    listed = bench.rows("SELECT * FROM report.neighbour_v1 WHERE classifier = 'edge' ORDER BY decision_id, rank")
    k, points = int(golden["K"]), len(golden["score_y"])
    assert [row.external_id for row in listed[::k]] == [f"score-{number}" for number in range(points)]
    assert [row.rank for row in listed] == list(range(1, k + 1)) * points
    near = golden["score_neighbours"].ravel()
    assert [row.neighbour for row in listed] == [f"train-{number}" for number in near]
    np.testing.assert_allclose([row.distance for row in listed], golden["score_distances"].ravel(), rtol=1e-6)
    assert [row.label for row in listed] == golden["train_y"][near].tolist()
    assert [row.predicted for row in listed] == golden["train_f"][near].argmax(axis=1).tolist()
    matches = np.reshape([row.is_match for row in listed], (points, k))
    np.testing.assert_array_equal(np.logical_and.accumulate(matches, axis=1).sum(axis=1), golden["score_q"])
    assert {row.is_as_decided for row in listed} == {True}


def test_influence_of_training_exemplars(classifier: tuple[Bench, str]) -> None:
    bench, name = classifier
    lists = bench.rows(LISTS)
    training = {
        row.id: row
        for row in bench.rows("SELECT id, external_id, label, network_predicted FROM exemplar WHERE split = 'train'")
    }
    points, nearest, ended, scored, labelled, agreeing = (Counter[str]() for _ in range(6))
    for point in lists:
        for rank, key in enumerate(point.neighbour_ids):
            near = training[key]
            points[near.external_id] += 1
            nearest[near.external_id] += rank == 0
            scored[near.external_id] += point.split == "scored"
            labelled[near.external_id] += point.label is not None
            agreeing[near.external_id] += point.label == near.label
            by_label = near.network_predicted == point.predicted != near.label
            ended[near.external_id] += rank == point.match_count and by_label
    rows = bench.rows("SELECT * FROM report.exemplar_influence_v1 WHERE classifier = :name", name=name)
    assert {row.external_id for row in rows} == set(points)
    for row in rows:
        key = row.external_id
        assert (row.points, row.nearest_of, row.scored) == (points[key], nearest[key], scored[key])
        assert (row.runs_ended, row.labelled, row.agreeing) == (ended[key], labelled[key], agreeing[key])
        if labelled[key]:
            assert row.share_agreeing == pytest.approx(agreeing[key] / labelled[key], rel=1e-12)
            assert row.disagrees == (agreeing[key] < labelled[key] / 2)
    assert sum(ended.values()) > 0


def test_the_band_of_a_point(classifier: tuple[Bench, str]) -> None:
    """As the arrays have it, for points that were decided on; the category as the evidence of singletons has it."""
    bench, name = classifier
    calibration, mc, vp = snapshots(bench, name, "venn-admit")[-1]
    settings, omega = calibration.settings, calibration.radius.omega
    decided = bench.rows(DECISIONS, calibration=calibration.id)[::7]
    classes = len(decided[0].logits)
    index = AdmitIndex(mc.points, class_count=classes, settings=settings, omega=omega)
    logits, q, d, predicted = (
        np.array([getattr(row, field) for row in decided])
        for field in ("logits", "match_count", "distance", "predicted")
    )
    sets = index.sets(logits, predicted, q, d)
    bins = bin_of(vp.points.match_count, settings.q_bins)
    for number, row in enumerate(decided):
        band = bench.rows("SELECT * FROM report.band_v1(:name, :q, :d)", name=name, q=row.match_count, d=row.distance)
        assert [each.band_size for each in band] == sets.band_size[number].tolist()
        assert [each.threshold for each in band] == sets.threshold[number].tolist()
        inside = (bins == band[0].bin) & vp.singleton
        inside &= (vp.points.distance >= row.distance - omega) & (vp.points.distance <= row.distance + omega)
        for c, each in enumerate(band):
            category = inside & (vp.points.predicted == c)
            assert each.category_size == category.sum()
            assert each.category_correct == (category & (vp.points.label == c)).sum()
            assert each.lower == each.category_correct / (each.category_size + 1)
            assert (each.calibration, each.kappa) == (calibration.id, settings.kappa)
            assert each.required == settings.thresholds[c]


def test_the_ledger_of_labels(classifier: tuple[Bench, str]) -> None:
    bench, name = classifier
    rows = bench.rows("SELECT * FROM report.label_v1 WHERE classifier = :name ORDER BY event", name=name)
    events = bench.rows(
        "SELECT event.*, external_id FROM label_event AS event"
        " INNER JOIN exemplar ON exemplar_id = exemplar.id ORDER BY event.id"
    )
    newest = {event.exemplar_id: event.id for event in events}
    assert [(row.event, row.external_id, row.label, row.selection, row.source) for row in rows] == [
        (event.id, event.external_id, event.label, event.selection, event.source) for event in events
    ]
    assert [row.is_current for row in rows] == [newest[event.exemplar_id] == event.id for event in events]
    assert all(row.created_at.astimezone(UTC).date() == row.day for row in rows)
