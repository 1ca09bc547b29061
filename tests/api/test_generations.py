"""Generations over HTTP: added, filled, switched to and fro under load, and reached by the keys of their classifier."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from tests.api.conftest import serving
from tests.api.service import OWN, Service, check_problem
from tests.api.test_decide import points
from tests.cli import samples
from tests.cli.databases import CALIBRATION, copied
from tests.cli.program import Program
from tests.cli.samples import DIMENSION, NAME
from tests.files.samples import Columns
from tests.patience import PATIENCE_SECONDS
from venn_admit.flows.calibration.generations import create_generation, switch
from venn_admit.flows.keys.keys import create
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import create_engine
from venn_admit_client.bodies import PARQUET

FIRST, SECOND = (f"/v1/classifiers/{NAME}@{number}" for number in (1, 2))
SWITCHES, CLIENTS = 10, 4
ASKED: tuple[tuple[list[int], bool | None], ...] = (([0, 7, 150], None), ([3], False), ([20, 21, 22, 23], True))
"""Rows, and whether they are weighted."""

_Answer = TypeVar("_Answer")


def seen_anew(columns: Columns, extractor: str | None) -> Columns:
    """The same exemplars as another extractor sees them, in a space of the same dimension."""
    vectors = columns["vector"][:, ::-1] + np.random.default_rng(5).normal(size=columns["vector"].shape)
    stated = {} if extractor is None else {"extractor": np.array(extractor)}
    return columns | {"vector": vectors.astype(np.float32)} | stated


def fill(program: Program, folder: Path, extractor: str | None = None) -> None:
    """Give the second generation its exemplars, and calibrate it."""
    name = f"{NAME}@2"
    for split, columns in (("train", samples.train()), ("held-out", samples.held_out())):
        path = samples.save(folder, f"{split}-2.npz", seen_anew(columns, extractor))
        assert program("ingest", name, path, "--split", split).code == 0
    assert program("fit", name).code == 0
    assert program("calibrate", name, *CALIBRATION).code == 0


@pytest.fixture(scope="module")
def with_two(calibrated: Program, server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The program with two calibrated generations; to be left as it is."""
    folder = tmp_path_factory.mktemp("two")
    with copied(calibrated, server_url, folder) as program:
        engine = create_engine(program.url)
        create_generation(engine, NAME)
        engine.dispose()
        fill(program, folder)
        yield program


@pytest.fixture
def own_two(with_two: Program, server_url: str, tmp_path: Path) -> Iterator[Program]:
    with copied(with_two, server_url, tmp_path) as program:
        yield program


@pytest.fixture
def two(own_two: Program) -> Iterator[Service]:
    """The application with two calibrated generations."""
    with serving(own_two) as made:
        yield made


def put(service: Service, path: str, body: object, *, key: Scope = Scope.ADMIN) -> Any:
    headers = {"Content-Type": "application/json"}
    return service.ask("PUT", path, key=key, content=json.dumps(body), headers=headers)


