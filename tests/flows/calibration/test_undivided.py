"""Venn-ADMIT without a division, through the product: jobs, one point, replays, labels that arrive, what is shown."""

from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from sqlalchemy import text

from tests import reference
from tests.conftest import fresh_engine
from tests.from_scratch import current_points, store_again
from tests.running import EXAMPLES, REVIEW_ETA_LOC, REVIEW_PARAMETERS, Bench
from venn_admit.cli.advice import command
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.comparison.divisions import DIVISIONS
from venn_admit.core.split_names import Split
from venn_admit.core.types import CalibrationPoints
from venn_admit.errors import InvalidInputError
from venn_admit.files.sources import FileSource
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import GivenPoint, PointScorer
from venn_admit.flows.reports.evaluate import compare_methods, request_evaluation_of_source
from venn_admit.flows.reports.methods_table import methods_table
from venn_admit.flows.reports.report import report
from venn_admit.flows.reports.what_if_settings import what_if_settings
from venn_admit.methods.registry import load_snapshot
from venn_admit.report.calibration.bands.part import BandsPart
from venn_admit.report.calibration.wording import calibration_tables
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers

POINTS, HELD_OUT = 60, 1500
UNDER: dict[str, Any] = {"alpha": Decimal("0.1"), "kappa": 20, "q_bins": (0, 1, 6, 16, 25), "undivided": True}
COLUMNS = "predicted, decision, reason, lower, upper, upweight, category_size, band_size, admit_set::text, threshold"


