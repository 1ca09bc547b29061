"""Changing a classifier's name and retiring its settings, by a client that has seen them as they are."""

import json
import threading
from typing import Any

from httpx2 import Response

from tests.api.service import OWN, Service, check_problem
from tests.cli.samples import NAME
from tests.patience import PATIENCE_SECONDS
from venn_admit.flows.data.settings import rename
from venn_admit.store.access.keys import Scope

SETTINGS = f"{OWN}/settings"


def change(
    service: Service, method: str, path: str, *, tag: str | None, body: Any = None, key: Scope = Scope.ADMIN
) -> Response:
    headers = {"Content-Type": "application/json"} | ({} if tag is None else {"If-Match": tag})
    return service.ask(method, path, key=key, headers=headers, content=None if body is None else json.dumps(body))


def second_setting(service: Service) -> int:
    """Calibrate under another setting, so that the first can be retired; return the first."""
    made = service.post(f"{OWN}/calibrations", {"method": "venn-abers", "promise": "pointwise", "alpha": "0.2"})
    assert made.status_code == 201, made.text
    settings = service.get(SETTINGS).json()["settings"]
    assert [one["is_in_use"] for one in settings] == [True, False]
    return int(settings[1]["setting"])


def test_settings_are_those_of_the_classifier(shared: Service) -> None:
    answer = shared.get(SETTINGS)
    assert answer.status_code == 200, answer.text
    assert answer.json()["classifier"] == NAME
    (mine,) = answer.json()["settings"]
    (whole,) = shared.get(OWN).json()["settings"]
    assert mine == {name: whole[name] for name in mine}
    assert "calibration" not in mine
    assert shared.get(SETTINGS).headers["etag"] == answer.headers["etag"]


def test_a_setting_is_retired_by_a_client_that_has_seen_it(service: Service) -> None:
    before = service.get(SETTINGS).headers["etag"]
    first = second_setting(service)
    path = f"{SETTINGS}/{first}"
    check_problem(change(service, "DELETE", path, tag=None), 428, "precondition-required", "If-Match")
    check_problem(change(service, "DELETE", path, tag=before), 412, "precondition-failed", "GET them again")
    seen = service.get(SETTINGS).headers["etag"]
    check_problem(change(service, "DELETE", path, tag=f"W/{seen}"), 412, "precondition-failed")
    assert service.get(SETTINGS).headers["etag"] == seen, "nothing was changed"
    check_problem(change(service, "DELETE", f"{SETTINGS}/99", tag=seen), 404, "unknown-setting")
    done = change(service, "DELETE", path, tag=f'"other", {seen}', key=Scope.WRITE)
    assert done.status_code == 200, done.text
    assert done.json()["settings"][1]["retired_at"] is not None
    assert done.headers["etag"] == service.get(SETTINGS).headers["etag"] != seen
    in_use = done.json()["settings"][0]["setting"]
    refused = change(service, "DELETE", f"{SETTINGS}/{in_use}", tag=done.headers["etag"])
    check_problem(refused, 409, "setting-in-use")


def test_a_calibration_by_itself_changes_no_tag(service: Service) -> None:
    asked = {"method": "venn-abers", "promise": "pointwise", "alpha": "0.2"}
    assert service.post(f"{OWN}/calibrations", asked).status_code == 201
    seen = service.get(SETTINGS).headers["etag"]
    assert service.post(f"{OWN}/calibrations", asked).status_code == 201
    assert service.get(SETTINGS).headers["etag"] == seen


