"""`monitor`: figures and alarms as text, as JSON, in views, by webhook and for Prometheus."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.cli import samples
from tests.cli.program import Outcome, Program, check_refusal, nothing_stored
from tests.cli.samples import CLASS_NAMES, NAME, SCORED_ROWS, K
from tests.receiver import Receiver, receiving
from venn_admit.store.database.engine import connect, create_engine

ALARM = 7
SAMPLE = re.compile(r'^(?P<metric>\w+)\{(?P<labels>\w+="[^"]*"(,\w+="[^"]*")*)\} (?P<value>\S+)$')


def give(program: Program, folder: Path, *, shift: int = 0) -> None:
    """Label everything that was scored; moved on by `shift` classes."""
    truth = (samples.scored()["label"] + shift) % samples.CLASS_COUNT
    path = folder / "labels.csv"
    lines = [f"scored-{row},{truth[row]}" for row in range(SCORED_ROWS)]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    assert program("label", NAME, path).code == 0


def parsed(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == ALARM
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def view(program: Program, name: str) -> list[dict[str, Any]]:
    engine = create_engine(program.url)
    with connect(engine) as connection:
        rows = [dict(row._mapping) for row in connection.execute(text(f"SELECT * FROM report.{name}"))]
    engine.dispose()
    return rows


def test_nothing_is_known_without_labels(scored: Program) -> None:
    told = scored("monitor", NAME)
    assert told.code == 0
    assert "No label counts yet" in told.stdout
    found = scored("monitor", NAME, "--json").result
    assert (found["documents"], found["alarm"], found["alarms"]) == (0, False, [])
    assert all(not lamp["lit"] for lamp in found["lamps"].values())
    with nothing_stored(scored):
        assert scored("monitor", NAME).stdout == told.stdout


def test_labels_that_are_as_promised(scored: Program, tmp_path: Path) -> None:
    give(scored, tmp_path)
    found = scored("monitor", NAME, "--json").result
    assert (found["documents"], found["points"], found["target"]) == (SCORED_ROWS, SCORED_ROWS, "0.8")
    promise = [row for row in found["readings"] if row["lamp"] == "promise"]
    assert {row["predicted_class"] for row in promise} <= set(CLASS_NAMES)
    assert all(0 < row["lower_bound"] < row["share_right"] for row in promise)
    assert {row["q"] for row in found["readings"] if row["lamp"] == "partitions"} <= {"0", f"1-{K - 1}", str(K)}
    told = scored("monitor", NAME)
    assert told.code == 0
    for part in ("The promise: share right", "Inside partitions", "The mix of partitions", "No alarm stands."):
        assert part in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 120


def test_an_alarm_has_an_exit_code_of_its_own(scored: Program, tmp_path: Path) -> None:
    give(scored, tmp_path, shift=1)
    told = scored("monitor", NAME)
    assert told.code == ALARM
    assert "ALARM: of what is admitted as '" in told.stdout
    assert re.search(r"^error: (an alarm stands|\d+ alarms stand) for classifier 'colours'", told.stderr, re.M)
    found = parsed(scored("monitor", NAME, "--json"))
    assert found["alarm"]
    assert {alarm["lamp"] for alarm in found["alarms"]} >= {"promise", "true_classes", "early_promise"}
    for alarm in found["alarms"]:
        assert alarm["harmful"] == (alarm["lamp"] in {"promise", "partitions"})
        assert alarm["figures"]["largest_e_value"] >= alarm["figures"]["needed"]
        of_shares = alarm["lamp"] not in {"partitions", "mix"}
        assert (alarm["figures"]["since_document"] is not None) == of_shares

    give(scored, tmp_path)
    assert scored("monitor", NAME).code == 0, "labels that were corrected take their alarm back"


def test_starting_anew(scored: Program, tmp_path: Path) -> None:
    give(scored, tmp_path, shift=1)
    assert scored("monitor", NAME).code == ALARM
    found = scored("monitor", NAME, "--restart", "--json").result
    assert (found["documents"], found["alarms"]) == (0, [])
    assert scored("monitor", NAME).code == 0


def test_views_show_what_the_program_shows(scored: Program, tmp_path: Path) -> None:
    assert view(scored, "monitor_v2") == []
    give(scored, tmp_path, shift=1)
    found = parsed(scored("monitor", NAME, "--json"))
    groups = {"none": "0", "some": f"1-{K - 1}", "all": str(K), None: None}
    rows = {
        (row["lamp"], row["class_name"], groups[row["matching_neighbours"]]): row for row in view(scored, "monitor_v2")
    }
    assert len(rows) == len(found["readings"])
    for reading in found["readings"]:
        name = reading.get("class", reading.get("predicted_class"))
        row = rows[reading["lamp"], name, reading.get("q")]
        same = {
            "documents": "documents",
            "labels": "labels",
            "correct": "right",
            "share_correct": "share_right",
            "lower_bound": "lower_bound",
            "e_value": "e_value",
            "largest_e_value": "largest_e_value",
            "needed": "needed",
            "is_lit": "lit",
        }
        assert {column: row[column] for column in same} == {column: reading[key] for column, key in same.items()}
        assert (row["classifier"], row["setting"], row["target"]) == (NAME, found["setting"], 0.8)
    alarms = view(scored, "alarm_v2")
    assert [alarm["alarm"] for alarm in alarms] == [alarm["alarm"] for alarm in found["alarms"]]
    assert all(alarm["is_standing"] and alarm["ended_at"] is None for alarm in alarms)
    give(scored, tmp_path)
    assert scored("monitor", NAME).code == 0
    ended = [alarm for alarm in view(scored, "alarm_v2") if alarm["is_harmful"]]
    assert ended
    assert not any(alarm["is_standing"] for alarm in ended)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def test_a_webhook_is_sent_each_alarm_once(scored: Program, tmp_path: Path, receiver: Receiver) -> None:
    assert scored("monitor", NAME, "--webhook", receiver.url).code == 0
    assert receiver.received == []
    give(scored, tmp_path, shift=1)
    receiver.statuses = [500, 302]
    told = scored("monitor", NAME, "--webhook", receiver.url, "--json")
    alarms = parsed(told)["alarms"]
    assert len(alarms) > 2
    assert told.stderr.count("warning: the webhook did not take alarm") == 2
    assert "it answered with status 500" in told.stderr.replace("\n  ", " ")
    assert receiver.received == alarms[2:]
    for _ in range(2):
        again = scored("monitor", NAME, "--webhook", receiver.url)
        assert (again.code, "warning" in again.stderr) == (ALARM, False)
        assert receiver.received == [*alarms[2:], *alarms[:2]]


def test_a_webhook_that_cannot_be_reached_is_a_warning(scored: Program, tmp_path: Path, receiver: Receiver) -> None:
    give(scored, tmp_path, shift=1)
    told = scored("monitor", NAME, "--webhook", "http://127.0.0.1:9/?token=hunter2", "--json")
    assert parsed(told)["alarms"]
    assert told.stderr.count("warning: the webhook cannot be reached: ") == 1
    assert "hunter2" not in told.stderr
    assert scored("monitor", NAME, "--webhook", receiver.url).code == ALARM
    assert receiver.received


def test_metrics(scored: Program, tmp_path: Path) -> None:
    path = tmp_path / "venn.prom"
    give(scored, tmp_path, shift=1)
    found = parsed(scored("monitor", NAME, "--prometheus", path, "--json"))
    values: dict[tuple[str, str], float] = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            sample = SAMPLE.match(line)
            assert sample, line
            values[sample["metric"], sample["labels"]] = float(sample["value"])
    assert values["venn_admit_monitor_alarms", f'classifier="{NAME}"'] == sum(a["harmful"] for a in found["alarms"])
    for reading in found["readings"]:
        if reading["lamp"] == "promise":
            labels = f'classifier="{NAME}",lamp="promise",class="{reading["predicted_class"]}"'
            assert values["venn_admit_monitor_labels", labels] == reading["labels"]
            assert values["venn_admit_monitor_e_value", labels] == reading["e_value"]
    assert [entry.name for entry in tmp_path.glob("*.prom*")] == ["venn.prom"]


def test_refusals(scored: Program, ingested: Program, tmp_path: Path) -> None:
    check_refusal(scored("monitor", "nothing"), 3, "no classifier is named 'nothing'")
    check_refusal(
        ingested("monitor", NAME), 4, f"has no calibration yet: calibrate it first; run `venn-admit calibrate {NAME}`$"
    )
    with nothing_stored(scored):
        for url in (
            "ftp://host/hook",
            "host/hook",
            "http://",
            "http://host:port/",
            "file:///etc/passwd",
            "http://host/a b",
            "http://somebody:secret@host/hook",
        ):
            check_refusal(
                scored("monitor", NAME, "--webhook", url),
                2,
                "--webhook: expected https://host/path or http://host/path, without a user",
            )
        check_refusal(
            scored("monitor", NAME, "--prometheus", tmp_path / "metrics.txt"), 2, r"expected a name ending in \.prom"
        )
        check_refusal(scored("monitor", NAME, "--prometheus", tmp_path / "no" / "a.prom"), 2, "check the folder")
