"""Every shell creates, certifies and asks a cascade alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import venn_admit
import venn_admit_client as client
from tests.api.conftest import remote_client, serving
from tests.api.service import Service, check_problem
from tests.api.test_writing import working
from tests.cli.databases import on_database
from tests.cli.program import Program
from tests.conftest import fresh_database
from tests.flows.cascades.bundled import Reviews, reviews
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json, from_json
from venn_admit_client.records.cascades import CascadeReport


@dataclass(frozen=True)
class Shells:
    """Every shell on one database, with the jobs in which two classifiers have scored the same points."""

    program: Program
    service: Service
    connection: venn_admit.Connection
    remote: client.Connection
    data: Reviews
    folder: Path
    jobs: list[int]

    @property
    def both(self) -> list[Any]:
        return [self.connection, self.remote]


@pytest.fixture(scope="module")
def shells(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shells]:
    folder, data = tmp_path_factory.mktemp("cascade"), reviews()
    with fresh_database(server_url, template_database) as url:
        program = on_database(url, folder / "home")
        for name in ("small", "large"):
            np.savez(folder / f"{name}.npz", **data.held_out[name])
            np.savez(folder / f"{name}_test.npz", **data.scored[name])
            assert program("create", name, "--classes", "negative,positive", "--logits-only").code == 0
            assert program("ingest", name, folder / f"{name}.npz", "--split", "held-out").code == 0
            assert program("calibrate", name).code == 0
        created = program("cascade", "create", "reviews", "small=1", "large=20", "person=300")
        assert created.code == 0, created.stderr
        assert "not certified yet" in created.stdout
        done = program("cascade", "calibrate", "reviews", "--alpha", "0.1")
        assert done.code == 0, done.stderr
        said = " ".join(done.stdout.split())
        assert "0.9 of what is served of each predicted class by all classifiers together is right" in said
        files = [folder / f"{name}_test.npz" for name in ("small", "large")]
        first = program("cascade", "score", "reviews", files[0], "--out", folder / "first.parquet")
        assert first.code == 0, first.stderr
        assert "need large: run `venn-admit cascade score reviews FILE --job" in " ".join(first.stdout.split())
        scored = program("cascade", "score", "reviews", *files, "--out", folder / "served.parquet", "--json")
        assert scored.code == 0, scored.stderr
        with (
            serving(program) as service,
            remote_client(service) as remote,
            venn_admit.connect(program.url, home=program.home) as connection,
            working(service),
        ):
            yield Shells(program, service, connection, remote, data, folder, scored.result["jobs"])


def test_every_shell_reports_alike(shells: Shells) -> None:
    found = shells.program("cascade", "report", "reviews", "--json").result
    assert shells.program("cascade", "list", "--json").result == {"cascades": [found]}
    # The service writes times as ...Z.
    of_service = shells.service.get("/v1/cascades/reviews").json()
    assert as_json(from_json(CascadeReport, of_service)) == found
    assert shells.service.get("/v1/cascades").json() == {"cascades": [of_service]}
    for connection in shells.both:
        assert as_json(connection.cascade("reviews").report()) == found
        assert [repr(one) for one in connection.cascades()] == ["<Cascade 'reviews': small, large, person>"]
    said = shells.program("cascade", "list").stdout
    assert "small, large, person" in " ".join(said.split())


def test_every_shell_serves_alike(shells: Shells) -> None:
    table = pq.read_table(shells.folder / "served.parquet").to_pydict()
    for connection in shells.both:
        found = connection.cascade("reviews").served(shells.jobs)
        assert table == {
            "external_id": list(found.ids),
            "served_class": list(found.served),
            "stage": list(found.stage),
        }
    local = shells.connection.cascade("reviews")
    files = [shells.folder / f"{name}_test.npz" for name in ("small", "large")]
    assert local.score(*files).served == found.served
    assert set(local.score(files[0]).stage) == {1, 2}


def test_every_shell_asks_a_stage_alike(shells: Shells) -> None:
    served = shells.connection.cascade("reviews").served(shells.jobs)
    for row in range(30):
        logits = shells.data.scored["small"]["f"][row]
        answers = [one.cascade("reviews").decide(1, logits=logits) for one in shells.both]
        body = {"stage": 1, "point": {"logits": logits.tolist()}}
        answer = shells.service.post("/v1/cascades/reviews/decide", body, key=Scope.SCORE)
        assert answer.status_code == 200, answer.text
        assert answer.json() == as_json(answers[0]) == as_json(answers[1])
        assert (answers[0].served is not None) == (served.stage[row] == 1)
        if answers[0].served is None:
            assert (answers[0].next_stage, answers[0].next_classifier) == (2, "large")


def test_every_shell_passes_refusals_on(shells: Shells) -> None:
    assert "there is no cascade" in shells.program("cascade", "report", "nobody").stderr
    check_problem(shells.service.get("/v1/cascades/nobody"), 404, "unknown-cascade", "no cascade 'nobody'")
    assert "expected a number after =" in shells.program("cascade", "create", "new", "small=much").stderr
    for connection in shells.both:
        with pytest.raises((venn_admit.NotFoundError, client.NotFoundError), match="no cascade 'nobody'"):
            connection.cascade("nobody")
        with pytest.raises((venn_admit.ConflictError, client.ConflictError), match="cascade already"):
            connection.create_cascade("reviews", ["small"])
        with pytest.raises((venn_admit.InvalidInputError, client.InvalidInputError), match="alpha"):
            connection.cascade("reviews").calibrate(alpha=2)
    with pytest.raises(client.InvalidInputError, match="the first 1 to 2 stages, got 3"):
        shells.remote.cascade("reviews").score("a", "b", "c")


def test_a_certificate_is_answered_with_its_job(shells: Shells) -> None:
    answer = shells.service.post("/v1/cascades/reviews/calibrations", {"alpha": "0.1"}, key=Scope.WRITE)
    assert answer.status_code == 202, answer.text
    submitted = answer.json()
    assert answer.headers["location"] == f"/v1/classifiers/small/jobs/{submitted['job']}"
    resumed = shells.program("jobs", "resume", submitted["job"], "--json").result
    assert (resumed["kind"], resumed["state"], resumed["rows"]) == ("certify", "done", submitted["rows"])
    told: list[tuple[int, int]] = []
    for connection in shells.both:
        looks = connection.cascade("reviews").calibrate(progress=lambda done, rows: told.append((done, rows))).looks
        assert looks == connection.cascade("reviews").report().looks > 1
    assert told == [(submitted["rows"], submitted["rows"])] * 2


def test_every_shell_creates_calibrates_and_deletes(shells: Shells) -> None:
    for connection in shells.both:
        made = connection.create_cascade("other", {"small": 1.0, "person": 10.0})
        done = made.calibrate(certify="predicted,true", confidence="0.9")
        assert (done.kinds, str(done.confidence)) == (("predicted", "true"), "0.9")
        assert {one.kind for one in done.promised} == {"predicted", "true"}
        assert "cascade 'other'" in shells.program("delete", "small", "--yes").stderr
        made.delete()
    assert shells.program("cascade", "create", "other", "small", "large").code == 0
    deleted = shells.program("cascade", "delete", "other")
    assert "Deleted the cascade other" in deleted.stdout
    assert [one.name for one in shells.connection.cascades()] == ["reviews"]


def test_a_key_for_one_classifier_does_not_reach_cascades(shells: Shells) -> None:
    key = shells.program("key", "create", "one", "--scope", "admin", "--classifier", "small", "--json").result["secret"]
    answer = shells.service.client.get("/v1/cascades/reviews", headers={"Authorization": f"Bearer {key}"})
    check_problem(answer, 403, "forbidden", "for classifier 'small' alone")
