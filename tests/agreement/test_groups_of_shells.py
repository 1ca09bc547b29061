"""Every shell takes the attributes of a point, decides by the certificate of its group alike, and shows its lamp."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import venn_admit
from tests.api.conftest import remote_client, serving
from tests.cli import samples
from tests.cli.databases import on_database
from tests.conftest import fresh_database
from tests.flows.logits import NAME, exemplars
from tests.web.conftest import visited
from venn_admit.store.access.keys import Scope

LOGITS = [9.0, 0.0, 0.0]
ALARM = 7
NOT_CERTIFIED = "group not certified"


@pytest.fixture(scope="module")
def decide(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What each shell says of the same logits with some attributes: the reason to reject them, or None."""
    folder = tmp_path_factory.mktemp("groups")
    rows = exemplars("held-out", 1500, seed=1)
    rows["region"] = np.where(np.arange(1500) % 3 == 0, "south", "north")
    np.savez(folder / "held-out.npz", **rows)
    point = samples.take(rows, [0]) | {"f": np.array([LOGITS], dtype=np.float32)}
    with fresh_database(server_url, template_database) as url:
        program = on_database(url, folder / "home")
        assert program("create", NAME, "--classes", "a,b,c", "--logits-only").code == 0
        assert program("ingest", NAME, folder / "held-out.npz", "--split", "held-out").code == 0
        asked = ("--method", "venn-abers", "--alpha", "0.2", "--certify", "predicted*group:region")
        done = program("calibrate", NAME, *asked)
        assert "in every predicted class of every region" in " ".join(done.stdout.split())
        with (
            serving(program) as service,
            remote_client(service) as remote,
            visited(program) as page,
            venn_admit.connect(program.url, home=program.home) as connection,
        ):

            def by_command(region: str | None) -> Any:
                given = () if region is None else ("--attributes", f"region={region}")
                return program("decide", NAME, "--logits", "9,0,0", *given, "--json").result["reason"]

            def by_file(region: str | None) -> Any:
                own = {name: values for name, values in point.items() if name != "region" or region is not None}
                own |= {} if region is None else {"region": np.array([region])}
                samples.save(folder, "point.npz", own)
                return program("decide", NAME, folder / "point.npz", "--json").result["reason"]

            def by_request(region: str | None) -> Any:
                asked = {"logits": LOGITS} | ({} if region is None else {"attributes": {"region": region}})
                answer = service.post(f"/v1/classifiers/{NAME}/decide", {"points": [asked]}, key=Scope.SCORE)
                return answer.json()["decisions"][0]["reason"]

            def by_page(region: str | None) -> Any:
                page.sign_in(Scope.SCORE)
                given = {} if region is None else {"attributes": f"region={region}, device=pc"}
                answer = page.send(f"/classifiers/{NAME}/try", logits="9, 0, 0", **given)
                assert answer.status_code == 200, answer.text
                outcome = re.search(r'<p class="answer" role="status">(.*?)</p>', answer.text, flags=re.DOTALL)
                assert outcome is not None
                return NOT_CERTIFIED if NOT_CERTIFIED in outcome[1] else None

            def of(classifier: Any) -> Callable[[str | None], Any]:
                return lambda region: (
                    classifier.decide(logits=LOGITS, attributes=None if region is None else {"region": region}).reason
                )

            traffic = exemplars("traffic", 600, seed=2) | {"region": rows["region"][:600]}
            samples.save(folder, "traffic.npz", traffic | {"y": np.full(600, -1)})
            assert program("score", NAME, folder / "traffic.npz", "--out", folder / "out.csv").code == 0
            # All is wrong in the south.
            label = np.where(traffic["region"] == "south", (traffic["f"].argmax(axis=1) + 1) % 3, traffic["y"])
            lines = [f"{of},{number}" for of, number in zip(traffic["id"], label, strict=True)]
            (folder / "labels.csv").write_text("\n".join(["external_id,label", *lines]) + "\n")
            assert program("label", NAME, folder / "labels.csv").code == 0

            def by_monitor() -> Any:
                told = program("monitor", NAME)
                assert told.code == ALARM
                assert "region south, fewer than 0.8 are right" in " ".join(told.stdout.split())
                return json.loads(program("monitor", NAME, "--json").stdout)["alarms"]

            def by_service() -> Any:
                return service.get(f"/v1/classifiers/{NAME}/alarms", key=Scope.READ).json()["alarms"]

            def shown_on_page() -> str:
                page.sign_in(Scope.READ)
                return page.open(f"/classifiers/{NAME}")

            yield {
                "alarms": {
                    "command line": by_monitor,
                    "HTTP": by_service,
                    "Python": lambda: [alarm.document for alarm in connection.classifier(NAME).monitor().alarms],
                    "client": lambda: [alarm.document for alarm in remote.classifier(NAME).alarms()],
                },
                "records": lambda: (connection.classifier(NAME).monitor(), remote.classifier(NAME).monitor()),
                "classifier's page": shown_on_page,
                "report": lambda _: program("report", NAME).stdout,
                "command line": by_command,
                "file": by_file,
                "HTTP": by_request,
                "page": by_page,
                "Python": of(connection.classifier(NAME)),
                "client": of(remote.classifier(NAME)),
                "client, many": lambda region: (
                    remote.classifier(NAME)
                    .decide_many(logits=[LOGITS], attributes=None if region is None else {"region": [region]})[0]
                    .reason
                ),
            }


@pytest.mark.parametrize("shell", ["command line", "file", "HTTP", "page", "Python", "client", "client, many"])
def test_a_shell_decides_by_group(decide: dict[str, Callable[[str | None], Any]], shell: str) -> None:
    assert [decide[shell](region) for region in ("north", "east", None)] == [None, NOT_CERTIFIED, NOT_CERTIFIED]


def test_every_shell_shows_the_lamps_of_groups(decide: dict[str, Any]) -> None:
    members = ("alarm", "lamp", "kind", "predicted_class", "group", "harmful")
    found = {
        shell: [{member: alarm.get(member) for member in members} for alarm in alarms()]
        for shell, alarms in decide["alarms"].items()
    }
    assert all(alarms == found["HTTP"] for alarms in found.values())
    of_groups = [alarm for alarm in found["HTTP"] if alarm["lamp"] == "groups"]
    assert {alarm["group"] for alarm in of_groups} == {"south"}
    assert {alarm["kind"] for alarm in of_groups} == {"predicted*group:region"}
    for monitor in decide["records"]():
        south = [alarm for alarm in monitor.alarms if alarm.lamp == "groups"]
        assert [(one.group, one.label, one.harmful) for one in south] == [
            ("south", alarm["predicted_class"], True) for alarm in of_groups
        ]
    count = sum(alarm["harmful"] for alarm in found["HTTP"])
    assert f"{count} alarms" in decide["classifier's page"]()
    said = " ".join(decide["report"](None).split())
    assert f"ALARM: of what is admitted of predicted {of_groups[0]['predicted_class']}, region south" in said


def test_a_report_says_what_is_promised_of_groups(decide: dict[str, Callable[[str | None], Any]]) -> None:
    said = " ".join(decide["report"](None).split())
    assert "predicted a, region north" in said
    assert "whatever the mix of these groups becomes" in said
