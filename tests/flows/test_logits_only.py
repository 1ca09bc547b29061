"""A classifier with logits only: ingested, calibrated, decided on, replayed, exported; without a vector anywhere."""

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.core.calibrators.venn_abers.isotonic import bounds_of
from tests.counting import traffic
from tests.flows.logits import ALPHA, CLASSES, NAME, calibrated, exemplars, make, prepared
from tests.running import ADDED_TO_ABERS, Bench
from tests.templates import CopyOf, Filled
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.types import KnnParameters
from venn_admit.errors import Code, InvalidInputError, NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.calibrate import request_approximations, settings_for
from venn_admit.flows.calibration.fit import adopt_parameters, request_neighbours
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.data.export import Export, export
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions import hnsw_index
from venn_admit.flows.decisions.replay import replay, replay_newest
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.notify import update_behind
from venn_admit.flows.reports.what_if_settings import what_if_settings
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.store.search.array_cache import ArrayCache

OF_VECTORS = ("exemplar_vector", "neighbours", "approximation", "knn_parameters", "support_change")
STORED = """
SELECT decision.*, abers_evidence.*
FROM job_row
INNER JOIN decision USING (exemplar_id)
INNER JOIN abers_evidence ON decision.id = decision_id
WHERE job_id = :job_id
ORDER BY row_number
"""


@pytest.fixture(scope="module")
def template(filled: Filled) -> str:
    return filled(prepared)


@pytest.fixture
def logits(copy_of: CopyOf, template: str) -> Bench:
    """The classifier, calibrated."""
    return copy_of(template)


class TestData:
    def test_held_out_data_calibrate_by_document_and_nothing_is_fitted(self, bench: Bench) -> None:
        make(bench)
        done = bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 800, seed=1)), "held-out")
        assert done.new_per_split.keys() == {"mc", "vp"}
        assert 0.4 < done.new_per_split["mc"] / done.new < 0.6
        split = bench.rows("SELECT document_id, count(DISTINCT split) AS splits FROM exemplar GROUP BY document_id")
        assert {row.splits for row in split} == {1}
        again = bench.ingest(NAME, bench.folder / "held-out.npz", "held-out")
        assert (again.new, again.rows) == (0, 800)

    def test_there_is_no_room_for_vectors(self, logits: Bench) -> None:
        assert [logits.value(f"SELECT count(*) FROM {table}") for table in OF_VECTORS] == [0] * len(OF_VECTORS)
        assert logits.rows("SELECT 1 FROM pg_inherits WHERE inhparent = 'exemplar_vector'::regclass") == []

    def test_a_file_with_vectors_is_refused_whole(self, bench: Bench) -> None:
        make(bench)
        path = bench.write("held-out.npz", exemplars("a", 10, seed=1) | {"r": np.zeros((10, 4), dtype=np.float32)})
        with pytest.raises(InvalidInputError, match=r"array 'r': expected none.*shape \(10, 4\).*leave the") as refused:
            bench.ingest(NAME, path, "held-out")
        assert refused.value.code == Code.VECTORS_UNWANTED
        assert bench.value("SELECT count(*) FROM exemplar") == 0

    @pytest.mark.parametrize("split", ["train", "knn"])
    def test_nothing_trains_or_fits(self, bench: Bench, split: str) -> None:
        make(bench)
        path = bench.write("rows.npz", exemplars("a", 10, seed=1))
        with pytest.raises(InvalidInputError, match=f"split {split} needs vectors") as refused:
            bench.ingest(NAME, path, split)
        assert (refused.value.code, refused.value.parameters) == (Code.NO_VECTORS, {"classifier": NAME})

    def test_divided_data_stay_as_they_are(self, bench: Bench) -> None:
        make(bench)
        for split, seed in (("mc", 1), ("vp", 2)):
            assert bench.ingest(NAME, bench.write(f"{split}.npz", exemplars(split, 50, seed)), split).new_per_split == {
                split: 50
            }
        assert calibrated(bench).mc_count == 50

    @pytest.mark.parametrize(
        ("given", "saying"),
        [
            ({"logits_only": True, "dimension": 3}, "no length of vectors .* got 3"),
            ({"logits_only": True, "neighbour_count": 5}, "no number of neighbours .* got 5"),
            (
                {"neighbour_count": 5},
                "expected the length of the vectors, or a classifier with logits only, got neither",
            ),
        ],
    )
    def test_what_it_is_made_of_is_one_or_the_other(self, bench: Bench, given: dict[str, Any], saying: str) -> None:
        with pytest.raises(InvalidInputError, match=saying):
            create(bench.engine, NAME, ("a", "b"), seed=0, **given)


