"""Evaluation through the store: which points, whose decisions, and methods that do not depend on how data came."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import fresh_engine
from tests.running import EXAMPLES, METHODS, Arrays, Bench
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.output.exports import finite_json
from venn_admit.files.sources import FileSource
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.evaluate import (
    EvaluationRequest,
    compare_methods,
    request_evaluation_of_decisions,
    request_evaluation_of_source,
)
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.payload import report_payload

HELD_OUT_ROWS = 4000


def tweets(start: int = 0, stop: int = 300) -> Arrays:
    """Some tweets, with ids of their own."""
    with np.load(EXAMPLES / "ood.npz") as ood:
        part = {name: values[start:stop] for name, values in ood.items()}
    return part | {"id": np.array([f"tweet-{row}" for row in range(start, stop)])}


def held_out() -> Arrays:
    """The held-out data of `few_reviews`."""
    with np.load(EXAMPLES / "valid.npz") as valid:
        return {name: values[:HELD_OUT_ROWS] for name, values in valid.items()}


def request_file(reviews: Bench, path: Path, calibration_id: int | None = None) -> EvaluationRequest:
    return request_evaluation_of_source(
        reviews.workspace(chunk_rows=128), "reviews", FileSource(path), calibration_id=calibration_id
    )


def run(reviews: Bench, request: EvaluationRequest) -> DatasetReport:
    if request.job_id is not None:
        reviews.run(request.job_id)
    return compare_methods(reviews.workspace(), request, "tweets")


def figures(report: DatasetReport) -> object:
    """What a report shows of the points; a share of nothing, which is NaN, as a text, so that it equals itself."""
    return finite_json({key: value for key, value in report_payload(report).items() if key != "calibration"})


@pytest.fixture(scope="module")
def evaluated(
    server_url: str, few_reviews_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Bench, Path, DatasetReport]]:
    """A copy of `few_reviews`, a file of tweets, and the report on it; to be left as they are."""
    with fresh_engine(server_url, few_reviews_template) as engine:
        bench = Bench(engine, tmp_path_factory.mktemp("evaluated"))
        path = bench.write("tweets.npz", tweets())
        yield bench, path, run(bench, request_file(bench, path))


@pytest.fixture
def report(evaluated: tuple[Bench, Path, DatasetReport]) -> DatasetReport:
    """That on tweets, by the calibration of `few_reviews`."""
    return evaluated[-1]


def test_venn_admit_rows_are_the_decisions_of_score(evaluated: tuple[Bench, Path, DatasetReport]) -> None:
    bench, path, report = evaluated
    label = tweets()["y"]
    for name, weighted in (("Venn-ADMIT plain", False), ("Venn-ADMIT weighted", True)):
        decision = bench.score("reviews", path, weighted=weighted).column("decision")
        admitted = ~np.isnan(decision)
        assert admitted.any()
        assert report.method(name).overall == Tally(int((decision == label).sum()), int(admitted.sum()), 300)
    sets = bench.score("reviews", path).table.column("set").to_pylist()
    single = [(classes[0], y) for classes, y in zip(sets, label, strict=True) if len(classes) == 1]
    assert report.method("ADMIT").overall == Tally(sum(c == y for c, y in single), len(single), 300)


def test_all_methods_in_the_order_of_the_paper(report: DatasetReport) -> None:
    assert [method.name for method in report.methods] == METHODS
    assert [row.name for row in report.accuracy] == ["network", "KNN", "localizer"]


class Watched:
    """What is shown meanwhile: each step, of how many points if that is said, and how many of them are done."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None, list[int]]] = []

    def show(self, what: str, total: int | None = None) -> None:
        self.steps.append((what, total, []))

    def advance(self, rows: int) -> None:
        self.steps[-1][2].append(rows)


def test_methods_that_take_long_tell_how_many_points_are_done(few_reviews: Bench) -> None:
    request = request_file(few_reviews, few_reviews.write("tweets.npz", tweets()))
    if request.job_id is not None:
        few_reviews.run(request.job_id)
    watched = Watched()
    compare_methods(few_reviews.workspace(memory_budget=1), request, "tweets", display=watched)
    counted = {what.removeprefix("Comparing "): done for what, total, done in watched.steps if total}
    assert list(counted) == ["LocalConf_BASE", "LocalConf corrected"]
    assert max(len(what) for what, *_ in watched.steps) < 38, "with a bar and its figures, 80 columns hold it"
    assert all(sum(done) == total and len(done) > 4 for _, total, done in watched.steps if total)


