"""Decisions over HTTP are those of the command line, and all of a request are by one snapshot."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

from tests.api.service import OWN, Service, check_problem
from tests.cli import samples
from tests.cli.program import ROOT, Program, versions
from tests.cli.samples import CLASS_NAMES, DIMENSION, NAME, K
from tests.files.samples import Columns
from venn_admit.core.reasons import Reason
from venn_admit.store.access.keys import Scope
from venn_admit.store.search import nearest

WITHOUT_TORCH = """
import json, sys
from fastapi.testclient import TestClient
from venn_admit.api.application import create_application
from venn_admit.runtime.workspace import Runtime
from venn_admit.runtime.settings import get_settings

path, key, body = sys.argv[1:]
client = TestClient(create_application(Runtime.start(get_settings())))
answer = client.post(path, json=json.loads(body), headers={"Authorization": f"Bearer {key}"})
assert answer.status_code == 200, answer.text
assert "torch" not in sys.modules
"""


def points(rows: list[int], columns: Columns | None = None) -> list[dict[str, Any]]:
    found = samples.take(samples.scored() if columns is None else columns, rows)
    return [
        {"external_id": str(external_id), "vector": vector.tolist(), "logits": logits.tolist()}
        for external_id, vector, logits in zip(found["external_id"], found["vector"], found["logits"], strict=True)
    ]


@pytest.mark.parametrize(
    ("asked", "options"),
    [({}, ()), ({"weighted": False}, ("--unweighted",)), ({"require_full_match": True}, ("--require-full-match",))],
)
def test_a_decision_is_that_of_the_command_line_bit_for_bit(
    shared: Service, calibrated: Program, files: Path, asked: dict[str, Any], options: tuple[str, ...]
) -> None:
    rows = [0, 7, 150]
    before = versions(shared.runtime.database_url)
    answer = shared.post(f"{OWN}/decide", {"points": points(rows), "neighbours": K, **asked}, key=Scope.SCORE)
    assert answer.status_code == 200, answer.text
    after = versions(shared.runtime.database_url)
    assert {table for table in before if before[table] != after[table]} <= {"api_key"}, "nothing is stored"
    told = answer.json()
    assert told["calibration"] == 1
    for row, decided in zip(rows, told["decisions"], strict=True):
        expected = calibrated("decide", NAME, files / "scored.npz", "--row", row, "--json", *options).result
        assert decided | {"attributes": {}} == expected, "the row's own, which the client has"


@pytest.mark.parametrize(("asked", "alone", "among_others"), [(None, K, 0), (0, 0, 0), (2, 2, 2), (10_000, K, K)])
def test_a_decision_names_as_many_neighbours_as_asked_for(
    shared: Service, calibrated: Program, files: Path, asked: int | None, alone: int, among_others: int
) -> None:
    """All of a single point by default, none of several; the decision is the same."""
    options = () if asked is None else ("--neighbours", asked)
    for rows, count in (([7], alone), ([7, 0, 7], among_others)):
        told = shared.post(f"{OWN}/decide", {"points": points(rows), "neighbours": asked}).json()["decisions"]
        assert [len(one["neighbours"]) for one in told] == [count] * len(rows)
        expected = calibrated("decide", NAME, files / "scored.npz", "--row", 7, "--json", *options).result
        assert told[0]["neighbours"] == expected.pop("neighbours")[:count]
        assert {name: value for name, value in told[-1].items() if name != "neighbours"} == {
            name: value for name, value in expected.items() if name != "attributes"
        }
    refused = shared.post(f"{OWN}/decide", {"points": points([7]), "neighbours": -1})
    check_problem(refused, 422, "invalid-request", "body.neighbours")


def test_without_neighbours_an_answer_is_small(shared: Service) -> None:
    one, other = (shared.post(f"{OWN}/decide", {"points": points([7]), "neighbours": count}) for count in (0, K))
    assert len(one.content) < 800 < len(other.content)


def test_all_points_of_a_request_are_decided_by_one_snapshot(
    service: Service, own_calibrated: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if another calibration becomes current between them."""
    search = nearest.exact_nearest
    searched: list[Any] = []

    def after_another(*arguments: Any) -> Any:
        if searched:
            assert (
                own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.3", "--kappa", 10).code == 0
            )
        searched.append(search(*arguments))
        return searched[-1]

    asked = {"points": points([0, 1])}
    with monkeypatch.context() as patch:
        patch.setattr(nearest, "exact_nearest", after_another)
        told = service.post(f"{OWN}/decide", asked).json()
    assert len(searched) == 2
    assert [one["calibration"] for one in told["decisions"]] == [1, 1]
    assert service.post(f"{OWN}/decide", asked).json()["calibration"] == 2


def test_a_thousand_points_and_no_more(shared: Service) -> None:
    (point,) = points([3])
    answer = shared.post(f"{OWN}/decide", {"points": [point] * 1000})
    decisions = answer.json()["decisions"]
    assert len(decisions) == 1000
    assert all(one == decisions[0] for one in decisions)
    check_problem(shared.post(f"{OWN}/decide", {"points": [point] * 1001}), 422, "invalid-request", "at most 1000")
    check_problem(shared.post(f"{OWN}/decide", {"points": []}), 422, "invalid-request", "at least 1")