class TestDecisions:
    def test_scores_are_those_of_isotonic_regression(self, logits: Bench) -> None:
        """Refitted for each point in rational numbers, on what SQL says of mc."""
        rows = exemplars("new", 200, seed=2)
        table = logits.score(NAME, logits.write("new.npz", rows), weighted=None).table.to_pylist()
        mc = logits.rows("SELECT predicted, label, score FROM calibration_point")
        predicted, right = np.array([row.predicted for row in mc]), np.array([row.predicted == row.label for row in mc])
        score = np.array([row.score for row in mc])
        for found, probability in zip(table, softmax(rows["f"]), strict=True):
            assert (found["predicted"], found["score"]) == (int(probability.argmax()), probability.max())
            cell = predicted == found["predicted"]
            expected = bounds_of(score[cell], right[cell], found["score"])
            assert (Fraction(found["lower"]), Fraction(found["upper"])) == tuple(
                Fraction(float(bound)) for bound in expected
            )
            admitted = found["lower"] >= float(1 - ALPHA)
            assert found["decision"] == (found["predicted"] if admitted else None)
        assert {found["decision"] is None for found in table} == {True, False}
        absent = ("logits", "q", "d", "set", "band_size", "threshold", "category_size")
        assert {found[name] for found in table for name in absent} == {None}
        assert {(found["upweight"], found["method"]) for found in table} == {(1.0, "venn-abers")}

    def test_one_point_is_that_of_a_job_and_replays(self, logits: Bench) -> None:
        rows = exemplars("new", 100, seed=2)
        job = logits.score(NAME, logits.write("new.npz", rows), weighted=None)
        stored = logits.rows(STORED, job_id=job.request.job_id)
        scorer = PointScorer(logits.workspace())
        for row, point in zip(stored, rows["f"], strict=True):
            found = scorer.score(NAME, None, logits=point)
            assert found.fields == {field: row._mapping[field] for field in found.fields}
            assert (found.nearest, found.fields["match_count"], found.fields["distance"]) == (None, None, None)
            replayed = replay(logits.workspace(), row.id)
            assert (replayed.differing, replayed.near) == ((), [])
        assert replay_newest(logits.workspace(), NAME, "new-7").row.id == stored[7].id

    def test_neither_chunks_nor_their_order_nor_that_of_rows_matter(self, logits: Bench) -> None:
        rows = exemplars("new", 101, seed=2)
        one = logits.score(NAME, logits.write("new.npz", rows), weighted=None).table
        with_others = calibrated(logits).calibration_id
        some = logits.score(NAME, logits.folder / "new.npz", weighted=None, chunk_rows=7, backwards=True).table
        turned = {name: values[::-1] for name, values in rows.items()}
        last = logits.score(NAME, logits.write("turned.npz", turned), weighted=None, calibration_id=1).table
        assert set(some.column("calibration").to_pylist()) == {with_others}
        assert one.drop(["calibration"]).equals(some.drop(["calibration"]))
        assert one.take(np.arange(101)[::-1]).equals(last)

    def test_it_decides_as_a_classifier_with_vectors_does(self, bench: Bench) -> None:
        """With the same method and score, on the same points of mc."""
        generator = np.random.default_rng(3)
        held_out, new = exemplars("held-out", 400, seed=1), exemplars("new", 100, seed=2)
        bench.create("vectors", dimension=2, class_count=CLASSES, neighbour_count=3)
        make(bench)
        train = exemplars("train", 30, seed=4)
        for split, rows in (("train", train), ("mc", held_out), ("vp", exemplars("vp", 50, seed=5))):
            with_vectors = rows | {"r": generator.normal(size=(len(rows["y"]), 2)).astype(np.float32)}
            bench.ingest("vectors", bench.write("rows.npz", with_vectors), split)
            if split != "train":
                bench.ingest(NAME, bench.write("rows.npz", rows), split)
        bench.adopt("vectors", KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0)
        bench.calibrate_abers("vectors", score="network", alpha=ALPHA)
        calibrated(bench)
        vectors = generator.normal(size=(100, 2)).astype(np.float32)
        seen = bench.score("vectors", bench.write("new.npz", new | {"r": vectors}), weighted=None).table
        bare = bench.score(NAME, bench.write("new.npz", new), weighted=None).table
        same = ["external_id", "predicted", "score", "lower", "upper", "decision", "reason", "upweight"]
        assert bare.select(same).equals(seen.select(same))

    def test_nothing_of_vectors_is_read_or_written(self, logits: Bench) -> None:
        path = logits.write("new.npz", exemplars("new", 300, seed=2))
        with traffic(logits.engine) as counted:
            logits.score(NAME, path, weighted=None)
        assert counted.copied_in == {
            "exemplar": 300,
            "label_event": 300,
            "job_row": 300,
            "decision": 300,
            "abers_evidence": 300,
        }
        # The logits of the points, and those of mc that the snapshot consists of.
        assert counted.copied_out == 300 + logits.value("SELECT mc_count FROM calibration")
        assert not (logits.folder / "cache").exists()

    @pytest.mark.processes
    def test_deciding_imports_no_torch(self, logits: Bench) -> None:
        program = (
            "import sys, venn_admit; connection = venn_admit.connect(sys.argv[1], home=sys.argv[2]); "
            f"print(connection.classifier({NAME!r}).decide(logits=[3.0, 0.0, 0.0]).predicted, 'torch' in sys.modules)"
        )
        url = logits.engine.url.render_as_string(hide_password=False)
        ran = subprocess.run(
            [sys.executable, "-c", program, url, str(logits.folder)], capture_output=True, text=True, check=True
        )
        assert ran.stdout == "class 0 False\n"


