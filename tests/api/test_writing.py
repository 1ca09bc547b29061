"""Exemplars, labels and calibrations over HTTP, end to end, and what is refused."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest

from tests.api.service import OWN, Service, check_problem
from tests.cli import samples
from tests.cli.program import Program, versions
from tests.cli.samples import CLASS_NAMES, DIMENSION, NAME, K
from tests.files.samples import Columns
from tests.patience import PATIENCE_SECONDS
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs


def rows(columns: Columns, **changes: object) -> list[dict[str, Any]]:
    """Return exemplars as a request has them."""
    return [
        {
            "external_id": str(external_id),
            "vector": vector.tolist(),
            "logits": logits.tolist(),
            "label": int(label),
            **changes,
        }
        for external_id, vector, logits, label in zip(
            columns["external_id"], columns["vector"], columns["logits"], columns["label"], strict=True
        )
    ]


def working(service: Service) -> AbstractContextManager[None]:
    """A worker, on the database of a service."""
    return working_on(service.runtime)


@contextmanager
def working_on(runtime: Runtime) -> Iterator[None]:
    """A worker: connected as one, and computing what is recorded, in a thread."""
    stop = threading.Event()
    runner = runtime.chunk_runner("test")

    def work() -> None:
        with connect(runtime.engine) as announced:
            jobs.announce_worker(announced)
            announced.commit()
            up.set()
            while not stop.wait(0.1):
                with connect(runtime.engine) as connection:
                    running = [row.job for row in jobs.summaries(connection, limit=10) if row.state == "running"]
                for job in running:
                    compute_job(runtime.engine, runner, job)

    up = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert up.wait(PATIENCE_SECONDS)
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_the_whole_way(service: Service, own_calibrated: Program, tmp_path: Any) -> None:
    """Exemplars arrive, workers approximate them, and a calibration uses them, as by the command line."""
    more = samples.exemplars("more", 100, seed=7)
    answer = service.post(f"{OWN}/exemplars", {"split": "held-out", "exemplars": rows(more)})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["rows"], told["new"], told["already_stored"], told["recalibrations_due"]) == (100, 100, 0, 1)
    assert sum(told["new_per_split"].values()) == 100
    again = service.post(f"{OWN}/exemplars", {"split": "held-out", "exemplars": rows(more)}).json()
    assert (again["new"], again["already_stored"]) == (0, 100)
    file = samples.save(tmp_path, "more.npz", more)
    by_file = own_calibrated("ingest", NAME, file, "--split", "held-out", "--json").result
    assert by_file["already_stored"] == 100, "they are the same exemplars"

    asked = {"method": "venn-admit", "alpha": "0.2", "kappa": 10, "q_bins": [0, 1]}
    alone = service.post(f"{OWN}/calibrations", asked)
    check_problem(alone, 503, "job", "no worker is up")
    (cancelled,) = service.get(f"{OWN}/jobs", params={"limit": 1}).json()["jobs"]
    assert cancelled["state"] == "cancelled"
    with working(service):
        made = service.post(f"{OWN}/calibrations", asked)
    assert made.status_code == 201, made.text
    result = made.json()
    assert made.headers["location"] == f"{OWN}/calibrations/{result['calibration']}"
    expected = own_calibrated(
        "calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2", "--kappa", 10, "--q-bins", "0,1", "--json"
    ).result
    changing = {"calibration", "rows_closed", "rows_opened"}
    assert {key: result[key] for key in result.keys() - changing} == {
        key: expected[key] for key in expected.keys() - changing
    }
    shown = service.get(made.headers["location"]).json()
    assert shown["reason"] == "asked for over HTTP"


def test_a_calibration_that_needs_no_job_needs_no_worker(service: Service) -> None:
    made = service.post(f"{OWN}/calibrations", {"method": "venn-abers", "alpha": "0.2", "certify": ["predicted"]})
    assert made.status_code == 201, made.text
    assert made.json()["certificate"] is not None
    assert service.get(f"{OWN}/policy").json()["calibration"] == made.json()["calibration"]


@pytest.mark.parametrize(
    ("asked", "status", "code", "saying"),
    [
        ({"method": "other"}, 422, "invalid-input", "method: expected"),
        ({"alpha": "0.0"}, 422, "invalid-input", "alpha"),
        ({"alpha": 0.1}, 422, "invalid-request", "body.alpha"),
        ({"kappa": 0}, 422, "invalid-request", "body.kappa"),
        (
            {"method": "venn-admit", "score": "network"},
            422,
            "invalid-input",
            "the method venn-admit has no such setting",
        ),
        ({"method": "venn-admit", "delta": "nan", "kappa": 10}, 422, "invalid-input", "delta"),
        ({"method": "venn-admit", "q_bins": [3, 1], "kappa": 10}, 422, "invalid-input", "q"),
        ({"method": "venn-admit"}, 409, "not-ready", "no calibration was stored"),
        ({"kapa": 10}, 422, "invalid-request", "body.kapa"),
    ],
)
def test_settings_that_are_refused(
    shared: Service, asked: dict[str, object], status: int, code: str, saying: str
) -> None:
    check_problem(shared.post(f"{OWN}/calibrations", asked), status, code, saying)


def test_the_refusal_of_a_calibration_names_the_request_that_leaves_more(shared: Service) -> None:
    problem = check_problem(shared.post(f"{OWN}/calibrations", {"method": "venn-admit"}), 409, "not-ready")
    assert f'POST {OWN}/calibrations {{"method": "venn-admit", "kappa": ' in problem.detail
    assert '`"kappa": 1000` stores this one anyway' in problem.detail


def test_labels_are_recorded_as_from_a_file(service: Service, own_calibrated: Program, tmp_path: Any) -> None:
    file = samples.save(tmp_path, "scored.npz", samples.take(samples.scored(), slice(0, 20)))
    assert own_calibrated("score", NAME, file, "--out", tmp_path / "scores.parquet").code == 0
    labels: list[dict[str, Any]] = [
        {"external_id": "scored-0", "label": "red"},
        {"external_id": "scored-1", "label": 1},
        {"external_id": "scored-2", "label": "blue", "selection": "selected"},
    ]
    before = {"new": 0, "corrected": 0, "retracted": 0, "unchanged": 0}
    told = service.post(f"{OWN}/labels", {"labels": labels, "source": "review tool"}).json()
    assert told["rows"] == sum(told[name] for name in (*before, "put_to_use")) == 3
    assert service.post(f"{OWN}/labels", {"labels": labels}).json()["unchanged"] == 3
    corrected = service.post(f"{OWN}/labels", {"labels": [{"external_id": "scored-0", "label": 1}]}).json()
    assert corrected["corrected"] == 1
    taken_back = {"labels": [{"external_id": "scored-0", "label": None}]}
    refused = service.post(f"{OWN}/labels", taken_back)
    check_problem(
        refused, 422, "label-missing", '`POST /v1/classifiers/{classifier}/labels {"retract": true}` retracts them'
    )
    assert service.post(f"{OWN}/labels", {**taken_back, "retract": True}).json()["retracted"] == 1


@pytest.mark.parametrize(
    ("labels", "status", "code", "saying"),
    [
        ([{"external_id": "nobody", "label": 0}], 404, "unknown-exemplar", "nobody"),
        ([{"external_id": "held-out-0", "label": 3}], 422, "invalid-input", "row 0, label"),
        ([{"external_id": "held-out-0", "label": 0}] * 2, 422, "invalid-input", "every id once"),
        ([{"external_id": "held-out-0"}], 422, "invalid-request", "body.labels.0.label"),
        ([{"external_id": "a\x00", "label": 0}], 422, "invalid-request", "body.labels.0.external_id"),
        ([{"external_id": "held-out-0", "label": True}], 422, "invalid-request", "body.labels.0.label"),
    ],
)
def test_labels_that_are_refused(
    shared: Service, labels: list[dict[str, Any]], status: int, code: str, saying: str
) -> None:
    check_problem(shared.post(f"{OWN}/labels", {"labels": labels}), status, code, saying)


@pytest.mark.parametrize(
    ("change", "code", "saying"),
    [
        ({"vector": [0.0]}, "invalid-input", f"row 1, vector: expected {DIMENSION} numbers, got 1"),
        ({"vector": [True] * DIMENSION}, "invalid-request", "body.exemplars.1.vector.0"),
        ({"vector": None}, "invalid-input", f"row 1, vector: expected {DIMENSION} numbers, got none"),
        ({"logits": [0.0] * 2}, "invalid-input", "row 1, logits: expected 3 numbers, got 2"),
        ({"label": 3}, "invalid-input", "row 1, labels: expected a class number 0..2"),
        ({"label": "purple"}, "invalid-input", "row 1, labels"),
        ({"external_id": None}, "invalid-input", "row 1, ids: expected text, got null"),
        ({"attributes": {"text": "a\x00"}}, "invalid-request", "body.exemplars.1.attributes"),
        ({"attributes": {"\ud800": 1}}, "invalid-request", "body.exemplars.1.attributes"),
        ({"attributes": {"deep": {"er": 1}}}, "invalid-request", "body.exemplars.1.attributes"),
    ],
)
def test_exemplars_that_are_refused_leave_nothing(
    shared: Service, change: dict[str, Any], code: str, saying: str
) -> None:
    good, bad = rows(samples.exemplars("more", 2, seed=8))
    before = versions(shared.runtime.database_url)
    answer = shared.post(f"{OWN}/exemplars", {"split": "mc", "exemplars": [good, bad | change]})
    check_problem(answer, 422, code, saying)
    after = versions(shared.runtime.database_url)
    assert {table for table in before if before[table] != after[table]} <= {"api_key", "audit_event"}


def test_an_id_with_other_content_is_a_conflict(service: Service) -> None:
    twice = [row | {"external_id": "more-0"} for row in rows(samples.exemplars("more", 2, seed=8))]
    check_problem(service.post(f"{OWN}/exemplars", {"split": "mc", "exemplars": twice}), 409, "conflict", "more-0")
    (row,) = rows(samples.exemplars("held-out", 1, seed=99))
    check_problem(service.post(f"{OWN}/exemplars", {"split": "mc", "exemplars": [row]}), 409, "conflict", "held-out-0")


def test_attributes_are_kept_row_by_row(service: Service) -> None:
    first, second = rows(samples.take(samples.exemplars("near", 2, seed=3), [0, 1]))
    first["attributes"], second["attributes"] = {"text": "\u00fc \U0001f600", "stars": 4.5}, {"ok": True, "none": None}
    assert service.post(f"{OWN}/exemplars", {"split": "train", "exemplars": [first, second]}).status_code == 200
    decided = service.post(
        f"{OWN}/decide", {"neighbours": 1, "points": [{"vector": first["vector"]}, {"vector": second["vector"]}]}
    )
    nearest = [one["neighbours"][0] for one in decided.json()["decisions"]]
    assert [(one["external_id"], one["attributes"]) for one in nearest] == [
        ("near-0", first["attributes"]),
        ("near-1", second["attributes"]),
    ]


def test_a_classifier_is_registered_once(empty: Service) -> None:
    asked = {"classifier": NAME, "classes": list(CLASS_NAMES), "dimension": DIMENSION, "k": K}
    made = empty.post("/v1/classifiers", asked)
    assert made.status_code == 201
    answer = {**asked, "seed": 0, "extractor": None, "generation": 1, "is_current": True}
    assert made.json() == answer
    as_floats = {**asked, "classifier": "whole", "dimension": float(DIMENSION), "k": float(K), "seed": 0.0}
    assert empty.post("/v1/classifiers", as_floats).json() == {**answer, "classifier": "whole"}
    check_problem(empty.post("/v1/classifiers", asked), 409, "name-taken", "choose another name")
    for change, code in (
        ({"classes": ["a", "a"]}, "invalid-input"),
        ({"classes": ["a"]}, "invalid-request"),
        ({"dimension": None}, "invalid-input"),
        ({"logits_only": True}, "invalid-input"),
        ({"classifier": " x"}, "invalid-input"),
        ({"classifier": ""}, "invalid-request"),
        ({"seed": 2**63}, "invalid-request"),
        ({"k": 2.5}, "invalid-request"),
    ):
        check_problem(empty.post("/v1/classifiers", {**asked, "classifier": "new", **change}), 422, code)


def test_a_classifier_with_logits_only(empty: Service) -> None:
    assert (
        empty.post("/v1/classifiers", {"classifier": "l", "classes": ["a", "b"], "logits_only": True}).status_code
        == 201
    )
    own, generator = "/v1/classifiers/l", np.random.default_rng(5)
    labels = generator.integers(2, size=400)
    logits = np.where(labels[:, None] == np.arange(2), 1.5, 0.0) + generator.normal(size=(400, 2))
    exemplars = [
        {"external_id": str(row), "logits": values.tolist(), "label": "ab"[label]}
        for row, (values, label) in enumerate(zip(logits, labels.tolist(), strict=True))
    ]
    assert empty.post(f"{own}/exemplars", {"split": "held-out", "exemplars": exemplars}).status_code == 200
    with_vector = {"split": "mc", "exemplars": [{**exemplars[0], "external_id": "v", "vector": [1.0]}]}
    check_problem(empty.post(f"{own}/exemplars", with_vector), 422, "vectors-unwanted")
    made = empty.post(f"{own}/calibrations", {"method": "venn-abers", "promise": "pointwise", "alpha": "0.2"})
    assert made.status_code == 201, made.text
    decided = empty.post(f"{own}/decide", {"points": [{"logits": [3.0, -3.0]}]}).json()["decisions"][0]
    assert (decided["predicted_class"], decided["neighbours"]) == ("a", [])
    refused = empty.post(f"{own}/decide", {"points": [{"logits": [3.0, -3.0], "vector": [1.0]}]})
    check_problem(refused, 422, "vectors-unwanted")
    refused = empty.post(f"{own}/calibrations", {"method": "venn-admit"})
    check_problem(refused, 422, "no-vectors", '"method": "venn-abers"}` needs none')
    watched = empty.get(f"{own}/monitor").json()
    assert {(row["lamp"], row.get("q")) for row in watched["readings"]} == {("mix", None)}