def to(service: Service, number: int, **options: Any) -> Any:
    answer = put(service, f"{OWN}/generations/current", {"generation": number, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def decide(service: Service, base: str, rows: list[int], *, weighted: bool | None = None) -> Any:
    answer = service.post(f"{base}/decide", {"points": points(rows), "weighted": weighted}, key=Scope.SCORE)
    assert answer.status_code == 200, answer.text
    return answer.json()


def answered_while_switched(service: Service, ask: Callable[[int], Iterator[_Answer]]) -> list[list[_Answer]]:
    """What each client was answered, in order, while it was switched to and fro: twice at least after every switch."""
    is_over = threading.Event()
    answered: list[list[_Answer]] = [[] for _ in range(CLIENTS)]

    def ask_on(client: int) -> None:
        while not is_over.is_set():
            answered[client].extend(ask(client))

    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(ask_on, client) for client in range(CLIENTS)]
        try:
            for turn in range(SWITCHES):
                wanted = 2 - turn % 2
                told = to(service, wanted)
                assert (told["changes"], told["after"]["generation"]) == (True, wanted)
                until, seen = time.monotonic() + PATIENCE_SECONDS, [len(one) for one in answered]
                while any(len(one) < before + 2 for one, before in zip(answered, seen, strict=True)):
                    assert time.monotonic() < until, "no answers come"
                    assert not any(client.done() for client in clients), "a client failed"
                    time.sleep(0.01)
        finally:
            is_over.set()
        for client in clients:
            client.result()
    return answered


def changes(answers: Sequence[object]) -> int:
    return sum(one != other for one, other in itertools.pairwise(answers))


def test_every_answer_under_load_is_of_one_generation(two: Service) -> None:
    """Clients that know only the name ask while it is switched to and fro; each gets what one generation says alone."""
    alone = [
        {number: decide(two, base, rows, weighted=weighted) for number, base in ((1, FIRST), (2, SECOND))}
        for rows, weighted in ASKED
    ]
    assert all(one[1]["decisions"] != one[2]["decisions"] for one in alone), "the generations can be told apart"

    def ask(_: int) -> Iterator[int]:
        for (rows, weighted), expected in zip(ASKED, alone, strict=True):
            told = decide(two, OWN, rows, weighted=weighted)
            (number,) = (number for number, one in expected.items() if one == told)
            yield number

    for numbers in answered_while_switched(two, ask):
        assert set(numbers) == {1, 2}
        # Once a client has seen the new generation, it sees no other until the next switch.
        assert changes(numbers) <= SWITCHES


def test_vectors_of_each_extractor_are_decided_on_by_its_generation_alone(
    service: Service, own_calibrated: Program, tmp_path: Path
) -> None:
    """Half of the clients send what the old extractor makes of the points, half what the new one does."""
    assert put(service, f"{OWN}/extractor", {"extractor": "v1"}).status_code == 200
    assert service.post(f"{OWN}/generations", {"extractor": "v2"}).status_code == 201
    fill(own_calibrated, tmp_path, "v2")
    by_extractor = {"v1": samples.scored(), "v2": seen_anew(samples.scored(), None)}
    bodies = {
        extractor: [
            {"points": points(rows, columns), "weighted": weighted, "extractor": extractor} for rows, weighted in ASKED
        ]
        for extractor, columns in by_extractor.items()
    }
    bases = {"v1": FIRST, "v2": SECOND}
    alone = {
        extractor: [service.post(f"{bases[extractor]}/decide", body, key=Scope.SCORE).json() for body in asked]
        for extractor, asked in bodies.items()
    }

    def ask(client: int) -> Iterator[bool]:
        extractor = f"v{1 + client % 2}"
        for body, expected in zip(bodies[extractor], alone[extractor], strict=True):
            answer = service.post(f"{OWN}/decide", body, key=Scope.SCORE)
            is_own = answer.status_code == 200
            if is_own:
                assert answer.json() == expected
            else:
                check_problem(answer, 409, "extractor-differs", f"got '{extractor}'")
            yield is_own

    for answers in answered_while_switched(service, ask):
        assert set(answers) == {True, False}
        assert changes(answers) <= SWITCHES


def test_jobs_that_began_before_go_on_and_are_found(two: Service, files: Path) -> None:
    content = samples.save(files, "to-score.parquet", samples.scored()).read_bytes()
    answer = two.ask("POST", f"{OWN}/jobs", key=Scope.SCORE, content=content, headers={"Content-Type": PARQUET})
    assert answer.status_code == 202, answer.text
    to(two, 2)
    shown = two.get(answer.headers["Location"])
    assert (shown.status_code, shown.json()["classifier"]) == (200, f"{NAME}@1")


class TestGenerations:
    def test_they_are_listed(self, two: Service) -> None:
        found = two.get(f"{OWN}/generations").json()
        assert found["classifier"] == NAME
        assert [
            (one["classifier"], one["generation"], one["is_current"], one["in_use"]["calibration"])
            for one in found["generations"]
        ] == [(NAME, 1, True, 1), (f"{NAME}@2", 2, False, 2)]
        listed = two.get("/v1/classifiers").json()["classifiers"]
        assert [one["classifier"] for one in listed] == [NAME, f"{NAME}@2"]

    def test_a_dry_run_changes_nothing(self, two: Service) -> None:
        told = to(two, 2, dry_run=True)
        assert (told["changes"], told["is_made"], told["never_admitted"]) == (True, False, [])
        assert two.get(OWN).json()["generation"] == 1

    def test_one_that_is_not_ready(self, service: Service) -> None:
        assert service.post(f"{OWN}/generations", {"dimension": 4, "extractor": "v2"}).json()["extractor"] == "v2"
        answer = put(service, f"{OWN}/generations/current", {"generation": 2})
        check_problem(answer, 409, "not-calibrated", f"'{NAME}@2' has no calibration yet")
        check_problem(
            put(service, f"{OWN}/generations/current", {"generation": 7}), 404, "unknown-classifier", f"'{NAME}@7'"
        )

    def test_only_an_admin_may(self, two: Service) -> None:
        for answer in (
            two.post(f"{OWN}/generations", {}, key=Scope.WRITE),
            put(two, f"{OWN}/generations/current", {"generation": 2}, key=Scope.WRITE),
            put(two, f"{OWN}/extractor", {"extractor": "v1"}, key=Scope.WRITE),
        ):
            assert answer.status_code == 403

    def test_the_ledger_has_the_switch(self, two: Service) -> None:
        to(two, 2)
        events = two.get("/v1/audit", key=Scope.ADMIN).json()["events"][:2]
        assert [(one["action"], one["target"], one["origin"]) for one in events] == [
            ("switch_generation", NAME, "http"),
            ("switch_generation", f"{NAME}@2", "http"),
        ]
        assert events[0]["key"] == events[1]["key"]

    def test_a_decision_made_before_is_shown_and_replayed(self, two: Service, own_two: Program, files: Path) -> None:
        out = files / "before.parquet"
        assert own_two("score", NAME, files / "scored.npz", "--out", out).code == 0
        decision = two.get(f"{OWN}/decisions", params={"limit": 1}).json()["decisions"][0]["decision"]
        to(two, 2)
        replayed = two.post(f"{OWN}/decisions/{decision}/replay", None, key=Scope.READ)
        assert (replayed.status_code, replayed.json()["differing"]) == (200, []), replayed.text
        assert two.get(f"{OWN}/decisions/{decision}").json()["classifier"] == f"{NAME}@1"


def test_a_key_for_the_classifier_is_for_each_generation_and_no_other(two: Service) -> None:
    assert (
        two.post("/v1/classifiers", {"classifier": "other", "classes": ["a", "b"], "dimension": 2}).status_code == 201
    )
    own = create(two.runtime.engine, "app", scope="read", classifier=NAME).text
    headers = {"Authorization": f"Bearer {own}"}
    for generation in (2, 1):
        to(two, generation)
        for name, status in ((NAME, 200), (f"{NAME}@1", 200), (f"{NAME}@2", 200), (f"{NAME}@3", 403), ("other", 403)):
            assert two.client.get(f"/v1/classifiers/{name}", headers=headers).status_code == status, name
        listed = two.client.get("/v1/classifiers", headers=headers).json()["classifiers"]
        assert sorted(one["generation"] for one in listed) == [1, 2]


def test_a_request_states_its_extractor(service: Service) -> None:
    asked = {"points": points([0])}
    check_problem(
        service.post(f"{OWN}/decide", asked | {"extractor": "v1"}, key=Scope.SCORE), 409, "extractor-unstated", "'v1'"
    )
    assert put(service, f"{OWN}/extractor", {"extractor": "v1"}).json()["extractor"] == "v1"
    for stated, code in (({"extractor": "v2"}, "extractor-differs"), ({}, "extractor-missing")):
        check_problem(service.post(f"{OWN}/decide", asked | stated, key=Scope.SCORE), 409, code, "expected 'v1'")
    assert service.post(f"{OWN}/decide", asked | {"extractor": "v1"}, key=Scope.SCORE).status_code == 200
    check_problem(put(service, f"{OWN}/extractor", {"extractor": "v2"}), 409, "extractor-differs", "cannot come from")
    new = {"vector": [0.0] * DIMENSION, "logits": [2.0, 0.0, 0.0], "label": 0, "external_id": "new"}
    body = {"split": "train", "exemplars": [new]}
    check_problem(service.post(f"{OWN}/exemplars", body), 409, "extractor-missing", "expected 'v1'")
    assert service.post(f"{OWN}/exemplars", body | {"extractor": "v1"}).json()["new"] == 1


def test_a_switch_by_another_process_is_seen_at_once(two: Service) -> None:
    before = decide(two, OWN, [0])
    switch(two.runtime.engine, f"{NAME}@2")
    assert decide(two, OWN, [0])["calibration"] != before["calibration"]