def test_the_same_report_in_whatever_order_the_data_came(
    few_reviews: Bench, report: DatasetReport, tmp_path: Path
) -> None:
    shuffled = np.random.default_rng(0).permutation(HELD_OUT_ROWS)
    in_another_order = {name: values[shuffled] for name, values in held_out().items()}
    (tmp_path / "other").mkdir()
    other = Bench(few_reviews.engine, tmp_path / "other")
    ids = few_reviews.rows(
        "SELECT external_id FROM exemplar INNER JOIN classifier ON classifier_id = classifier.id "
        "WHERE split IN ('knn', 'mc', 'vp') ORDER BY exemplar.id"
    )
    in_another_order["id"] = np.array([row.external_id for row in ids])[shuffled]
    other.create("again", dimension=128)
    other.ingest("again", EXAMPLES / "train.npz", "train")
    other.ingest("again", other.write("shuffled.npz", in_another_order), "held-out")
    other.adopt("again")
    other.calibrate("again", kappa=100)
    backwards = {name: values[::-1] for name, values in tweets().items()}
    request = request_evaluation_of_source(
        other.workspace(chunk_rows=77), "again", FileSource(other.write("tweets.npz", backwards)), calibration_id=None
    )
    assert figures(run(other, request)) == figures(report)


def rows_of_job(reviews: Bench, request: EvaluationRequest) -> object:
    return reviews.value("SELECT row_count FROM job WHERE id = :job", job=request.job_id)


