"""Ten classes on real data: decisions are what the procedure gives, point by point, and are right."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.conftest import fresh_engine
from tests.running import EXAMPLES, Arrays, Bench
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.splits import assign_splits
from venn_admit.core.types import BoolArray, CalibrationPoints, FloatArray, IntArray
from venn_admit.flows.calibration.fit import Fitted
from venn_admit.flows.decisions.replay import replay

DIGITS = EXAMPLES.parent / "digits"
CLASS_COUNT = 10
NEIGHBOUR_COUNT = 10
FILES = ("test", "shifted")
KINDS = ("weighted", "plain")
COMPARED = slice(None, None, 4)  # rows of each file: the reference is slow
SETTINGS: dict[str, dict[str, Any]] = {
    "documented": {"kappa": 10, "delta": 2.0, "q_bins": (0, 1, 5)},  # in examples/README.md
    "large sets": {"alpha": Decimal("0.05"), "kappa": 3, "delta": 1.5, "q_bins": (0, 1, 5)},
}


def read(name: str) -> Arrays:
    with np.load(DIGITS / f"{name}.npz") as arrays:
        return dict(arrays)


class Run:
    """The digits fitted, calibrated in two ways, and both files scored, with and without weights."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.create("digits", dimension=64, class_count=CLASS_COUNT, neighbour_count=NEIGHBOUR_COUNT)
        bench.ingest("digits", DIGITS / "train.npz", "train")
        bench.ingest("digits", DIGITS / "valid.npz", "held-out")
        self.fitted = bench.fit("digits")
        self.calibrated = {name: bench.calibrate("digits", **settings) for name, settings in SETTINGS.items()}
        self.scores = {
            (settings, name, kind): bench.score(
                "digits",
                DIGITS / f"{name}.npz",
                weighted=kind == "weighted",
                calibration_id=calibrated.calibration_id,
            )
            for settings, calibrated in self.calibrated.items()
            for name in FILES
            for kind in KINDS
        }