def _scored(bench: Bench, **options: Any) -> object:
    path = bench.write("new.npz", exemplars("new", 9, seed=2))
    return bench.request_score(NAME, path, **({"weighted": None} | options))


def _decided(bench: Bench, **options: Any) -> object:
    return PointScorer(bench.workspace()).score(NAME, None, logits=np.zeros(CLASSES, np.float32), **options)


REFUSED: dict[str, tuple[Callable[[Bench], object], str]] = {
    "venn-admit": (
        lambda b: settings_for(find(b.engine, NAME), "venn-admit", {}),
        "the method venn-admit",
    ),
    "reliability": (lambda b: calibrated(b, score="reliability"), "the reliability score"),
    "bins": (lambda b: calibrated(b, q_bins=[0, 1]), "more than one bin of q"),
    "approximations": (lambda b: request_approximations(b.workspace(chunk_rows=9), NAME), "an approximation"),
    "fit": (lambda b: request_neighbours(b.workspace(chunk_rows=9), NAME), "a fit"),
    "parameters": (
        lambda b: adopt_parameters(b.engine, NAME, KnnParameters(np.zeros(3), np.ones(3), 1.0), 1.0),
        "a KNN",
    ),
    "index": (lambda b: hnsw_index.find_index(b.engine, NAME), "an HNSW index"),
    "new index": (lambda b: hnsw_index.create_index(b.engine, NAME, m=4, ef_construction=8), "an HNSW index"),
    "old index": (lambda b: hnsw_index.drop_index(b.engine, NAME), "an HNSW index"),
    "audit": (lambda b: hnsw_index.audit(b.workspace(), NAME, sample=5, ef_searches=[5]), "an HNSW index"),
    "weighted job": (lambda b: _scored(b, weighted=True), "a weighted decision"),
    "full match in a job": (lambda b: _scored(b, require_full_match=True), "a full match"),
    "weighted point": (lambda b: _decided(b, weighted=True), "a weighted decision"),
    "full match of a point": (lambda b: _decided(b, require_full_match=True), "a full match"),
    "search": (lambda b: _decided(b, hnsw_ef_search=10), "a search"),
    "neighbours": (lambda b: export(b.engine, NAME, Export.NEIGHBOURS, b.folder / "x.csv"), "a neighbour list"),
    "views": (lambda b: export(b.engine, NAME, Export.APPROXIMATIONS, b.folder / "x.csv"), "an approximation"),
    "support": (lambda b: ArrayCache(b.folder).support(b.engine, make(b, "other")), "this"),
    "bins of q to try": (
        lambda b: what_if_settings(b.workspace(), NAME, "q_bins", [(0, 1)]),
        "more than one bin of q",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_vectors_is_refused(logits: Bench, case: str) -> None:
    call, what = REFUSED[case]
    with pytest.raises(
        InvalidInputError, match=f"^{what} needs vectors, and classifier '.*' has logits only"
    ) as refused:
        call(logits)
    assert refused.value.code == Code.NO_VECTORS
    assert logits.value("SELECT count(*) FROM job") == 0
    assert logits.value("SELECT count(*) FROM calibrator") == 1


def test_training_on_labels_is_refused(logits: Bench) -> None:
    path = logits.folder / "labels.csv"
    path.write_text("external_id,label\nheld-out-0,1\n")
    with pytest.raises(InvalidInputError, match="training needs vectors"):
        label(logits.engine, NAME, LabelFile(path), selection="selected", retract=False, join_train=True)


@pytest.mark.parametrize(
    ("vector", "logits_given", "saying"),
    [
        (np.zeros(3, np.float32), np.zeros(3, np.float32), "has no vectors, got a vector; leave it out"),
        (None, None, "expected the network's logits"),
        (None, np.zeros(2, np.float32), "^logits: expected 3 numbers, got 2"),
        (None, np.array([0, np.nan, 0], np.float32), "expected 3 finite numbers"),
    ],
)
def test_a_point_is_its_logits(logits: Bench, vector: Any, logits_given: Any, saying: str) -> None:
    with pytest.raises(InvalidInputError, match=saying):
        PointScorer(logits.workspace()).score(NAME, vector, logits=logits_given)


def test_a_classifier_with_vectors_asks_for_one(edge: Bench) -> None:
    with pytest.raises(InvalidInputError, match="expected a vector, which classifier 'edge' decides on"):
        PointScorer(edge.workspace()).score("edge", None, logits=np.zeros(3, np.float32))


def test_auto_stands_for_the_score_of_the_network(logits: Bench) -> None:
    again = calibrated(logits, score="network")
    assert (again.calibrator_id, again.changed.opened, again.changed.closed) == (1, 0, 0)
    assert logits.rows("SELECT method, score, bin_edges FROM calibrator") == [("venn-abers", "network", [0])]
    assert logits.rows("SELECT score, documents FROM score_choice") == [("network", None)] * 2


def test_too_little_to_calibrate_with(bench: Bench) -> None:
    make(bench)
    with pytest.raises(NotReadyError, match="split mc of 'logits' holds no labelled exemplar"):
        calibrated(bench)


def test_what_is_exported(logits: Bench) -> None:
    logits.score(NAME, logits.write("new.npz", exemplars("new", 60, seed=2)), weighted=None)
    held = logits.value("SELECT mc_count FROM calibration")
    points = logits.export(NAME, Export.CALIBRATION)
    assert (points.num_rows, *(points.column(name).null_count for name in ("q", "d", "set"))) == (held,) * 4
    assert points.column("score").null_count == 0
    assert logits.export(NAME, Export.EXEMPLARS).num_rows == 860
    out = logits.folder / "parameters.json"
    export(logits.engine, NAME, Export.PARAMETERS, out)
    settings = {"alpha": 0.2, "thresholds": [0.8] * CLASSES, "q_bins": [0]}
    assert json.loads(out.read_text()) == settings | ADDED_TO_ABERS
    unlabelled = {name: values for name, values in exemplars("later", 40, seed=6).items() if name != "y"}
    logits.score(NAME, logits.write("later.npz", unlabelled), weighted=None)
    listed = logits.export(NAME, Export.UNLABELLED).to_pydict()
    assert len(listed["external_id"]) == 100, "those that were scored with a label do not calibrate either"
    known = zip(listed["external_id"], listed["label"], strict=True)
    assert {name for name, label in known if label is None} == set(unlabelled["id"])


def test_beat_looks_after_its_monitor(logits: Bench) -> None:
    assert update_behind(logits.engine, None) == [NAME]
    assert update_behind(logits.engine, None) == []


def test_beat_leaves_a_mean_loss_alone(logits: Bench) -> None:
    costly = tuple(tuple(0.0 if true == predicted else 0.9 for predicted in range(CLASSES)) for true in range(CLASSES))
    calibrated(logits, certify=["predicted"], alpha=Decimal("0.3"), loss=costly)
    assert update_behind(logits.engine, None) == []
    with pytest.raises(InvalidInputError, match="promises a mean loss"):
        update_monitor(logits.engine, NAME)


def test_a_certificate_needs_no_vectors(bench: Bench) -> None:
    """The policy is tested on vp, decides many and one alike, and replays."""
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 4000, seed=1)), "held-out")
    done = calibrated(bench, certify=["predicted"], alpha=Decimal("0.1"))
    assert isinstance(done.made, MadeByAbers)
    assert done.made.certificate is not None
    assert done.vp_count > 0
    again = calibrated(bench, certify=["predicted"], alpha=Decimal("0.1"))
    assert (again.changed.closed, again.changed.opened) == (0, 0)
    rows = exemplars("new", 60, seed=2)
    job = bench.score(NAME, bench.write("new.npz", rows), weighted=None)
    assert 0 < job.table.column("decision").null_count < 60
    scorer = PointScorer(bench.workspace())
    for row, point in zip(bench.rows(STORED, job_id=job.request.job_id), rows["f"], strict=True):
        found = scorer.score(NAME, None, logits=point)
        assert found.fields == {field: row._mapping[field] for field in found.fields}
        assert replay(bench.workspace(), row.id).differing == ()


def test_views_show_nothing_where_there_is_nothing(logits: Bench) -> None:
    logits.score(NAME, logits.write("new.npz", exemplars("new", 60, seed=2)), weighted=None)
    decided = logits.rows("SELECT q, d, lower FROM report.decision_v2")
    assert {(row.q, row.d) for row in decided} == {(None, None)}
    assert all(row.lower is not None for row in decided)
    partitions = logits.rows("SELECT * FROM report.partition_v2 ORDER BY label")
    assert len(partitions) == CLASSES
    assert {(row.bin, row.d_quartile, row.d_from, row.d_below) for row in partitions} == {(0, None, None, None)}
    (calibration,) = logits.rows("SELECT * FROM report.calibration_v2")
    assert (calibration.knn_parameters, calibration.parameters_origin) == (None, None)
    assert sum(row.points for row in partitions) == calibration.mc_count
    (accuracy,) = logits.rows(
        "SELECT admitted, correct, points FROM report.selective_accuracy_v4 WHERE per = 'all' AND NOT q_equals_k"
    )
    (truth,) = logits.rows(
        "SELECT count(decision) AS admitted, count(*) FILTER (WHERE decision = label) AS correct, count(*) AS points "
        "FROM report.decision_v2"
    )
    assert accuracy == truth