class TestWhichPoints:
    """The comparison is of the points that are requested, which the reports above show."""

    def test_of_a_file_the_labelled_rows_each_once(self, few_reviews: Bench) -> None:
        arrays = tweets()
        arrays["y"] = np.where(np.arange(300) < 100, -1, arrays["y"])
        twice = {name: np.concatenate([values, values[150:160]]) for name, values in arrays.items()}
        request = request_file(few_reviews, few_reviews.write("tweets.npz", twice))
        assert (request.labelled.ids.size, request.labelled.seen_count) == (200, 0)
        assert rows_of_job(few_reviews, request) == 200

    def test_what_is_decided_is_not_decided_again(self, few_reviews: Bench) -> None:
        path = few_reviews.write("tweets.npz", tweets())
        few_reviews.score("reviews", path)
        request = request_file(few_reviews, path)
        assert request.labelled.ids.size == 300
        assert request.job_id is None

    def test_all_labelled_decisions_of_a_calibration(self, few_reviews: Bench) -> None:
        few_reviews.score("reviews", few_reviews.write("tweets.npz", tweets()))
        few_reviews.score("reviews", EXAMPLES / "test.npz", weighted=False)
        few_reviews.calibrate("reviews", kappa=60)
        of_first = request_evaluation_of_decisions(few_reviews.workspace(), "reviews", calibration_id=1)
        assert rows_of_job(few_reviews, of_first) == 488
        assert of_first.labelled.ids.size == 788
        with pytest.raises(InvalidInputError, match="calibration 2 of 'reviews' has decided on no labelled exemplar"):
            request_evaluation_of_decisions(few_reviews.workspace(), "reviews", calibration_id=None)

    def test_what_the_calibration_was_made_with_is_left_out(self, few_reviews: Bench) -> None:
        with np.load(EXAMPLES / "valid.npz") as valid:
            seen = {name: values[:40] for name, values in valid.items()}
        seen["id"] = np.array([row.external_id for row in few_reviews.rows(IDS_OF_HELD_OUT)])[:40]
        arrays = tweets(stop=60)
        mixed = {name: np.concatenate([arrays[name], seen[name]]) for name in ("id", "r", "f", "y")}
        mixed["doc"] = np.concatenate([arrays["doc"].astype(str), seen["doc"].astype(str)])
        request = request_file(few_reviews, few_reviews.write("mixed.npz", mixed))
        assert (request.labelled.ids.size, request.labelled.seen_count) == (60, 40)
        assert rows_of_job(few_reviews, request) == 60

    def test_labels_of_chosen_points_are_counted(self, few_reviews: Bench) -> None:
        arrays = tweets(stop=60)
        few_reviews.score("reviews", few_reviews.write("tweets.npz", arrays | {"y": np.full(60, -1)}))
        for selection, rows in (("random", slice(0, 30)), ("selected", slice(20, 40)), ("selected", slice(50, 60))):
            path = few_reviews.folder / "labels.csv"
            named = zip(arrays["id"][rows], arrays["y"][rows], strict=True)
            path.write_text("\n".join(["external_id,label", *(f"{key},{label}" for key, label in named)]) + "\n")
            label(few_reviews.engine, "reviews", LabelFile(path), selection=selection, retract=False)
        found = request_evaluation_of_decisions(few_reviews.workspace(), "reviews", calibration_id=None).labelled
        assert (found.ids.size, found.seen_count) == (50, 0)
        assert found.chosen_count == 20, "what was drawn at random goes on being so"
        for retract, given in ((True, [""] * 10), (False, arrays["y"][:10])):
            named = zip(arrays["id"][:10], given, strict=True)
            path.write_text("\n".join(["external_id,label", *(f"{key},{label}" for key, label in named)]) + "\n")
            label(few_reviews.engine, "reviews", LabelFile(path), selection="selected", retract=retract)
        found = request_evaluation_of_decisions(few_reviews.workspace(), "reviews", calibration_id=None).labelled
        assert (found.ids.size, found.chosen_count) == (50, 30), "a random label that was taken back is none"
        of_file = request_file(few_reviews, few_reviews.write("again.npz", arrays)).labelled
        assert (of_file.ids.size, of_file.chosen_count) == (60, 0), "a file is what its shares are of"

    def test_nothing_but_calibration_data(self, few_reviews: Bench) -> None:
        with pytest.raises(InvalidInputError, match=r"all 4,000 labelled rows .* calibration 1, and say nothing"):
            request_file(few_reviews, few_reviews.write("valid.npz", held_out()))

    def test_no_label_and_nothing_is_stored(self, few_reviews: Bench) -> None:
        arrays = tweets() | {"y": np.full(300, -1)}
        before = few_reviews.value("SELECT count(*) FROM exemplar")
        with pytest.raises(InvalidInputError, match="expected labelled rows"):
            request_file(few_reviews, few_reviews.write("tweets.npz", arrays))
        assert few_reviews.value("SELECT count(*) FROM exemplar") == before
        assert few_reviews.value("SELECT count(*) FROM job WHERE kind = 'score'") == 0

    def test_before_the_first_calibration(self, few_reviews: Bench) -> None:
        few_reviews.create("new", dimension=128)
        with pytest.raises(NotReadyError, match="no calibration yet"):
            request_evaluation_of_decisions(few_reviews.workspace(), "new", calibration_id=None)


def test_sets_promise_their_label_where_bands_part_the_points(few_reviews: Bench, report: DatasetReport) -> None:
    """An infinite delta parts them; the bands of the other calibration overlap."""
    few_reviews.calibrate("reviews", kappa=60, delta=math.inf)
    parted = run(few_reviews, request_file(few_reviews, few_reviews.write("tweets.npz", tweets())))
    assert [report_payload(one)["methods"]["ADMIT"]["promise"] for one in (report, parted)] == ["none", "sets"]


IDS_OF_HELD_OUT = "SELECT external_id FROM exemplar WHERE split IN ('knn', 'mc', 'vp') ORDER BY id"


def test_an_older_calibration_is_compared_with_its_own_data(few_reviews: Bench, report: DatasetReport) -> None:
    """Held-out data that come later change nothing in what a snapshot is compared with, but for split knn."""
    path = few_reviews.write("tweets.npz", tweets())
    few_reviews.ingest("reviews", few_reviews.write("later.npz", tweets(300, 1300)), "vp")
    few_reviews.calibrate("reviews", kappa=100)
    after = run(few_reviews, request_file(few_reviews, path, calibration_id=1))
    assert figures(after) == figures(report)
    current = run(few_reviews, request_file(few_reviews, path))
    assert figures(current) != figures(report)
