"""Exemplars are forgotten and classifiers deleted over HTTP, once, by those who may; the ledger says so without ids."""

from sqlalchemy import text

from tests.api.service import OWN, Service, check_problem
from tests.cli.samples import CLASS_COUNT, DIMENSION, NAME
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect


def test_exemplars_are_forgotten(service: Service) -> None:
    path, body = f"{OWN}/exemplars/forget", {"ids": ["held-out-3", "train-1"]}
    check_problem(service.post(path, body, key=Scope.WRITE), 403, "forbidden")
    check_problem(service.post(path, {}), 422, "invalid-input", "expected 1 to 100,000 ids")
    problem = check_problem(service.post(path, {"ids": ["held-out-3", "nobody"]}), 404, "nothing-to-forget")
    assert "nothing was removed" in problem.detail
    would = service.post(path, {**body, "dry_run": True}).json()
    assert (would["is_done"], would["exemplars"], would["jobs"]) == (False, 2, [])
    once = {"Idempotency-Key": "once"}
    first, second = (service.ask("POST", path, key=Scope.ADMIN, json=body, headers=once) for _ in range(2))
    assert first.status_code == 200, first.text
    assert first.json() == second.json()
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (first.json()["is_done"], first.json()["exemplars"]) == (True, 2)
    assert service.post(path, body).json()["forgotten_before"] == 2
    events = service.get("/v1/audit", key=Scope.ADMIN)
    assert "forget_exemplars" in {one["action"] for one in events.json()["events"]}
    assert "held-out-3" not in events.text
    newest, *_ = service.get(f"{OWN}/calibrations").json()["uses"]
    assert (newest["origin"], newest["key_name"], newest["reason"]) == ("http", "admin", "forgotten exemplars")


def test_a_stored_id_with_control_characters_is_labelled_and_forgotten(service: Service) -> None:
    """Earlier versions took such ids from files; no new exemplar may have one."""
    stored = "held\tout\n3"
    with connect(service.runtime.engine) as connection:
        rename = "UPDATE exemplar SET external_id = :new WHERE external_id = 'held-out-3'"
        assert connection.execute(text(rename), {"new": stored}).rowcount == 1
        connection.commit()
    told = service.post(f"{OWN}/labels", {"labels": [{"external_id": stored, "label": 0}]})
    assert (told.status_code, told.json()["rows"]) == (200, 1), told.text
    assert service.post(f"{OWN}/exemplars/forget", {"ids": [stored]}).json()["exemplars"] == 1
    new = {"external_id": stored, "logits": [0.0] * CLASS_COUNT, "vector": [0.0] * DIMENSION, "label": 0}
    refused = service.post(f"{OWN}/exemplars", {"exemplars": [new], "split": "train"})
    check_problem(refused, 422, "invalid-request")


def test_a_classifier_is_deleted(service: Service) -> None:
    check_problem(service.ask("DELETE", OWN, key=Scope.WRITE), 403, "forbidden")
    check_problem(service.ask("DELETE", f"{OWN}@1", key=Scope.ADMIN), 409, "generation-in-use")
    would = service.ask("DELETE", f"{OWN}?dry_run=true", key=Scope.ADMIN).json()
    assert (would["is_done"], would["rows"]["classifier"]) == (False, 1)
    once = {"Idempotency-Key": "once"}
    first, second = (service.ask("DELETE", OWN, key=Scope.ADMIN, headers=once) for _ in range(2))
    assert first.status_code == 200, first.text
    assert (first.json(), second.headers["Idempotent-Replayed"]) == (second.json(), "true")
    assert first.json()["generations"] == [f"{NAME}@1"]
    check_problem(service.ask("DELETE", OWN, key=Scope.ADMIN), 404, "no-classifier")
    events = service.get("/v1/audit", key=Scope.ADMIN).json()["events"]
    assert [one["target"] for one in events if one["action"] == "delete_classifier"][-1] == NAME
