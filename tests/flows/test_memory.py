"""The memory budget reaches what computes: a small one is kept beside the data at hand, and shows in no result."""

import ast
import inspect
import tracemalloc
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.conftest import fresh_database
from tests.running import Bench
from venn_admit import flows
from venn_admit.core.approximation.training import train
from venn_admit.core.budget import BLOCK_SHARE, DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.certified import chains
from venn_admit.core.calibrators.settings import CalibratorSettings, make_settings
from venn_admit.core.comparison import methods
from venn_admit.core.types import KnnParameters
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.calibrate import calibrate_on_stored
from venn_admit.flows.calibration.fit import fit_on_stored, request_neighbours
from venn_admit.flows.computing import job_kinds
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.decisions.score import Scored
from venn_admit.flows.jobs.chunks import ChunkWork
from venn_admit.flows.reports.evaluate import compare_methods, request_evaluation_of_source
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.store.database.engine import connect, create_engine
from venn_admit.store.exemplars import classifiers
from venn_admit.store.search.array_cache import ArrayCache
from venn_admit.store.work import jobs, leases

SMALL = 16 << 20
"""The least that the settings take."""

CLASSES, DIMENSION, HELD_OUT, SCORED, EVALUATED = 100, 8, 8_000, 800, 300

_Result = TypeVar("_Result")


def made(rows: int, seed: int, *, classes: int = CLASSES, dimension: int = DIMENSION) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, rows)
    return {
        "r": rng.standard_normal((rows, dimension)).astype(np.float32),
        "f": (np.eye(classes)[label] * 4 + rng.standard_normal((rows, classes))).astype(np.float32),
        "y": label,
        "id": np.array([f"{seed}-{row}" for row in range(rows)]),
    }


def setting(classifier: classifiers.Classifier) -> CalibratorSettings:
    return make_settings(classifier.class_count, classifier.neighbour_count, kappa=1, delta=float("inf"))