def test_a_classifier_is_renamed(service: Service) -> None:
    new = {"classifier": "reviews of 2026"}
    check_problem(change(service, "PATCH", SETTINGS, tag=None, body=new), 428, "precondition-required")
    check_problem(change(service, "PATCH", SETTINGS, tag='"other"', body=new), 412, "precondition-failed")
    seen = service.get(SETTINGS).headers["etag"]
    check_problem(change(service, "PATCH", SETTINGS, tag=seen, body=new, key=Scope.WRITE), 403, "forbidden")
    check_problem(change(service, "PATCH", SETTINGS, tag=seen, body={"classifier": ""}), 422, "invalid-request")
    for unreachable in ("film/tv", ".."):
        refused = change(service, "PATCH", SETTINGS, tag=seen, body={"classifier": unreachable})
        check_problem(refused, 422, "invalid-input", "printable characters, without /")
    done = change(service, "PATCH", SETTINGS, tag=seen, body=new)
    assert done.status_code == 200, done.text
    assert done.json()["classifier"] == "reviews of 2026"
    assert done.headers["location"] == "/v1/classifiers/reviews%20of%202026/settings"
    assert service.get(done.headers["location"]).headers["etag"] == done.headers["etag"] != seen
    check_problem(service.get(OWN), 404, "unknown-classifier")
    check_problem(change(service, "PATCH", SETTINGS, tag="*", body=new), 404, "unknown-classifier")


def test_of_two_who_have_seen_the_same_one_is_refused(service: Service) -> None:
    """Both ask at once, and the second waits for the first instead of overwriting it."""
    seen = service.get(SETTINGS).headers["etag"]
    waiting, go_on = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        waiting.set()
        assert go_on.wait(PATIENCE_SECONDS)

    first = threading.Thread(target=rename, args=(service.runtime.engine, NAME, "first"), kwargs={"check": wait})
    first.start()
    assert waiting.wait(PATIENCE_SECONDS)
    answers: list[Response] = []
    second = threading.Thread(
        target=lambda: answers.append(change(service, "PATCH", SETTINGS, tag=seen, body={"classifier": "second"}))
    )
    second.start()
    second.join(1)
    assert second.is_alive(), "it waits"
    go_on.set()
    first.join()
    second.join()
    check_problem(answers[0], 404, "unknown-classifier")
    assert service.get("/v1/classifiers/first/settings").status_code == 200


NOTHING = {"method": "venn-abers", "certify": ["predicted"], "alpha": "0.001"}


def test_a_calibration_is_put_in_use_by_a_client_that_may_write(service: Service) -> None:
    made = service.post(f"{OWN}/calibrations", NOTHING)
    assert made.status_code == 201, made.text
    number = made.json()["calibration"]
    assert (made.json()["is_stored"], made.json()["withheld"]["in_use"]) == (True, 1)
    assert service.get(f"{OWN}/calibration").json()["calibration"] == 1
    asked = {"calibration": number, "reason": "to see it"}
    check_problem(change(service, "PUT", f"{OWN}/calibration", tag=None, body=asked, key=Scope.SCORE), 403, "forbidden")
    unknown = change(service, "PUT", f"{OWN}/calibration", tag=None, body={"calibration": 99})
    check_problem(unknown, 404, "unknown-calibration")
    done = change(service, "PUT", f"{OWN}/calibration", tag=None, body=asked, key=Scope.WRITE)
    assert done.json() == {
        "classifier": NAME,
        "calibration": number,
        "before": 1,
        "is_changed": True,
        "admits_nothing": True,
    }
    listed = service.get(f"{OWN}/calibrations").json()
    newest, first = listed["uses"]
    assert (newest["calibration"], newest["origin"], newest["reason"], newest["until"]) == (
        number,
        "http",
        "to see it",
        None,
    )
    assert newest["key_name"] is not None
    assert (first["calibration"], first["until"]) == (1, newest["since"])
    assert [one["looks"] for one in listed["certificates"]] == [1]
    assert listed["withheld"] == []


def test_a_dry_run_stores_no_calibration(service: Service) -> None:
    made = service.post(f"{OWN}/calibrations", {**NOTHING, "dry_run": True})
    assert made.status_code == 201, made.text
    assert (made.json()["calibration"], made.json()["is_stored"], made.json()["withheld"]["share"]) == (None, False, 0)
    assert "location" not in made.headers
    assert len(service.get(f"{OWN}/calibrations").json()["calibrations"]) == 1
