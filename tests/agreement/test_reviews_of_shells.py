"""Every shell claims, labels and reports alike, and none says what was predicted before the label is given."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import venn_admit
import venn_admit_client as client
from tests.api.conftest import remote_client, serving
from tests.api.service import OWN, Service, check_problem
from tests.cli.program import Program, check_refusal
from tests.cli.samples import NAME
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction
from venn_admit_client.members import as_json, from_json
from venn_admit_client.records.reviews import Claims, ReviewQueue


@dataclass(frozen=True)
class Shells:
    """Every shell on one database, in which 200 points were decided on."""

    program: Program
    service: Service
    here: venn_admit.Classifier
    there: client.Classifier

    def change(self, statement: str) -> None:
        with transaction(self.service.runtime.engine) as connection:
            connection.execute(text(statement))

    def post(self, route: str, **body: Any) -> Any:
        answer = self.service.post(f"{OWN}/review/{route}", body, key=Scope.WRITE)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def shells(scored: Program) -> Iterator[Shells]:
    with (
        serving(scored) as service,
        remote_client(service) as remote,
        venn_admit.connect(scored.url, home=scored.home) as connection,
    ):
        yield Shells(scored, service, connection.classifier(NAME), remote.classifier(NAME))


def test_every_shell_claims_and_labels_alike(shells: Shells) -> None:
    reviewers = [shells.here.reviewer("anna"), shells.there.reviewer("anna")]
    claims = [reviewer.claim(3, lease=600) for reviewer in reviewers]
    shown = shells.program("review", "next", NAME, "-n", 3, "--reviewer", "anna", "--json").result
    answer = shells.post("claims", reviewer="anna", count=3)
    for found in (*map(as_json, claims), shown, answer):
        # Each shell renews the claims.
        points = [{**point, "lease_until": None} for point in found.pop("points")]
        assert (found["reviewer"], found["waiting"]) == ("anna", claims[0].waiting)
        assert points == [{**as_json(one), "lease_until": None} for one in claims[0].points]
    held = shells.service.get(f"{OWN}/review/claims?reviewer=anna").json()
    assert as_json(from_json(Claims, held)) == as_json(reviewers[0].held()) == as_json(reviewers[1].held())
    ids = [one.id for one in claims[0].points]

    given = [
        as_json(reviewers[0].label({ids[0]: "red"})),
        as_json(reviewers[1].label({ids[1]: 0})),
        shells.program("review", "label", NAME, f"{ids[2]}=red", "--reviewer", "anna", "--json").result,
    ]
    for number, done in enumerate(given):
        (point,) = done.pop("points")
        counts = {"rows": 1, "new": 1, "corrected": 0, "unchanged": 0, "recalibrations_due": 0}
        assert done == {"reviewer": "anna", **counts}
        assert (point["external_id"], point["label"], point["disagrees"]) == (ids[number], "red", False)
        assert point["predicted_class"] is not None
    # Without a name, it is that of the key.
    (point,) = shells.post("claims")["points"]
    assert shells.post("labels", labels=[{"external_id": point["external_id"], "label": 1}])["reviewer"] == "write"

    shells.post("labels", reviewer="berta", labels=[{"external_id": ids[0], "label": "blue"}])
    listed = shells.service.get(f"{OWN}/review/disagreements").json()
    assert shells.program("review", "disagreements", NAME, "--json").result["disagreements"][0]["label"] == "blue"
    for classifier in (shells.here, shells.there):
        (one,) = classifier.disagreements()
        assert (one.id, [each.reviewer for each in one.labels]) == (ids[0], ["anna", "berta"])
    assert listed["disagreements"][0]["labels"][0]["label"] == "red"
    found = shells.service.get(f"{OWN}/review").json()
    assert found == shells.program("review", "status", NAME, "--json").result
    assert found == as_json(shells.here.review_queue()) == as_json(shells.there.review_queue())
    assert isinstance(shells.there.review_queue(), ReviewQueue)
    assert (found["disagreements"], found["reviewers"][0]) == (1, {"reviewer": "anna", "labelled": 3, "claimed": 0})


def test_every_shell_renews_and_releases(shells: Shells) -> None:
    here, there = (one.reviewer("anna") for one in (shells.here, shells.there))
    ids = [one.id for one in here.claim(4).points]
    assert [here.renew(), there.renew(ids[:2]), there.renew([])] == [4, 2, 0]
    assert shells.program("review", "renew", NAME, "--reviewer", "anna", "--json").result == {"renewed": 4}
    assert [here.release(ids[:1]), there.release(ids[1:2])] == [1, 1]
    said = shells.program("review", "release", NAME, ids[2], "--reviewer", "anna")
    assert said.stdout.strip() == "1 claim released."
    assert shells.post("renewals", reviewer="anna") == {"renewed": 1}
    assert shells.post("releases", reviewer="anna") == {"released": 1}
    assert there.held().points == ()


def test_points_leave_in_files_and_their_labels_come_back(shells: Shells, tmp_path: Path) -> None:
    sheet, tasks, records = (tmp_path / name for name in ("points.csv", "tasks.json", "records.json"))
    said = shells.program("review", "export", NAME, sheet, "-n", 4, "--reviewer", "anna")
    assert said.stdout.startswith("4 points in")
    held = shells.here.reviewer("anna").export(records, format="argilla", count=2)  # all that are held
    assert len(json.loads(records.read_text())) == len(held.points) == 4
    assert (held.points[0].lease_until - datetime.now(UTC)).days == 6
    done = shells.program("review", "export", NAME, tasks, "--format", "label-studio", "--reviewer", "anna", "-n", 1)
    assert done.code == 0, done.stderr
    ids = [one["data"]["external_id"] for one in json.loads(tasks.read_text())]
    assert ids == [one.id for one in held.points]

    rows = list(csv.DictReader(sheet.read_text().splitlines()))
    assert [row["external_id"] for row in rows] == ids
    filled = tmp_path / "filled.csv"
    filled.write_text("external_id,label,reviewer\n" + f"{ids[0]},red,\n{ids[0]},blue,berta\n{ids[1]},1,\n")
    outcome = shells.program("review", "import", NAME, filled, "--reviewer", "anna", "--json").result["reviewers"]
    assert [(one["reviewer"], one["rows"]) for one in outcome] == [("anna", 2), ("berta", 1)]
    assert [(one.id, one.label) for one in shells.here.disagreements()] == [(ids[0], "blue")], "the newest counts"
    # Again, it is a no-op, in whatever shell.
    assert shells.here.reviewer("anna").import_labels(filled) == ()
    again = shells.program("review", "import", NAME, filled, "--reviewer", "anna")
    assert again.stdout.strip() == "These labels were recorded before."
    filled.write_text(f"external_id,label\n{ids[2]},red\n{ids[3]},violet\n")
    refused = shells.program("review", "import", NAME, filled, "--reviewer", "anna").stderr
    assert f"label of '{ids[3]}': expected a class number 0..2 or a class name" in " ".join(refused.split())
    assert len(shells.here.reviewer("anna").held().points) == 2


def test_people_read_what_is_known(shells: Shells) -> None:
    shells.change('UPDATE exemplar SET attributes = \'{"text": "a\\u001bb", "due": "2020-01-31"}\'')
    said = shells.program("review", "next", NAME, "--reviewer", "anna").stdout
    assert "due 2020-01-31" in said
    assert r"a\x1bb" in said
    assert "venn-admit review label colours ID=CLASS --reviewer anna" in " ".join(said.split())
    (point,) = shells.here.reviewer("anna").held().points
    said = shells.program("review", "label", NAME, f"{point.id}=red", "--reviewer", "anna").stdout
    assert "1 label by anna: 1 new" in said
    shells.here.reviewer("berta").label({point.id: "blue"})
    said = " ".join(shells.program("review", "status", NAME).stdout.split())
    assert "; overdue: " in said
    assert "Reviewers disagree about 1 point" in said
    assert "berta" in shells.program("review", "disagreements", NAME).stdout


def test_what_is_sent_does_not_depend_on_what_was_predicted(shells: Shells) -> None:
    """With other predictions everywhere, every byte that is sent before the label is the same."""
    carried = '{"contributions": {"class": "red", "runner_up": "blue"}, "text": "t"}'
    shells.change(f"UPDATE exemplar SET attributes = '{carried}'")
    reviewer = shells.here.reviewer("anna")
    reviewer.claim(200)

    def sent() -> list[str]:
        shells.here.reviewer("anna").renew()
        shells.change("UPDATE review_point SET lease_until = '2100-01-01' WHERE reviewer = 'anna'")
        return [
            shells.service.get(f"{OWN}/review/claims?reviewer=anna").text,
            shells.service.get(f"{OWN}/review").text,
            str(as_json(reviewer.held())),
        ]

    before = sent()
    assert "contributions" not in "".join(before)
    assert len(reviewer.held().points) > 20
    shells.change("ALTER TABLE decision DISABLE TRIGGER ALL")
    shells.change(
        "UPDATE exemplar SET network_predicted = (network_predicted + 1) % 3, "
        "network_logits = ARRAY[network_logits[3], network_logits[1], network_logits[2]] WHERE split = 'scored'"
    )
    shells.change("UPDATE decision SET predicted = (predicted + 1) % 3, decision = (decision + 1) % 3")
    # A set of one class is the prediction; one of several is what the point may be.
    shells.change("UPDATE admit_evidence SET admit_set = '010' WHERE admit_set IN ('100', '001')")
    assert sent() == before


def test_every_shell_passes_refusals_on(shells: Shells) -> None:
    assert "no exemplar 'x'" in shells.program("review", "label", NAME, "x=red").stderr
    assert "expected an id and a class" in shells.program("review", "label", NAME, "x").stderr
    assert "every id once" in shells.program("review", "label", NAME, "x=red", "x=blue").stderr
    same = [{"external_id": "scored-1", "label": 1}] * 2
    check_problem(shells.service.post(f"{OWN}/review/labels", {"labels": same}), 422, "invalid-input", "once")
    for one, found in ((shells.here, venn_admit.NotFoundError), (shells.there, client.NotFoundError)):
        with pytest.raises(found, match="no exemplar 'x'"):
            one.reviewer("anna").label({"x": "red"})
    with pytest.raises(client.InvalidInputError):
        shells.there.reviewer("anna").claim(0)
    with pytest.raises(client.InvalidInputError, match="labels: expected a dictionary or another mapping"):
        shells.there.reviewer("anna").label([("scored-1", 1)])  # type: ignore[arg-type]
    with pytest.raises(venn_admit.InvalidInputError, match="reviewer"):
        shells.here.reviewer("")


def test_every_shell_states_by_which_rule_points_are_drawn(shells: Shells) -> None:
    rates = {"red": 0.2, "green": 0.1, "blue": 0.1}

    def run(*arguments: str) -> dict[str, Any]:
        return shells.program("audits", NAME, *arguments, "--json").result

    for stated in (
        as_json(shells.here.audit(0.1, classes={"red": 0.2}, rejected=0.5)),
        as_json(shells.there.audit(0.1, classes={"red": 0.2}, rejected=0.5)),
        run("--rate", "0.1", "--class", "red=0.2", "--rejected", "0.5"),
    ):
        assert (stated["rates"], stated["rejected_rate"]) == (rates, 0.5)
    rule = stated["rule"]
    assert [one.rule for one in (shells.here.audits(), shells.there.audits())] == [rule, rule]
    for wrong in (["--rejected", "0.3"], ["--class", "red=0.2"], ["--off", "--rejected", "0.3"]):
        check_refusal(shells.program("audits", NAME, *wrong), 2, "expected --rate beside")
    twice = shells.program("audits", NAME, "--rate", "0.1", "--class", "red=0.2", "--class", "red=0.3")
    check_refusal(twice, 2, "expected every class once, got 'red' twice")
    for one in (shells.here, shells.there):
        for others in ({"rejected": 0.3}, {"classes": {"red": 0.2}}):
            with pytest.raises((venn_admit.InvalidInputError, client.InvalidInputError), match="that of admitted"):
                one.audit(None, **others)
    assert run()["rule"] == rule
    assert run("--off")["rates"] is None
