"""Every shell takes the attributes of a point, and decides by the certificate of its group alike."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import venn_admit
import venn_admit_client as client
from tests.api.conftest import serving
from tests.cli import samples
from tests.cli.conftest import on_database
from tests.conftest import fresh_database
from tests.flows.logits import NAME, exemplars
from tests.web.conftest import visited
from venn_admit.store.access.keys import Scope

LOGITS = [9.0, 0.0, 0.0]
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
            visited(program) as page,
            pytest.MonkeyPatch.context() as patch,
            venn_admit.connect(program.url, home=program.home) as connection,
        ):

            def in_this_process(**options: Any) -> Any:
                service.client.headers.update(options["headers"])
                return service.client

            patch.setattr("venn_admit_client.transport.httpx.Client", in_this_process)
            remote = client.connect("http://testserver", service.keys[Scope.ADMIN])

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

            yield {
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


def test_a_report_says_what_is_promised_of_groups(decide: dict[str, Callable[[str | None], Any]]) -> None:
    said = " ".join(decide["report"](None).split())
    assert "predicted a, region north" in said
    assert "whatever the mix of these groups becomes" in said