@pytest.fixture(scope="module")
def run(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with fresh_engine(server_url, template_database) as engine:
        yield Run(Bench(engine, tmp_path_factory.mktemp("digits")))


@dataclass(frozen=True)
class View:
    """Sections 1 and 2 for n points: KNN(x) and 1 - pi (n, C), yhat, q and d (n,)."""

    logits: FloatArray
    class_score: FloatArray
    predicted: IntArray
    match_count: IntArray
    distance: FloatArray

    def features(self, row: int) -> tuple[int, int, float]:
        """Yhat, q and d of one."""
        return int(self.predicted[row]), int(self.match_count[row]), float(self.distance[row])

    def points(self, label: IntArray, rows: BoolArray) -> CalibrationPoints:
        """Some of them, by their labels, as calibration points."""
        own = self.class_score[np.arange(len(label)), label]
        return CalibrationPoints(
            label[rows], self.predicted[rows], self.match_count[rows], self.distance[rows], own[rows]
        )


def distances(vectors: FloatArray, others: FloatArray) -> FloatArray:
    return np.array([np.sqrt(np.square(others - vector).sum(axis=1)) for vector in vectors])


def view(fitted: Fitted, vectors: FloatArray) -> View:
    train, parameters = read("train"), fitted.parameters.knn
    labels, network = train["y"].astype(np.int64), train["f"].argmax(axis=1)
    signs = np.where(labels[:, np.newaxis] == np.arange(CLASS_COUNT), 1.0, -1.0)
    terms = np.tanh(train["f"].astype(np.float64)) + parameters.gamma * signs  # (N, C)
    logits, match_count, nearest = [], [], []
    for row in distances(vectors, train["r"].astype(np.float64)):
        order = np.argsort(row, kind="stable")[:NEIGHBOUR_COUNT]
        weights = np.exp((row[order[0]] - row[order]) / parameters.eta)
        logits.append(parameters.beta + weights @ terms[order] / weights.sum())
        agree = (network[order] == logits[-1].argmax()) & (labels[order] == logits[-1].argmax())
        match_count.append(NEIGHBOUR_COUNT if agree.all() else int(agree.argmin()))
        nearest.append(row[order[0]])
    exponentials = np.exp(np.array(logits))
    class_score = 1 - exponentials / exponentials.sum(axis=1, keepdims=True)
    return View(
        np.array(logits), class_score, np.array(logits).argmax(axis=1), np.array(match_count), np.array(nearest)
    )


class Snapshot:
    """Sections 3 to 5 for what calibrates: mc and vp with its sets, computed from the files and fitted parameters."""

    def __init__(self, fitted: Fitted, settings: CalibratorSettings) -> None:
        valid = read("valid")
        split = np.array(assign_splits(valid["id"].tolist(), seed=0))
        labels, vectors = valid["y"].astype(np.int64), valid["r"].astype(np.float64)
        known = view(fitted, vectors)
        self.fitted = fitted
        self.settings = settings
        self.mc, self.vp = known.points(labels, split == "mc"), known.points(labels, split == "vp")
        self.omega = reference.radius(self.mc, settings.delta)
        self.vp_vectors = vectors[split == "vp"]
        self.vp_included = included(self.sets(known, np.flatnonzero(split == "vp")))

    def sets(self, seen: View, rows: IntArray) -> list[reference.ReferenceSet]:
        return [
            reference.admit_set(seen.class_score[row], *seen.features(row), self.mc, self.settings, self.omega)
            for row in rows
        ]


class Expected:
    """What the procedure gives for the compared points of a file, one by one."""

    def __init__(self, snapshot: Snapshot, name: str) -> None:
        vectors = read(name)["r"][COMPARED].astype(np.float64)
        self.snapshot = snapshot
        self.view = view(snapshot.fitted, vectors)
        self.sets = snapshot.sets(self.view, np.arange(len(vectors)))
        edges, omega = snapshot.settings.q_bins, snapshot.omega
        self.categories = [
            reference.category(snapshot.vp, snapshot.vp_included, own_set, *self.view.features(row), edges, omega)
            for row, own_set in enumerate(included(self.sets))
        ]
        psi = np.exp(-distances(vectors, snapshot.vp_vectors) / snapshot.fitted.parameters.eta_loc)
        self.psi = psi / psi.sum(axis=1, keepdims=True)

    def interval(self, row: int, kind: str) -> tuple[float, float]:
        """Least and greatest probability of the prediction; NaN where the set is no singleton."""
        if len(self.sets[row].members) > 1:
            return np.nan, np.nan
        category = self.categories[row]
        weight = self.psi[row, category].sum() if kind == "weighted" else 1.0
        upweight = 1 / weight if weight else np.inf
        labels = self.snapshot.vp.label[category]
        return reference.venn_interval(labels, int(self.view.predicted[row]), CLASS_COUNT, upweight)

    def reason(self, row: int, lower: float) -> str | None:
        if self.sets[row].starved:
            return "band below kappa"
        if len(self.sets[row].members) > 1:
            return "set not a singleton"
        return None if lower >= float(1 - self.snapshot.settings.alpha) else "probability below threshold"


def included(sets: list[reference.ReferenceSet]) -> BoolArray:
    return np.array([[label in known.members for label in range(CLASS_COUNT)] for known in sets])


@pytest.fixture(scope="module")
def expected(run: Run) -> dict[tuple[str, str], Expected]:
    snapshots = {name: Snapshot(run.fitted, calibrated.settings) for name, calibrated in run.calibrated.items()}
    return {(settings, name): Expected(snapshots[settings], name) for settings in SETTINGS for name in FILES}


def assert_close(found: FloatArray, known: FloatArray) -> None:
    np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-9)


EACH_SETTINGS = pytest.mark.parametrize("settings", SETTINGS)
EACH_FILE = pytest.mark.parametrize("name", FILES)
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


@EACH_FILE
def test_approximations(run: Run, expected: dict[tuple[str, str], Expected], name: str) -> None:
    scores, known = run.scores["documented", name, "plain"], expected["documented", name].view
    assert scores.table["external_id"].to_pylist() == read(name)["id"].tolist()
    found = {key: scores.column(key)[COMPARED] for key in ("predicted", "q", "logits", "d")}
    np.testing.assert_array_equal(found["predicted"], known.predicted)
    np.testing.assert_array_equal(found["q"], known.match_count)
    assert_close(found["logits"], known.logits)
    assert_close(found["d"], known.distance)


