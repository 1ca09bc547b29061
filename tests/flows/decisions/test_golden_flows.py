"""The independent reference's results through the database: every flow, and what comes out of its files."""

import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from tests.conftest import fresh_engine
from tests.running import Bench, Golden, Scores, column
from venn_admit.core.approximation.knn import nonconformity
from venn_admit.core.types import BoolArray, FloatArray
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.flows.data.export import Export, export

CLASSIFIER = "golden"


class Run:
    """A golden file put through ingest, calibration, weighted and plain scoring, and every export."""

    def __init__(self, golden: Golden, bench: Bench) -> None:
        self.golden = golden
        golden.prepare(bench, CLASSIFIER)
        self.calibrated: Calibrated = bench.calibrate(CLASSIFIER, **golden.settings)
        to_score = bench.write("score.npz", golden.exemplars("score"))
        self.weighted = bench.score(CLASSIFIER, to_score)
        self.plain = bench.score(CLASSIFIER, to_score, weighted=False)
        # What calibrates can be scored like anything else, which shows its bands.
        self.vp = bench.score(CLASSIFIER, bench.folder / "vp.npz", weighted=False)
        self.neighbours = bench.export(CLASSIFIER, Export.NEIGHBOURS)
        self.approximations = bench.export(CLASSIFIER, Export.APPROXIMATIONS)
        self.calibration = bench.export(CLASSIFIER, Export.CALIBRATION)
        self.parameters_path = bench.folder / "parameters.json"
        export(bench.engine, CLASSIFIER, Export.PARAMETERS, self.parameters_path)


@pytest.fixture(scope="module", params=["sentiment", "edge"])
def run(
    request: pytest.FixtureRequest,
    server_url: str,
    template_database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Run]:
    with fresh_engine(server_url, template_database) as engine:
        yield Run(Golden(request.param), Bench(engine, tmp_path_factory.mktemp(request.param)))


def assert_close(found: npt.ArrayLike, expected: FloatArray) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=1e-6, atol=0)


def ids_of(part: str, count: int) -> list[str]:
    return [f"{part}-{row}" for row in range(count)]


def included(sets: list[list[int]], class_count: int) -> BoolArray:
    return np.array([[label in members for label in range(class_count)] for members in sets])


PARTS = pytest.mark.parametrize("part", ["mc", "vp", "score"])


@PARTS
def test_neighbours(run: Run, part: str) -> None:
    rows = [str(known).startswith(f"{part}-") for known in column(run.neighbours, "external_id")]
    found = run.neighbours.filter(rows)
    expected = run.golden[f"{part}_neighbours"]
    assert found["external_id"].to_pylist() == ids_of(part, len(expected))
    numbers = [
        [int(neighbour.removeprefix("train-")) for neighbour in neighbours]
        for neighbours in found["neighbour_ids"].to_pylist()
    ]
    np.testing.assert_array_equal(numbers, expected)
    assert_close(column(found, "distances"), run.golden[f"{part}_distances"])


@PARTS
def test_approximations(run: Run, part: str) -> None:
    split = "scored" if part == "score" else part
    found = run.approximations.filter(column(run.approximations, "split") == split)
    assert found["external_id"].to_pylist() == ids_of(part, len(run.golden[f"{part}_q"]))
    np.testing.assert_array_equal(column(found, "predicted"), run.golden[f"{part}_predicted"])
    np.testing.assert_array_equal(column(found, "q"), run.golden[f"{part}_q"])
    assert_close(column(found, "logits"), run.golden[f"{part}_logits"])
    assert_close(column(found, "d"), run.golden[f"{part}_d"])


@pytest.mark.parametrize("split", ["mc", "vp"])
def test_calibration_points(run: Run, split: str) -> None:
    found = run.calibration.filter(column(run.calibration, "split") == split)
    labels = run.golden[f"{split}_y"].astype(np.int64)
    assert found["external_id"].to_pylist() == ids_of(split, len(labels))
    np.testing.assert_array_equal(column(found, "label"), labels)
    np.testing.assert_array_equal(column(found, "predicted"), run.golden[f"{split}_predicted"])
    np.testing.assert_array_equal(column(found, "q"), run.golden[f"{split}_q"])
    assert_close(column(found, "d"), run.golden[f"{split}_d"])
    assert_close(column(found, "score"), nonconformity(run.golden[f"{split}_logits"], labels))
    if split == "vp":
        np.testing.assert_array_equal(included(found["set"].to_pylist(), run.golden.class_count), run.golden["vp_set"])
    else:
        assert found["set"].null_count == len(labels)