@pytest.fixture(scope="module")
def wide(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A classifier of a hundred classes whose held-out logits take several times the small budget."""
    with fresh_database(server_url, template_database) as url:
        engine: Engine = create_engine(url)
        bench = Bench(engine, tmp_path_factory.mktemp("wide"))
        bench.create("wide", dimension=DIMENSION, class_count=CLASSES, neighbour_count=5)
        bench.ingest("wide", bench.write("train.npz", made(500, 1)), "train")
        bench.ingest("wide", bench.write("held-out.npz", made(HELD_OUT, 2)), "held-out")
        bench.adopt("wide", KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0)
        bench.calibrate("wide", kappa=1, delta=float("inf"))
        yield bench
        engine.dispose()


def peak(compute: Callable[[], _Result]) -> tuple[int, _Result]:
    tracemalloc.start()
    try:
        result = compute()
        _, found = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return found, result


def test_a_calibration(wide: Bench) -> None:
    def run(budget: int) -> object:
        classifier = find(wide.engine, "wide")
        done = calibrate_on_stored(wide.workspace(memory_budget=budget), classifier, setting(classifier), reason="test")
        made = done.by_admit
        return made.radius, done.changed, made.singleton_count, made.usable_count

    # The points without their logits, their rows, and their packed sets.
    data = HELD_OUT * 200
    small, found = peak(lambda: run(SMALL))
    large, whole = peak(lambda: run(DEFAULT_MEMORY_BUDGET))
    assert small <= SMALL + data < large
    assert found == whole


def test_a_chunk_of_scores(wide: Bench) -> None:
    path = wide.write("score.npz", made(SCORED, 3))
    request = wide.request_score("wide", path, chunk_rows=SCORED)
    with connect(wide.engine) as connection:
        job = jobs.by_id(connection, request.job_id)
        classifier = classifiers.by_id(connection, job.classifier_id)
        claim = leases.claim(connection, job.id, 0, worker="here", lease_seconds=600)
        assert claim is not None
        ids = leases.chunk_exemplars(connection, claim)
    within, at_will = (job_kinds(wide.workspace(memory_budget=one))["score"] for one in (SMALL, DEFAULT_MEMORY_BUDGET))
    for score in (within, at_will):
        score(ChunkWork(job, classifier, ids[:1]))  # reads the snapshot, which is kept
    # Vectors, logits and decisions on all classes are the result.
    data = SCORED * (4 * DIMENSION + (8 + 33) * CLASSES)
    small, found = peak(lambda: within(ChunkWork(job, classifier, ids)))
    _, whole = peak(lambda: at_will(ChunkWork(job, classifier, ids)))
    assert small <= SMALL + data
    assert isinstance(found, Scored)
    assert isinstance(whole, Scored)
    assert fields(found) == fields(whole)


@pytest.fixture
def few_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certified rivals try few thresholds, since how many there are says nothing of what points take."""
    monkeypatch.setattr(chains, "GRID_SIZE", 5)
    monkeypatch.setattr(chains, "LARGEST_PRICED", 1)


@pytest.mark.usefixtures("few_policies")
def test_an_evaluation(wide: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The points that LocalConf corrected weighs are a sample, which is the same however many are held out."""
    monkeypatch.setattr(methods, "MOST_WEIGHED", 2**12)
    path = wide.write("evaluate.npz", made(EVALUATED, 4))
    request = request_evaluation_of_source(
        wide.workspace(chunk_rows=EVALUATED), "wide", FileSource(path), calibration_id=None
    )
    assert request.job_id is not None
    wide.run(request.job_id)

    def run(budget: int) -> DatasetReport:
        return compare_methods(wide.workspace(memory_budget=budget), request, "made")

    # For held-out points both logits, the network's also in one array and in the order of the ids, and four softmaxes
    # that rivals are calibrated on; of evaluated ones the logits, the decisions, and the sets of eleven methods.
    data = HELD_OUT * (12 + 2 * 4 + 4 * 8) * CLASSES + EVALUATED * (12 + 33 + 11) * CLASSES
    small, found = peak(lambda: run(SMALL))
    large, whole = peak(lambda: run(DEFAULT_MEMORY_BUDGET))
    assert small <= SMALL + data < large
    assert repr(report_payload(found)) == repr(report_payload(whole))


SHORT, LONG, LONG_HELD_OUT = 2, 512, 10_000

# Three tiles of the localizer, and two blocks of the budget.
LONGER = 3 * (8 << 10) * (LONG - SHORT) + 2 * SMALL // BLOCK_SHARE


@pytest.fixture(scope="module")
def long(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Two classifiers with the same points, nine of ten in vp, whose vectors are short in one and long in the other."""
    with fresh_database(server_url, template_database) as url:
        engine: Engine = create_engine(url)
        bench = Bench(engine, tmp_path_factory.mktemp("long"))
        bench.cache = ArrayCache(bench.folder / "cache", memory_budget=SMALL)
        share = Decimal("0.05")
        for dimension in (SHORT, LONG):
            create(
                engine,
                str(dimension),
                ("a", "b"),
                seed=0,
                dimension=dimension,
                neighbour_count=5,
                knn_share=share,
                mc_share=share,
            )
            for split, rows, seed in (("train", 200, 1), ("held-out", LONG_HELD_OUT, 2)):
                path = bench.write(f"{split}.npz", made(rows, seed, classes=2, dimension=dimension))
                bench.ingest(str(dimension), path, split)
        yield bench
        engine.dispose()


def test_a_fit_holds_no_vectors(long: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs, since all take the same memory."""

    def train_briefly(model: Any, targets: Any, halves: Any, seed: int, _epochs: int, on_epoch: Any) -> object:
        return train(model, targets, halves, seed, 2, on_epoch)

    monkeypatch.setattr("venn_admit.core.approximation.fit.train", train_briefly)

    def fit(dimension: int) -> object:
        workspace = long.workspace(memory_budget=SMALL)
        return fit_on_stored(workspace, str(dimension), on_epoch=lambda _model, _line: None)

    for dimension in (SHORT, LONG):
        long.run(request_neighbours(long.workspace(), str(dimension)))
    fit(SHORT)  # which imports what torch needs to train
    (short, _), (longer, _) = peak(lambda: fit(SHORT)), peak(lambda: fit(LONG))
    assert longer - short <= LONGER < 4 * LONG * LONG_HELD_OUT


@pytest.mark.usefixtures("few_policies")
def test_an_evaluation_holds_no_vectors(long: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Venn-Abers, whose rival by bands needs those of vp in an order of its own; LocalConf corrected as above."""
    monkeypatch.setattr(methods, "MOST_WEIGHED", 2**10)

    def run(dimension: int) -> int:
        name = str(dimension)
        long.adopt(name, KnnParameters(np.zeros(2), np.ones(2), 1.0), 1.0)
        long.calibrate_abers(name, score="network")
        path = long.write("evaluate.npz", made(500, 4, classes=2, dimension=dimension))
        request = request_evaluation_of_source(long.workspace(), name, FileSource(path), calibration_id=None)
        assert request.job_id is not None
        long.run(request.job_id)
        taken, _ = peak(lambda: compare_methods(long.workspace(memory_budget=SMALL), request, "made"))
        return taken

    assert run(LONG) - run(SHORT) <= LONGER < 4 * LONG * LONG_HELD_OUT


def fields(scored: Scored) -> list[bytes]:
    return [values.tobytes() for values in scored.decided.values.values()]


def takes_a_budget(function: object) -> bool:
    return inspect.isfunction(function) and "memory_budget" in inspect.signature(function).parameters


def test_every_flow_hands_the_budget_on() -> None:
    """A call within a flow of what takes a budget names one: a default there would be a second budget."""
    folder = Path(flows.__path__[0])
    calls = 0
    for file in sorted(folder.rglob("*.py")):
        name = ".".join(("venn_admit.flows", *file.relative_to(folder).with_suffix("").parts))
        module = import_module(name.removesuffix(".__init__"))
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if takes_a_budget(getattr(module, node.func.id, None)):
                positional = len(node.args) >= len(inspect.signature(getattr(module, node.func.id)).parameters)
                named = any(keyword.arg in ("memory_budget", None) for keyword in node.keywords)
                assert named or positional, f"{name}:{node.lineno} calls {node.func.id} without a memory budget"
                calls += 1
    assert calls > 10