@pytest.fixture(scope="module")
def made(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The bundled reviews, calibrated without a division."""
    with fresh_engine(server_url, template_database) as engine:
        bench = Bench(engine, tmp_path_factory.mktemp("undivided"))
        bench.create("reviews", dimension=128)
        for file, split, count in (("train", "train", None), ("valid", "held-out", HELD_OUT), ("test", None, POINTS)):
            with np.load(EXAMPLES / f"{file}.npz") as arrays:
                path = bench.write(f"{file}.npz", {name: values[:count] for name, values in arrays.items()})
            if split is not None:
                bench.ingest("reviews", path, split)
        bench.adopt("reviews")
        bench.calibrate("reviews", **UNDER)
        yield bench


def test_jobs_one_point_and_a_loop_over_bags_decide_alike(made: Bench) -> None:
    job_id = made.score("reviews", made.folder / "test.npz", weighted=None).request.job_id
    rows = made.rows(
        f"SELECT decision.id, match_count, distance, logits, {COLUMNS} FROM job JOIN job_row ON job.id = job_id"
        " JOIN decision USING (exemplar_id) JOIN admit_evidence ON decision.id = decision_id"
        " WHERE job.id = :job_id ORDER BY row_number",
        job_id=job_id,
    )
    with np.load(made.folder / "test.npz") as arrays:
        given = [GivenPoint(vector, None) for vector in arrays["r"].astype(np.float32)]
    one_by_one = PointScorer(made.workspace())
    with connect(made.engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
        calibration = calibrations.latest(connection, classifier)
        stored = calibrations.read_points(connection, calibration, Split.VP)
    assert (calibration.mc_count, calibration.vp_count) == (0, len(stored.exemplar_ids))
    assert stored.logits is not None
    scores = 1 - softmax(stored.logits)
    assert np.array_equal(scores[np.arange(len(scores)), stored.points.label], stored.points.score)
    looped = 0
    for row, point in zip(rows, given, strict=True):
        found = one_by_one.score("reviews", point.vector)
        assert {name: found.fields[name] for name in found.fields} == {
            name: row._mapping[name] for name in found.fields
        }
        assert (found.fields["upweight"], row.upweight) == (None, None)
        assert found.category_counts.sum() == row.category_size
        if row.category_size and looped < 4:
            looped += 1
            own = 1 - softmax(np.array([row.logits]))[0]
            single = (np.array([column]) for column in (0, row.predicted, row.match_count, row.distance, 0.0))
            bags = reference.joined_bags(
                stored.points,
                scores,
                CalibrationPoints(*single),
                own,
                calibration.settings,
                calibration.radius.omega,
            )
            labels = [bag.labels_of_category() for bag in bags]
            shares = [of_bag.count(row.predicted) / len(of_bag) for of_bag in labels]
            assert (row.lower, row.upper) == (min(shares), max(shares))
            of_classes = [[of_bag.count(c) / len(of_bag) for of_bag in labels] for c in (0, 1)]
            assert found.bounds == ([min(one) for one in of_classes], [max(one) for one in of_classes])
    assert looped == 4
    assert {row.reason for row in rows} > {None}


def test_a_decision_replays_bit_for_bit_with_what_it_rests_on(made: Bench) -> None:
    made.score("reviews", made.folder / "test.npz", weighted=False)
    for decision in made.rows("SELECT id FROM decision ORDER BY (decision IS NULL), id LIMIT 3"):
        again = replay(made.workspace(), decision.id)
        assert again.differing == ()
        assert again.category_counts is not None
        assert again.bounds is not None


def test_weights_are_refused_for_jobs_and_points(made: Bench) -> None:
    vector = made.rows("SELECT vector::real[] AS r FROM exemplar_vector LIMIT 1")[0].r
    refusal = r"is undivided, which is about plain probabilities alone: .*; decide by it without weights, or calibrate"
    with pytest.raises(InvalidInputError, match=refusal):
        made.score("reviews", made.folder / "test.npz", weighted=True)
    with pytest.raises(InvalidInputError, match=refusal):
        PointScorer(made.workspace()).score("reviews", np.array(vector, np.float32), weighted=True)


def test_labels_that_arrive_make_the_snapshot_that_all_data_make_from_scratch(made: Bench) -> None:
    """Only rows of points that changed are written, and what is decided is the same to the last bit."""
    with transaction(made.engine) as connection:
        connection.execute(text("UPDATE exemplar SET label = 1 - label WHERE split = 'mc' AND id % 50 = 0"))
    changed = made.calibrate("reviews", **UNDER).changed
    flipped = made.value("SELECT count(*) FROM exemplar WHERE split = 'mc' AND id % 50 = 0")
    assert flipped > 5
    assert flipped <= changed.opened == changed.closed < HELD_OUT / 2
    store_again(made, "reviews", "again", REVIEW_PARAMETERS, REVIEW_ETA_LOC)
    made.calibrate("again", **UNDER)
    assert current_points(made, "reviews") == current_points(made, "again")
    of_each = []
    for name in ("reviews", "again"):
        with connect(made.engine) as connection:
            classifier = classifiers.by_name(connection, name)
            calibration = calibrations.latest(connection, classifier)
        snapshot = load_snapshot(made.workspace(), classifier, calibration.id)
        path = made.folder / "test.npz"
        with np.load(path) as arrays:
            points = [GivenPoint(vector, None) for vector in arrays["r"].astype(np.float32)]
        of_each.append([one.fields for one in PointScorer(made.workspace()).score_each(name, points)])
        assert snapshot.calibration.radius == calibration.radius
    assert of_each[0] == of_each[1]


def test_what_is_shown_of_it_counts_all_points_and_has_divisions_beside(made: Bench) -> None:
    """An evaluation, a report with its tables, what other settings admit, and methods side by side."""
    workspace, path = made.workspace(), made.folder / "test.npz"
    request = request_evaluation_of_source(workspace, "reviews", FileSource(path), calibration_id=None)
    if request.job_id is not None:
        made.run(request.job_id)
    evaluated = compare_methods(workspace, request, "others")
    decided = made.score("reviews", path, weighted=False).column("decision")
    assert evaluated.own == "Venn-ADMIT undivided"
    assert evaluated.method(evaluated.own).overall.count == (~np.isnan(decided)).sum() > 0
    assert evaluated.method("Venn-ADMIT plain").overall.count > 0
    assert evaluated.calibration is not None
    assert not evaluated.calibration.weighted
    found = report(workspace, "reviews", calibration_id=None)
    part = found.part
    assert isinstance(part, BandsPart)
    points = int(part.partitions.vp_count.sum())
    assert (found.snapshot.mc_count, found.snapshot.vp_count, part.partitions.mc_count.sum()) == (0, points, 0)
    assert part.weighted is None
    assert len(part.divisions) == DIVISIONS
    assert 0 < part.partitions.singleton.sum() < part.partitions.usable.sum() < points
    admitted = made.value(
        "SELECT count(*) FILTER (WHERE is_admitted) FROM judged_point_v1 WHERE calibration = :id", id=found.snapshot.id
    )
    assert part.admitted_of_vp == admitted > 0
    assert found.changes.changed == 0
    said = StringIO()
    Console(file=said, width=200).print(calibration_tables(found, command))
    assert "undivided yes" in said.getvalue()
    assert "Divided into mc and vp in 10 ways, the same" in said.getvalue()
    of_partitions = said.getvalue().partition("What the partitions hold")[2].partition("Counts are points")[0]
    assert " vp " in of_partitions
    assert " mc " not in of_partitions
    tried = what_if_settings(workspace, "reviews", "kappa", [10])
    assert not tried.is_weighted
    assert [one.settings.undivided for one in tried.tried] == [True, True]
    assert methods_table(workspace, "reviews", None).methods[0].name == "Venn-ADMIT undivided"
