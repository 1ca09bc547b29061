"""Fits, parameters and recalibrations over HTTP: as by the command line, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.api.service import OWN, Service, check_problem
from tests.api.test_batches import events
from tests.api.test_writing import rows, working
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, DIMENSION, NAME
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction

NO_WORKER = "no worker is up"


def test_a_fit_is_the_one_of_the_command_line(service: Service, own_calibrated: Program) -> None:
    """More training exemplars come, so that there are neighbours to search before the fit."""
    more = samples.exemplars("more-train", 120, seed=11)
    assert service.post(f"{OWN}/exemplars", {"split": "train", "exemplars": rows(more)}).status_code == 200
    with working(service):
        answer = service.post(f"{OWN}/fit", None, key=Scope.WRITE)
        assert answer.status_code == 202, answer.text
        told = answer.json()
        job = told["job"]
        assert answer.headers["location"] == f"{OWN}/jobs/{job}"
        last = events(service.get(f"{OWN}/jobs/{job}/events"))[-1]
    assert (last[1], last[2]["state"], last[2]["rows_done"]) == ("end", "done", told["rows"])
    shown = service.get(f"{OWN}/jobs/{job}").json()
    assert (shown["kind"], shown["error"]) == ("fit", None)
    fitted = service.get(f"{OWN}/jobs/{job}/fit").json()
    parameters = service.get(f"{OWN}/parameters").json()
    again = own_calibrated("fit", NAME, "--json").result
    assert again.pop("recalibrations_due") == 1
    assert {**again, "knn_parameters": fitted["knn_parameters"]} == fitted
    assert again["knn_parameters"] > fitted["knn_parameters"]
    assert parameters.keys() >= {"beta", "gamma", "eta", "eta_loc", "reliability", "alpha"}


def test_a_fit_that_is_asked_for_again_is_the_same_job(service: Service) -> None:
    """Also once the process that answered has forgotten it: the answer is stored with the job."""
    named = {"Idempotency-Key": "one-fit"}
    with working(service):
        first = service.ask("POST", f"{OWN}/fit", key=Scope.WRITE, headers=named)
        again = service.ask("POST", f"{OWN}/fit", key=Scope.WRITE, headers=named)
    assert first.status_code == again.status_code == 202
    assert first.json() == again.json()
    assert first.headers["location"] == again.headers["location"]
    assert again.headers["idempotent-replayed"] == "true"
    assert [job["kind"] for job in service.get(f"{OWN}/jobs").json()["jobs"]].count("fit") == 1


def test_a_fit_without_a_worker_is_refused_and_nothing_is_recorded(service: Service) -> None:
    before = service.get(f"{OWN}/jobs").json()["jobs"]
    refused = service.post(f"{OWN}/fit", None)
    check_problem(refused, 503, "job", NO_WORKER)
    assert refused.headers["retry-after"] == "5"
    assert service.get(f"{OWN}/jobs").json()["jobs"] == before


def test_what_a_fit_lacks(service: Service) -> None:
    create_classifier(service.runtime.engine, "bare", CLASS_NAMES, dimension=DIMENSION, seed=0)
    create_classifier(service.runtime.engine, "logits", CLASS_NAMES, logits_only=True, seed=0)
    with working(service):
        lacking = check_problem(
            service.post("/v1/classifiers/bare/fit", None), 409, "too-few-training-exemplars", "needs at least"
        )
        assert "POST /v1/classifiers/bare/exemplars" in lacking.detail
        check_problem(service.post("/v1/classifiers/logits/fit", None), 422, "no-vectors")
    not_fitted = check_problem(service.get("/v1/classifiers/bare/parameters"), 409, "not-fitted")
    assert "POST /v1/classifiers/bare/fit" in not_fitted.detail
    check_problem(service.post("/v1/classifiers/missing/fit", None), 404, "unknown-classifier")


def test_a_job_that_fits_nothing(service: Service) -> None:
    with transaction(service.runtime.engine) as connection:
        other = connection.execute(text("SELECT min(id) FROM job WHERE kind <> 'fit'")).scalar_one()
    check_problem(service.get(f"{OWN}/jobs/{other}/fit"), 422, "invalid-input", "expected one of kind fit")
    check_problem(service.get(f"{OWN}/jobs/999999/fit"), 404, "unknown-job")


def test_parameters_that_were_exported_are_adopted(service: Service, own_calibrated: Program, tmp_path: Path) -> None:
    out = tmp_path / "parameters.json"
    assert own_calibrated("export", NAME, "--what", "parameters", "--out", out).code == 0
    exported = json.loads(out.read_text())
    assert service.get(f"{OWN}/parameters").json() == exported
    changed = exported | {"eta": 3.5}
    answer = service.post(f"{OWN}/parameters", changed, key=Scope.WRITE)
    assert answer.status_code == 201, answer.text
    stored = answer.json()["knn_parameters"]
    assert answer.json()["recalibrations_due"] == 1
    with transaction(service.runtime.engine) as connection:
        found = connection.execute(
            text("SELECT eta, eta_loc, reliability FROM knn_parameters WHERE id = :id AND is_current"), {"id": stored}
        ).one()
    assert (found.eta, found.eta_loc, found.reliability) == (3.5, exported["eta_loc"], exported["reliability"])


@pytest.mark.parametrize(
    ("change", "code", "saying"),
    [
        ({"eta": 0}, "invalid-request", "body.eta"),
        ({"eta": "1"}, "invalid-request", "body.eta"),
        ({"beta": [0.1, 0.2, 0.3, 0.4, 0.5]}, "invalid-input", "beta: expected"),
        ({"reliability": {"median_d": 1.0}}, "invalid-request", "body.reliability.models"),
        ({"reliability": {"median_d": -1.0, "models": {}}}, "invalid-request", "body.reliability.median_d"),
    ],
)
def test_parameters_that_are_refused(shared: Service, change: dict[str, object], code: str, saying: str) -> None:
    given = {"beta": [0.0] * 3, "gamma": [1.0] * 3, "eta": 1.0, "eta_loc": 1.0}
    check_problem(shared.post(f"{OWN}/parameters", given | change), 422, code, saying)


def test_recalibrations_that_are_due(service: Service) -> None:
    assert service.post(f"{OWN}/recalibrate", None).json() == {"recalibrations": []}, "nothing has arrived"
    before = service.get(f"{OWN}/calibration").json()["calibration"]
    more = samples.exemplars("more-held-out", 60, seed=12)
    assert service.post(f"{OWN}/exemplars", {"split": "held-out", "exemplars": rows(more)}).status_code == 200
    check_problem(service.post(f"{OWN}/recalibrate", None), 503, "job", NO_WORKER)
    with working(service):
        answer = service.post(f"{OWN}/recalibrate", None, key=Scope.WRITE)
    assert answer.status_code == 200, answer.text
    (made,) = answer.json()["recalibrations"]
    assert made["calibration"] > before
    assert made["rows_opened"] > 0
    assert service.get(f"{OWN}/calibration").json()["calibration"] == made["calibration"]
    newest, *_ = service.get(f"{OWN}/calibrations").json()["uses"]
    assert (newest["calibration"], newest["origin"]) == (made["calibration"], "http")
    assert newest["key_name"] is not None


def test_a_certificate_that_stands_is_advanced(service: Service) -> None:
    def chain() -> dict[str, Any]:
        settings = service.get(f"{OWN}/calibrations").json()["settings"]
        (found,) = [setting["chain"] for setting in settings if setting["standing"]]
        assert isinstance(found, dict)
        return found

    asked = {"standing": True, "alpha": "0.3", "score": "network"}
    with working(service):
        assert service.post(f"{OWN}/calibrations", asked).status_code == 201
        before = chain()
        assert (before["chain"], before["level"]) == (1, 0.025)
        more = samples.exemplars("more-held-out", 60, seed=12)
        assert service.post(f"{OWN}/exemplars", {"split": "held-out", "exemplars": rows(more)}).status_code == 200
        assert service.post(f"{OWN}/recalibrate", None).status_code == 200
    assert chain()["labels"] == before["labels"] + 60
    assert all(of["certified"] <= of["thresholds"] for of in chain()["classes"])


def test_a_recalibration_that_cannot_be_made(service: Service) -> None:
    """Nothing is left in split vp, so that there is nothing to calibrate on."""
    with transaction(service.runtime.engine) as connection:
        connection.execute(text("UPDATE exemplar SET split = 'mc' WHERE split = 'vp'"))
        connection.execute(
            text(
                "INSERT INTO recalibration_request (calibrator_id, first_requested_at, last_requested_at, reason) "
                "SELECT id, now(), now(), 'labels' FROM calibrator"
            )
        )
    with working(service):
        check_problem(service.post(f"{OWN}/recalibrate", None), 409, "not-ready", "recalibrations failed")
