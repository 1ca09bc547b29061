"""Fitting on the bundled real data: how good it is, that all of it is on record, and that it can be repeated."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.conftest import fresh_engine
from tests.running import EXAMPLES, Arrays, Bench, Golden
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.core.types import KnnParameters, TrainingEpoch
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.fit import Fitted, fit_on_stored, request_neighbours, require_data
from venn_admit.flows.data.catalogue import find, show
from venn_admit.flows.data.label import label
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import approximations


def real_data(file: str) -> Arrays:
    """A bundled file, its documents' ids as the exemplars' own; half of the held-out rows show what all would."""
    with np.load(EXAMPLES / file) as arrays:
        return {name: values[:8000] for name, values in {**arrays, "id": arrays["doc"].astype(str)}.items()}


def shuffled(arrays: Arrays, seed: int) -> Arrays:
    order = np.random.default_rng(seed).permutation(len(arrays["y"]))
    return {name: values[order] for name, values in arrays.items()}


@pytest.fixture(scope="module")
def module_bench(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with fresh_engine(server_url, template_database) as engine:
        yield Bench(engine, tmp_path_factory.mktemp("fit"))


@pytest.fixture(scope="module")
def fitted(module_bench: Bench) -> Fitted:
    """The classifier `reviews`, fitted."""
    train, valid = real_data("train.npz"), real_data("valid.npz")
    module_bench.create("reviews", dimension=128)
    module_bench.ingest("reviews", module_bench.write("train.npz", train), "train")
    module_bench.ingest("reviews", module_bench.write("valid.npz", valid), "held-out")
    return module_bench.fit("reviews")


def test_knn_approximates_the_network(fitted: Fitted) -> None:
    record = fitted.record
    assert record.dev_discrepancies <= 0.045 * record.dev_count
    assert abs(record.fit_count - record.dev_count) <= 1
    assert record.fit_count + record.dev_count == pytest.approx(800, abs=75)
    assert record.dev_discrepancies == min(line.discrepancies for line in record.knn_log)


def stored_log(bench: Bench, parameters_id: int, model: str) -> list[tuple[Any, ...]]:
    query = (
        "SELECT epoch, loss, masked, discrepancies, parameters FROM training_epoch"
        " WHERE knn_parameters_id = :id AND model = :model ORDER BY epoch"
    )
    return [tuple(row) for row in bench.rows(query, id=parameters_id, model=model)]


def as_stored(line: TrainingEpoch) -> tuple[Any, ...]:
    loss = None if np.isnan(line.loss) else line.loss
    return (line.epoch, loss, line.masked, line.discrepancies, line.parameters.tolist())


def test_everything_is_on_record(module_bench: Bench, fitted: Fitted) -> None:
    parameters, record = fitted.parameters, fitted.record
    for model, log in (("knn", record.knn_log), ("localizer", record.localizer_log)):
        assert stored_log(module_bench, parameters.id, model) == [as_stored(line) for line in log]
        assert [line.epoch for line in log] == list(range(len(log)))
    (row,) = module_bench.rows("SELECT * FROM knn_parameters WHERE id = :id", id=parameters.id)
    assert (row.beta, row.gamma) == (parameters.knn.beta.tolist(), parameters.knn.gamma.tolist())
    assert (row.eta, row.eta_loc) == (parameters.knn.eta, parameters.eta_loc)
    assert (row.fit_count, row.dev_count, row.dev_discrepancies) == (
        record.fit_count,
        record.dev_count,
        record.dev_discrepancies,
    )
    assert (row.origin, row.is_current) == ("fitted", True)
    assert row.reliability == documented(fitted)


def documented(fitted: Fitted) -> dict[str, Any]:
    """The reliability score, which the real data suffice for."""
    assert fitted.parameters.reliability is not None
    document = fitted.parameters.reliability.document()
    assert set(document["models"]) == {"0", "1", "all"}
    return document


def test_the_reliability_score_is_fitted_on_knn_alone(module_bench: Bench, fitted: Fitted) -> None:
    query = "SELECT count(*) FROM exemplar JOIN classifier ON classifier_id = classifier.id WHERE name = 'reviews'"
    knn_count = module_bench.value(f"{query} AND split = 'knn'")
    assert documented(fitted)["models"]["all"]["points"] == knn_count
    # It is read back as it was computed.
    with connect(module_bench.engine) as connection:
        read = approximations.parameters_by_id(connection, fitted.parameters.id)
    assert read.reliability is not None
    assert read.reliability.document() == documented(fitted)


def assert_same(found: Fitted, expected: Fitted) -> None:
    for model in ("knn_log", "localizer_log"):
        lines, others = getattr(found.record, model), getattr(expected.record, model)
        assert [as_stored(line) for line in lines] == [as_stored(line) for line in others], model
    assert found.parameters.knn.eta == expected.parameters.knn.eta
    assert found.parameters.eta_loc == expected.parameters.eta_loc
    np.testing.assert_array_equal(found.parameters.knn.beta, expected.parameters.knn.beta)
    np.testing.assert_array_equal(found.parameters.knn.gamma, expected.parameters.knn.gamma)
    assert documented(found) == documented(expected)


def test_rows_in_another_order_give_the_same_parameters(module_bench: Bench, fitted: Fitted) -> None:
    train, valid = shuffled(real_data("train.npz"), 1), shuffled(real_data("valid.npz"), 2)
    module_bench.create("shuffled", dimension=128)
    # In parts, the held-out rows first.
    for part in range(2):
        half = {name: values[part::2] for name, values in valid.items()}
        module_bench.ingest("shuffled", module_bench.write(f"valid-{part}.npz", half), "held-out")
    module_bench.ingest("shuffled", module_bench.write("train-shuffled.npz", train), "train")
    assert_same(module_bench.fit("shuffled"), fitted)


def test_work_on_other_parameters_is_not_taken_over(bench: Bench) -> None:
    """New parameters mean new approximations, from the neighbours there are."""
    golden = Golden("edge")
    golden.prepare(bench, "edge")
    bench.calibrate("edge", **golden.settings)
    searched = bench.rows("SELECT * FROM neighbours ORDER BY exemplar_id")
    given = golden.parameters
    second = bench.adopt("edge", KnnParameters(given.beta, given.gamma, 2 * given.eta))
    bench.calibrate("edge", **golden.settings)
    per_parameters = bench.rows("SELECT knn_parameters_id, count(*) FROM approximation GROUP BY 1 ORDER BY 1")
    assert [tuple(row) for row in per_parameters] == [(second - 1, 1000), (second, 1000)]
    assert bench.rows("SELECT * FROM neighbours ORDER BY exemplar_id") == searched
    assert bench.value("SELECT id FROM knn_parameters WHERE is_current") == second


@pytest.fixture
def edge(bench: Bench) -> Bench:
    """300 training exemplars, and held-out data in every split."""
    golden = Golden("edge")
    golden.prepare(bench, "edge", slice(300))
    bench.ingest("edge", bench.write("score.npz", golden.exemplars("score")), "knn")
    return bench


def test_training_exemplars_that_arrive_meanwhile_wait_for_it(edge: Bench) -> None:
    edge.run(request_neighbours(edge.workspace(chunk_rows=400), "edge"))
    rest = Golden("edge").exemplars("train", slice(300, None))
    assert edge.ingest("edge", edge.write("rest.npz", rest), "train").training_waiting == len(rest["y"])
    assert fit_on_stored(edge.workspace(), "edge", on_epoch=lambda _model, _line: None).record.fit_count == 80
    assert show(edge.engine, "edge").waiting == 0


class TestRefusals:
    def test_without_training_exemplars(self, bench: Bench) -> None:
        bench.create("empty", dimension=8)
        with pytest.raises(NotReadyError, match=r"has 0 training exemplars.*at least K = 25"):
            request_neighbours(bench.workspace(chunk_rows=10), "empty")

    def test_without_held_out_data(self, bench: Bench) -> None:
        Golden("edge").prepare(bench, "edge")
        with pytest.raises(NotReadyError, match="no exemplars of 'edge' are in split knn"):
            request_neighbours(bench.workspace(chunk_rows=10), "edge")
        for empty in HELD_OUT_SPLITS:
            with pytest.raises(NotReadyError, match=f"no exemplars of 'edge' are in split {empty}"):
                require_data(dict.fromkeys(Split, 1) | {empty: 0}, find(bench.engine, "edge"))

    def test_without_neighbours(self, edge: Bench) -> None:
        with pytest.raises(NotReadyError, match="in split knn are out of date: run the fit again"):
            fit_on_stored(edge.workspace(), "edge", on_epoch=lambda _model, _line: None)

    def test_after_a_training_label_is_corrected(self, edge: Bench) -> None:
        edge.run(request_neighbours(edge.workspace(chunk_rows=400), "edge"))
        corrected = (int(Golden("edge")["train_y"][0]) + 1) % 3
        path = edge.folder / "correction.csv"
        path.write_text(f"external_id,label\ntrain-0,{corrected}\n")
        label(edge.engine, "edge", LabelFile(path), selection="selected", retract=False)
        with pytest.raises(NotReadyError, match="run the fit again"):
            fit_on_stored(edge.workspace(), "edge", on_epoch=lambda _model, _line: None)
        assert edge.fit("edge").record.fit_count == 80

    @pytest.mark.parametrize(
        ("parameters", "eta_loc", "problem"),
        [
            (KnnParameters(np.zeros(2), np.ones(3), 1.0), 1.0, "beta: expected 3 finite numbers"),
            (KnnParameters(np.zeros(3), np.array([1.0, np.nan, 1.0]), 1.0), 1.0, "gamma: expected 3 finite numbers"),
            (KnnParameters(np.zeros(3), np.ones(3), 0.0), 1.0, "eta: expected a finite number above 0, got 0.0"),
            (KnnParameters(np.zeros(3), np.ones(3), 1.0), np.inf, "eta_loc: expected a finite number above 0"),
        ],
    )
    def test_of_given_parameters(self, bench: Bench, parameters: KnnParameters, eta_loc: float, problem: str) -> None:
        bench.create("edge", dimension=8, class_count=3)
        with pytest.raises(InvalidInputError, match=problem):
            bench.adopt("edge", parameters, eta_loc)
        assert bench.value("SELECT count(*) FROM knn_parameters") == 0