@EACH_SETTINGS
@EACH_FILE
@EACH_KIND
def test_decisions(run: Run, expected: dict[tuple[str, str], Expected], settings: str, name: str, kind: str) -> None:
    scores, known = run.scores[settings, name, kind], expected[settings, name]
    assert scores.table["set"].to_pylist()[COMPARED] == [sorted(one.members) for one in known.sets]
    numbers = ("band_size", "threshold", "category_size", "lower", "upper", "decision")
    found = {key: scores.column(key)[COMPARED] for key in numbers}
    np.testing.assert_array_equal(found["band_size"], [one.band_size for one in known.sets])
    assert_close(found["threshold"], np.array([one.threshold for one in known.sets]))
    np.testing.assert_array_equal(found["category_size"], [len(rows) for rows in known.categories])

    lower, upper = np.array([known.interval(row, kind) for row in range(len(known.sets))]).T
    assert_close(found["lower"], lower)
    assert_close(found["upper"], upper)
    reasons = [known.reason(row, value) for row, value in enumerate(lower)]
    assert scores.table["reason"].to_pylist()[COMPARED] == reasons
    admitted = np.array([reason is None for reason in reasons])
    np.testing.assert_array_equal(found["decision"], np.where(admitted, known.view.predicted, np.nan))


def test_every_class_set_size_and_outcome_occurs(run: Run) -> None:
    assert set(run.scores["documented", "test", "weighted"].column("decision")) >= set(range(CLASS_COUNT))
    tables = [scores.table for scores in run.scores.values()]
    sizes = {len(members) for table in tables for members in table["set"].to_pylist()}
    assert sizes == set(range(1, CLASS_COUNT + 1))
    reasons = {reason for table in tables for reason in table["reason"].to_pylist()}
    assert reasons == {None, "band below kappa", "set not a singleton", "probability below threshold"}


@EACH_SETTINGS
@EACH_FILE
@EACH_KIND
def test_predictions_are_in_their_sets(run: Run, settings: str, name: str, kind: str) -> None:
    table = run.scores[settings, name, kind].table
    rows = zip(*(table[key].to_pylist() for key in ("set", "predicted", "decision")), strict=True)
    for members, predicted, decision in rows:
        assert predicted in members
        assert decision is None or (members == [predicted] and decision == predicted)


def right_by_class(label: IntArray, predicted: FloatArray) -> dict[int, float]:
    """The share right in each predicted class of 10 points or more; NaN is no prediction."""
    classes = [known for known in range(CLASS_COUNT) if (predicted == known).sum() >= 10]
    return {known: float((label[predicted == known] == known).mean()) for known in classes}


@EACH_KIND
@pytest.mark.parametrize(("name", "least_admitted"), [("test", 0.75), ("shifted", 0.4)])
def test_what_is_admitted_is_right(run: Run, name: str, kind: str, least_admitted: float) -> None:
    """At least 0.9 of it in every predicted class, where the KNN alone falls short in some."""
    scores, label = run.scores["documented", name, kind], read(name)["y"]
    assert min(right_by_class(label, scores.column("predicted")).values()) < 0.9
    decision = scores.column("decision")
    admitted = right_by_class(label, decision)
    assert len(admitted) >= 8
    assert min(admitted.values()) >= 0.9
    assert np.isfinite(decision).mean() >= least_admitted


def test_the_further_turned_the_fewer_are_admitted(run: Run) -> None:
    straight, turned = (np.isfinite(run.scores["documented", name, "weighted"].column("decision")) for name in FILES)
    angle = np.abs(read("shifted")["angle"].astype(np.int64))
    assert straight.mean() > turned[angle <= 8].mean() > turned[angle > 16].mean() + 0.2


def test_decisions_replay(run: Run) -> None:
    ids = [row.id for row in run.bench.rows("SELECT id FROM decision WHERE exemplar_id % 80 = 0")]
    assert len(ids) == 40
    assert all(replay(run.bench.workspace(), decision_id).differing == () for decision_id in ids)
