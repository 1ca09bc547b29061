"""What is stored, over HTTP: as `--json` has it, in pages, and with tags that tell whether it changed."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import serving
from tests.api.service import OWN, Service, check_problem
from tests.cli import samples
from tests.cli.databases import copied
from tests.cli.program import Program
from tests.cli.samples import NAME, K
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.flows.keys.keys import create
from venn_admit.flows.removal.delete import delete
from venn_admit.http.paging import cursor_after
from venn_admit.store.access.keys import Scope


@pytest.fixture(scope="module")
def scored(
    calibrated: Program, server_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Program]]:
    """The application with 200 decisions and two calibrations."""
    folder = tmp_path_factory.mktemp("scored")
    with copied(calibrated, server_url, folder) as program:
        file = samples.save(folder, "scored.npz", samples.scored())
        assert program("score", NAME, file, "--out", folder / "scores.parquet").code == 0
        assert program("calibrate", NAME, "--method", "venn-abers", "--certify", "predicted").code == 0
        with serving(program) as service:
            yield service, program


def listed(service: Service, path: str, name: str, **options: Any) -> list[dict[str, Any]]:
    """Return all rows of a list, page by page."""
    rows: list[dict[str, Any]] = []
    cursor = None
    while True:
        asked = {**options, **({} if cursor is None else {"cursor": cursor})}
        answer = service.get(path, params=asked).json()
        rows += answer[name]
        cursor = answer["next_cursor"]
        if cursor is None:
            return rows
        assert len(answer[name]) == options["limit"]


@pytest.mark.parametrize(
    ("path", "verb"),
    [
        ("/v1/classifiers", ("list",)),
        (OWN, ("show", NAME)),
        (f"{OWN}/report", ("report", NAME)),
        (f"{OWN}/report?calibration=1", ("report", NAME, "--calibration", 1)),
        (f"{OWN}/jobs/1", ("jobs", "show", 1)),
    ],
)
def test_is_what_the_command_line_says(scored: tuple[Service, Program], path: str, verb: tuple[object, ...]) -> None:
    service, program = scored
    answer = service.get(path)
    assert answer.status_code == 200, answer.text
    told, expected = answer.json(), program(*verb, "--json").result
    told.pop("next_cursor", None)
    told.pop("advice", None)  # which names requests here, and commands there
    expected.pop("advice", None)
    assert at_one_time(told) == at_one_time(expected)


def at_one_time(value: Any) -> Any:
    """The same without the form that a time in UTC is written in."""
    match value:
        case dict():
            return {key: at_one_time(item) for key, item in value.items()}
        case list():
            return [at_one_time(item) for item in value]
        case str():
            return value.replace("+00:00", "Z")
    return value


def test_advice_names_requests(shared: Service) -> None:
    advice = str(shared.get(f"{OWN}/report").json()["advice"])
    assert advice
    assert "venn-admit " not in advice


def test_the_monitor_and_its_alarms(scored: tuple[Service, Program]) -> None:
    service, program = scored
    told = service.get(f"{OWN}/monitor").json()
    assert at_one_time(told) == at_one_time(program("monitor", NAME, "--json").result)
    assert service.get(f"{OWN}/alarms").json() == {"classifier": NAME, "alarms": told["alarms"]}


def test_the_policy(scored: tuple[Service, Program]) -> None:
    service, _ = scored
    told = service.get(f"{OWN}/policy").json()
    assert (told["classifier"], told["calibration"]) == (NAME, 2)
    assert set(told) >= {"score", "q_bins", "confidence", "thresholds", "chains"}
    refused = service.get(f"{OWN}/policy", params={"calibration": 1})
    check_problem(refused, 422, "invalid-input", "was asked for no certificate")


def test_pages_of_decisions_follow_each_other(scored: tuple[Service, Program]) -> None:
    service, _ = scored
    rows = listed(service, f"{OWN}/decisions", "decisions", limit=70)
    numbers = [row["decision"] for row in rows]
    assert len(numbers) == len(set(numbers)) == samples.SCORED_ROWS
    assert numbers == sorted(numbers, reverse=True)
    assert rows == listed(service, f"{OWN}/decisions", "decisions", limit=1000)


def test_pages_of_classifiers_follow_each_other_by_name(empty: Service) -> None:
    long = "\U0001f600" * 100
    names = [f"classifier {number}" for number in range(5)] + [long, "a @ b", "own"]
    for name in names:
        create_classifier(empty.runtime.engine, name, ("a", "b"), seed=0, dimension=2)
    assert empty.post("/v1/classifiers/own/generations", {}).status_code == 201
    told = [row["classifier"] for row in listed(empty, "/v1/classifiers", "classifiers", limit=2)]
    assert sorted(told) == sorted([*names, "own@2"])
    for limit in (1, 4, 1000):
        rows = listed(empty, "/v1/classifiers", "classifiers", limit=limit)
        assert [row["classifier"] for row in rows] == told

    first = empty.get("/v1/classifiers", params={"limit": 3}).json()
    create_classifier(empty.runtime.engine, "a", ("a", "b"), seed=0, dimension=2)
    delete(empty.runtime, told[2])
    rest = empty.get("/v1/classifiers", params={"cursor": first["next_cursor"]}).json()
    assert [row["classifier"] for row in rest["classifiers"]] == told[3:], "what is added or gone shifts no page"

    key = create(empty.runtime.engine, "app", scope=Scope.READ, classifier="own").text
    own = Service(empty.client, empty.runtime, {Scope.READ: key})
    assert [row["classifier"] for row in listed(own, "/v1/classifiers", "classifiers", limit=1)] == ["own", "own@2"]


def test_decisions_are_filtered(scored: tuple[Service, Program]) -> None:
    service, _ = scored

    def wanted(**filters: object) -> list[dict[str, Any]]:
        return listed(service, f"{OWN}/decisions", "decisions", limit=50, **filters)

    admitted, rejected = wanted(admitted=True), wanted(admitted=False)
    assert admitted
    assert rejected
    assert len(admitted) + len(rejected) == samples.SCORED_ROWS
    assert all(row["decided_class"] is not None and row["reason"] is None for row in admitted)
    assert all(row["decided"] is None and row["reason"] for row in rejected)
    assert [row["external_id"] for row in wanted(external_id="scored-7")] == ["scored-7"]
    assert len(wanted(calibration=1)) == samples.SCORED_ROWS
    assert wanted(calibration=2) == []
    check_problem(service.get(f"{OWN}/decisions", params={"calibration": 99}), 404, "unknown-calibration")


def test_a_decision_is_shown_with_its_neighbours_and_replayed(scored: tuple[Service, Program]) -> None:
    service, program = scored
    shown = service.get(f"{OWN}/decisions/3").json()
    replayed = service.post(f"{OWN}/decisions/3/replay", None).json()
    assert at_one_time(replayed) == at_one_time(program("replay", 3, "--json").result)
    assert replayed["differing"] == []
    assert shown["neighbours"] == replayed["neighbours"]
    assert len(shown["neighbours"]) == K
    assert {name: shown[name] for name in replayed["stored"]} == replayed["stored"]
    check_problem(service.get(f"{OWN}/decisions/999999"), 404, "unknown-decision")
    check_problem(service.post(f"{OWN}/decisions/999999/replay", None), 404, "unknown-decision")


def test_after_training_data_changed_neighbours_are_left_to_a_replay(
    service: Service, own_calibrated: Program, tmp_path: Any
) -> None:
    file = samples.save(tmp_path, "scored.npz", samples.take(samples.scored(), [0, 1]))
    assert own_calibrated("score", NAME, file, "--out", tmp_path / "scores.parquet").code == 0
    before = service.get(f"{OWN}/decisions/1").json()["neighbours"]
    more = samples.save(tmp_path, "more.npz", samples.exemplars("more", 5, seed=9))
    assert own_calibrated("ingest", NAME, more, "--split", "train").code == 0
    assert service.get(f"{OWN}/decisions/1").json()["neighbours"] is None
    assert service.post(f"{OWN}/decisions/1/replay", None).json()["neighbours"] == before


def test_what_belongs_to_another_classifier_is_not_found(service: Service, own_calibrated: Program) -> None:
    assert own_calibrated("create", "other", "--classes", "a,b", "--dim", 2).code == 0
    check_problem(service.get(f"{OWN.replace(NAME, 'other')}/jobs/1"), 404, "unknown-job")
    check_problem(service.get(f"{OWN.replace(NAME, 'other')}/calibrations/1"), 404, "unknown-calibration")
    check_problem(
        service.get(f"{OWN.replace(NAME, 'none')}/jobs/1"), 404, "unknown-classifier", "known: colours, other"
    )


def test_calibrations_have_pages_and_tags(scored: tuple[Service, Program]) -> None:
    service, _ = scored
    rows = listed(service, f"{OWN}/calibrations", "calibrations", limit=1)
    assert [row["calibration"] for row in rows] == [2, 1]
    first = service.get(f"{OWN}/calibration")
    assert first.json()["calibration"] == 2
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    for known in (tag, f'"x", W/{tag}', "*"):
        again = service.get(f"{OWN}/calibration", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert service.get(f"{OWN}/calibrations/1", headers={"If-None-Match": tag}).status_code == 200
    assert service.get(f"{OWN}/calibrations/2").json() == first.json()


def test_a_tag_changes_with_the_calibration(service: Service, own_calibrated: Program) -> None:
    def tag(path: str) -> str:
        return service.get(f"{OWN}/{path}").headers["etag"]

    current, first = tag("calibration"), tag("calibrations/1")
    assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.3", "--kappa", 10).code == 0
    assert tag("calibration") != current
    assert tag("calibrations/1") != first, "it is in use no longer"


@pytest.mark.parametrize("cursor", ["x", "YWJj", cursor_after(7)[:-1] + "_", "A" * 99, cursor_after(10**18) + "A"])
def test_another_cursor_is_refused(shared: Service, cursor: str) -> None:
    for path in (f"{OWN}/jobs", "/v1/classifiers"):
        check_problem(shared.get(path, params={"cursor": cursor}), 422, "invalid-input", "cursor: expected the")


def test_a_cursor_of_another_kind_of_list_is_refused(shared: Service) -> None:
    for path, cursor in ((f"{OWN}/jobs", cursor_after(NAME)), ("/v1/classifiers", cursor_after(7))):
        check_problem(shared.get(path, params={"cursor": cursor}), 422, "invalid-input", "cursor: expected the")


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=x", "calibration=0", f"calibration={2**63}", "external_id=a%00b", "cursor=%20"],
)
def test_other_parameters_are_refused(shared: Service, query: str) -> None:
    check_problem(shared.get(f"{OWN}/decisions?{query}"), 422, "invalid-request", "query.")


def test_names_need_not_be_plain(empty: Service) -> None:
    name = "my reviews % ü?#"
    made = empty.post("/v1/classifiers", {"classifier": name, "classes": ["a", "b"], "dimension": 2})
    assert made.headers["location"] == "/v1/classifiers/my%20reviews%20%25%20%C3%BC%3F%23"
    assert isinstance(empty.client, TestClient)
    assert empty.get(made.headers["location"]).json()["classifier"] == name