def test_parameters(run: Run) -> None:
    written = json.loads(run.parameters_path.read_text())
    for name in ("s_hat", "omega"):
        assert_close(written[name], run.golden[name])
        assert_close(getattr(run.calibrated.by_admit.radius, name), run.golden[name])
    for name in ("beta", "gamma", "eta", "eta_loc", "alpha", "delta", "kappa"):
        assert written[name] == run.golden[name].tolist()
    assert written["q_bins"] == list(range(int(run.golden["K"]) + 1))
    assert written["thresholds"] == [1 - run.golden["alpha"]] * run.golden.class_count


def assert_sets(golden: Golden, scores: Scores, part: str) -> None:
    count = len(golden[f"{part}_y"])
    assert scores.table["external_id"].to_pylist() == ids_of(part, count)
    np.testing.assert_array_equal(included(scores.table["set"].to_pylist(), golden.class_count), golden[f"{part}_set"])
    np.testing.assert_array_equal(scores.column("band_size"), golden[f"{part}_band_size"])
    assert_close(scores.column("threshold"), golden[f"{part}_threshold"])
    np.testing.assert_array_equal(scores.column("predicted"), golden[f"{part}_predicted"])
    np.testing.assert_array_equal(scores.column("q"), golden[f"{part}_q"])
    assert_close(scores.column("logits"), golden[f"{part}_logits"])
    assert_close(scores.column("d"), golden[f"{part}_d"])


def test_sets_of_vp(run: Run) -> None:
    assert_sets(run.golden, run.vp, "vp")
    assert run.calibrated.by_admit.singleton_count == (run.golden["vp_set"].sum(axis=1) == 1).sum()


@pytest.mark.parametrize("kind", ["weighted", "plain"])
def test_scores(run: Run, kind: str) -> None:
    golden, scores = run.golden, run.weighted if kind == "weighted" else run.plain
    assert_sets(golden, scores, "score")
    np.testing.assert_array_equal(scores.column("category_size"), golden["score_category_size"])
    assert_close(scores.column("lower"), golden[f"score_lower_{kind}"])
    decisions = golden[f"score_decision_{kind}"]
    np.testing.assert_array_equal(np.nan_to_num(scores.column("decision"), nan=-1), decisions)

    singleton = golden["score_set"].sum(axis=1) == 1
    upweight = golden["score_upweight"] if kind == "weighted" else np.where(singleton, 1.0, np.nan)
    assert_close(scores.column("upweight"), upweight)
    total = golden["score_category_size"] + upweight
    with np.errstate(invalid="ignore"):  # an infinite up-weight: the probability lies anywhere
        upper = golden[f"score_lower_{kind}"] + upweight / total
    assert_close(scores.column("upper"), np.where(np.isinf(upweight), 1.0, upper))


@pytest.mark.parametrize("kind", ["weighted", "plain"])
def test_reasons(run: Run, kind: str) -> None:
    golden, scores = run.golden, run.weighted if kind == "weighted" else run.plain
    starved = golden["score_band_size"].min(axis=1) < golden["kappa"]
    singleton = golden["score_set"].sum(axis=1) == 1
    expected = np.select(
        [golden[f"score_decision_{kind}"] >= 0, starved, ~singleton],
        ["", "band below kappa", "set not a singleton"],
        "probability below threshold",
    )
    assert scores.table["reason"].to_pylist() == [reason or None for reason in expected.tolist()]
    assert set(scores.column("calibration")) == {run.calibrated.calibration_id}


def test_both_decisions_are_kept_apart(run: Run) -> None:
    assert run.weighted.request.job_id != run.plain.request.job_id
    assert run.weighted.table != run.plain.table