@pytest.mark.parametrize(
    ("change", "code", "saying"),
    [
        ({"vector": [0.5]}, "invalid-input", f"points[1].vector: expected {DIMENSION} numbers, got 1"),
        ({"logits": [0.5] * 2}, "invalid-input", f"points[1].logits: expected {len(CLASS_NAMES)} numbers, got 2"),
        ({"vector": [0.5] * 7 + [1e39]}, "invalid-input", "points[1].vector[7]: expected a number that float32 can"),
        ({"vector": None}, "invalid-input", "expected a vector, which classifier 'colours' decides on, got none"),
        ({"vector": ["x"]}, "invalid-request", "body.points.1.vector.0"),
        ({"unknown": 1}, "invalid-request", "body.points.1.unknown"),
        ({"external_id": "a\0b"}, "invalid-request", "body.points.1.external_id"),
        ({"external_id": "\ud800"}, "invalid-request", "body.points.1.external_id"),
    ],
)
def test_what_is_refused_is_named(shared: Service, change: dict[str, Any], code: str, saying: str) -> None:
    good, bad = points([0, 1])
    answer = shared.post(f"{OWN}/decide", {"points": [good, bad | change]})
    check_problem(answer, 422, code, saying)


def test_numbers_that_json_lacks_are_refused(shared: Service) -> None:
    body = b'{"points": [{"vector": [NaN, Infinity, 1e999, 0, 0, 0, 0, 0]}]}'
    answer = shared.ask(
        "POST", f"{OWN}/decide", key=Scope.SCORE, content=body, headers={"Content-Type": "application/json"}
    )
    problem = check_problem(answer, 422, "invalid-request", "finite")
    assert problem.errors is not None
    assert [error.at[-1] for error in problem.errors] == [0], "of a list of numbers, the first that is none"


def test_before_a_calibration_the_request_that_makes_one_is_named(empty: Service) -> None:
    asked = {"points": [{"vector": [0.0] * DIMENSION}]}
    check_problem(empty.post(f"{OWN}/decide", asked), 404, "no-classifier", "; send `POST /v1/classifiers`")
    made = empty.post("/v1/classifiers", {"classifier": NAME, "classes": ["a", "b"], "dimension": DIMENSION, "k": 3})
    assert made.status_code == 201, made.text
    check_problem(empty.post(f"{OWN}/decide", asked), 409, "not-calibrated", f"; send `POST {OWN}/calibrations`")


@pytest.mark.processes
def test_decisions_need_no_torch(shared: Service) -> None:
    body = json.dumps({"points": points([0])})
    finished = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, f"{OWN}/decide", shared.keys[Scope.SCORE], body],
        cwd=ROOT,
        env=os.environ
        | {
            "VENN_ADMIT_DATABASE_URL": shared.runtime.database_url,
            "VENN_ADMIT_HOME": str(shared.runtime.settings.home),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


def test_a_request_costs_three_statements_and_the_search(service: Service) -> None:
    """Whose key it is, which calibration is in use, what the neighbours are called: what cannot change is known."""
    asked = {"points": points([0])}
    for weighted in (False, True):
        first = service.post(f"{OWN}/decide", {**asked, "weighted": weighted}).json()
    engine, said, opened = service.runtime.engine, list[str](), list[object]()
    event.listen(engine, "before_cursor_execute", lambda _connection, _cursor, text, *_others: said.append(text))
    event.listen(engine, "checkout", lambda connection, *_others: opened.append(connection))
    again = service.post(f"{OWN}/decide", {**asked, "weighted": True}).json()
    assert again == first
    assert ["api_key" in said[0], "calibrator.chosen_at" in said[1], "attributes" in said[2]] == [True] * 3
    assert (len(said), len(opened)) == (3, 2)


def test_points_are_counted_for_prometheus(service: Service) -> None:
    rows = list(range(50))
    decided = service.post(f"{OWN}/decide", {"points": points(rows)}).json()["decisions"]
    admitted = sum(one["decision"] is not None for one in decided)
    assert 0 < admitted < len(rows)
    figures = service.get("/metrics").text
    reasons = Counter(one["reason"] for one in decided)
    assert reasons.pop(None) == admitted
    assert reasons.keys() <= set(Reason)
    assert {line for line in figures.splitlines() if line.startswith("venn_admit_http_decided_points_total{")} == {
        f'venn_admit_http_decided_points_total{{admitted="true",reason="admitted"}} {admitted}.0',
        *(
            f'venn_admit_http_decided_points_total{{admitted="false",reason="{reason}"}} {count}.0'
            for reason, count in reasons.items()
        ),
    }
    assert 'route="/v1/classifiers/{classifier}/decide",status="200"' in figures
    assert np.isclose(float(figures.split("\nvenn_admit_workers ")[1].split()[0]), 0)
