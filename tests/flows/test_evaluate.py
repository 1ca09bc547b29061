"""Evaluation through the store: which points, whose decisions, and methods that do not depend on how data came."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from service.core.tallies import Tally
from service.errors import InvalidInputError, NotReadyError
from service.files.exports import finite_json
from service.flows.evaluate import (
    EvaluationRequest,
    evaluate,
    request_evaluation_of_decisions,
    request_evaluation_of_file,
)
from service.report.dataset import DatasetReport
from service.report.payload import report_payload
from tests.running import EXAMPLES, Arrays, Bench, make_reviews

HELD_OUT_ROWS = 5000


@pytest.fixture
def bench(engine: Engine, tmp_path: Path) -> Bench:
    bench = Bench(engine, tmp_path)
    make_reviews(bench, held_out_rows=HELD_OUT_ROWS)
    return bench


def tweets(rows: int = 300) -> Arrays:
    """The first tweets, with ids of their own."""
    with np.load(EXAMPLES / "ood.npz") as ood:
        return {name: values[:rows] for name, values in ood.items()} | {"id": np.array([f"t{i}" for i in range(rows)])}


def request_file(bench: Bench, path: Path, calibration_id: int | None = None) -> EvaluationRequest:
    return request_evaluation_of_file(
        bench.engine,
        "reviews",
        path,
        calibration_id=calibration_id,
        chunk_rows=128,
        on_rows=lambda _: None,
    )


def run(bench: Bench, request: EvaluationRequest) -> DatasetReport:
    bench.run(request.job_id)
    return evaluate(bench.engine, bench.cache, request, "tweets")


def figures(report: DatasetReport) -> object:
    """All that a report shows; a share of nothing, which is NaN, as a text, so that it equals itself."""
    return finite_json(report_payload(report))


def test_venn_admit_rows_are_the_decisions_of_score(bench: Bench) -> None:
    path = bench.write("tweets.npz", tweets())
    report = run(bench, request_file(bench, path))
    label = tweets()["y"]
    for name, weighted in (("Venn-ADMIT plain", False), ("Venn-ADMIT weighted", True)):
        decision = bench.score("reviews", path, weighted=weighted).column("decision")
        admitted = ~np.isnan(decision)
        assert admitted.any()
        assert report.method(name).overall == Tally(int((decision == label).sum()), int(admitted.sum()), 300)
    sets = bench.score("reviews", path).table.column("set").to_pylist()
    single = [(classes[0], y) for classes, y in zip(sets, label, strict=True) if len(classes) == 1]
    assert report.method("ADMIT").overall == Tally(sum(c == y for c, y in single), len(single), 300)


def test_all_methods_in_the_order_of_the_paper(bench: Bench) -> None:
    report = run(bench, request_file(bench, bench.write("tweets.npz", tweets())))
    assert [method.name for method in report.methods] == [
        "KNN",
        "Conf_BASE",
        "RAPS adaptiveness",
        "RAPS size",
        "APS",
        "LocalConf_BASE",
        "ADMIT",
        "Venn-ADMIT plain",
        "Venn-ADMIT plain, q = K",
        "Venn-ADMIT weighted",
        "Venn-ADMIT weighted, q = K",
    ]
    assert [row.name for row in report.accuracy] == ["network", "KNN", "localizer"]


def test_the_same_report_in_whatever_order_the_data_came(bench: Bench, tmp_path: Path) -> None:
    report = run(bench, request_file(bench, bench.write("tweets.npz", tweets())))
    shuffled = np.random.default_rng(0).permutation(HELD_OUT_ROWS)
    with np.load(bench.folder / "valid.npz") as valid:
        held_out = {name: values[shuffled] for name, values in valid.items()}
    (tmp_path / "other").mkdir()
    other = Bench(bench.engine, tmp_path / "other")
    ids = bench.rows(
        "SELECT external_id FROM exemplar INNER JOIN classifier ON classifier_id = classifier.id "
        "WHERE split IN ('knn', 'mc', 'vp') ORDER BY exemplar.id"
    )
    held_out["id"] = np.array([row.external_id for row in ids])[shuffled]
    other.create("again", dimension=128)
    other.ingest("again", EXAMPLES / "train.npz", "train")
    other.ingest("again", other.write("shuffled.npz", held_out), "held-out")
    other.adopt("again")
    other.calibrate("again", kappa=100)
    backwards = {name: values[::-1] for name, values in tweets().items()}
    request = request_evaluation_of_file(
        other.engine,
        "again",
        other.write("tweets.npz", backwards),
        calibration_id=None,
        chunk_rows=77,
        on_rows=lambda _: None,
    )
    assert figures(run(other, request)) == figures(report)


class TestWhichPoints:
    def test_of_a_file_the_labelled_rows_each_once(self, bench: Bench) -> None:
        arrays = tweets()
        arrays["y"] = np.where(np.arange(300) < 100, -1, arrays["y"])
        twice = {name: np.concatenate([values, values[150:160]]) for name, values in arrays.items()}
        request = request_file(bench, bench.write("tweets.npz", twice))
        assert (request.labelled.ids.size, request.labelled.seen_count) == (200, 0)
        assert run(bench, request).point_count == 200

    def test_what_is_decided_is_not_decided_again(self, bench: Bench) -> None:
        path = bench.write("tweets.npz", tweets())
        bench.score("reviews", path)
        before = bench.value("SELECT count(*) FROM decision")
        request = request_file(bench, path)
        assert bench.value("SELECT row_count FROM job WHERE id = :job", job=request.job_id) == 0
        assert run(bench, request).point_count == 300
        assert bench.value("SELECT count(*) FROM decision") == before

    def test_all_labelled_decisions_of_a_calibration(self, bench: Bench) -> None:
        bench.score("reviews", bench.write("tweets.npz", tweets()))
        bench.score("reviews", EXAMPLES / "test.npz", weighted=False)
        bench.calibrate("reviews", kappa=60)
        of_first = request_evaluation_of_decisions(bench.engine, "reviews", calibration_id=1, chunk_rows=2048)
        assert bench.value("SELECT row_count FROM job WHERE id = :job", job=of_first.job_id) == 488
        assert run(bench, of_first).point_count == 788
        with pytest.raises(InvalidInputError, match="calibration 2 of 'reviews' has decided on no labelled exemplar"):
            request_evaluation_of_decisions(bench.engine, "reviews", calibration_id=None, chunk_rows=2048)

    def test_what_the_calibration_was_made_with_is_left_out(self, bench: Bench) -> None:
        with np.load(bench.folder / "valid.npz") as valid:
            seen = {name: values[:40] for name, values in valid.items()}
        seen["id"] = np.array([row.external_id for row in bench.rows(IDS_OF_HELD_OUT)])[:40]
        arrays = tweets(60)
        mixed = {name: np.concatenate([arrays[name], seen[name]]) for name in ("id", "r", "f", "y")}
        mixed["doc"] = np.concatenate([arrays["doc"].astype(str), seen["doc"].astype(str)])
        report = run(bench, request_file(bench, bench.write("mixed.npz", mixed)))
        assert (report.point_count, report.left_out) == (60, 40)

    def test_nothing_but_calibration_data(self, bench: Bench) -> None:
        with pytest.raises(InvalidInputError, match=r"all 5,000 labelled rows .* calibration 1, and say nothing"):
            request_file(bench, bench.folder / "valid.npz")

    def test_no_label_and_nothing_is_stored(self, bench: Bench) -> None:
        arrays = tweets() | {"y": np.full(300, -1)}
        before = bench.value("SELECT count(*) FROM exemplar")
        with pytest.raises(InvalidInputError, match="expected labelled rows"):
            request_file(bench, bench.write("tweets.npz", arrays))
        assert bench.value("SELECT count(*) FROM exemplar") == before
        assert bench.value("SELECT count(*) FROM job WHERE kind = 'score'") == 0

    def test_before_the_first_calibration(self, bench: Bench) -> None:
        bench.create("new", dimension=128)
        with pytest.raises(NotReadyError, match="no calibration yet"):
            request_evaluation_of_decisions(bench.engine, "new", calibration_id=None, chunk_rows=2048)


IDS_OF_HELD_OUT = "SELECT external_id FROM exemplar WHERE split IN ('knn', 'mc', 'vp') ORDER BY id"


def test_an_older_calibration_is_compared_with_its_own_data(bench: Bench) -> None:
    """Held-out data that come later change nothing in what a snapshot is compared with, but for split knn."""
    path = bench.write("tweets.npz", tweets())
    before = run(bench, request_file(bench, path))
    with np.load(EXAMPLES / "valid.npz") as valid:
        later = bench.write("later.npz", {name: values[HELD_OUT_ROWS:7000] for name, values in valid.items()})
    bench.ingest("reviews", later, "vp")
    bench.calibrate("reviews", kappa=100)
    after = run(bench, request_file(bench, path, calibration_id=1))
    assert figures(after) == figures(before)
    current = run(bench, request_file(bench, path))
    assert figures(current) != figures(before)
