"""The proxy before the api containers: its configuration parses, and it asks those that the compose file starts."""

import json
import re
from typing import Any

import crossplane
import pytest

from docs.generate.openapi import openapi_text
from tests.deployment.manifests import DEPLOY, compose_file
from venn_admit.api.models.common import ProblemAnswer
from venn_admit.runtime.settings import Settings
from venn_admit.web.visitors import COOKIE
from venn_admit_client.codes import Problem

FILE = DEPLOY / "nginx/nginx.conf"
SERVICES = compose_file()["services"]


def directives(block: list[dict[str, Any]], *path: str) -> list[list[str]]:
    """Return the arguments of each directive of a name, in blocks of the names before it."""
    name, *rest = path
    found = [one for one in block if one["directive"] == name]
    if rest:
        return [arguments for one in found for arguments in directives(one["block"], *rest)]
    return [one["args"] for one in found]


def paths() -> list[str]:
    """Return the paths of the service, sorted."""
    return sorted(json.loads(openapi_text())["paths"])


def parsed() -> list[dict[str, Any]]:
    result = crossplane.parse(str(FILE), strict=True)
    assert result["errors"] == []
    (config,) = result["config"]
    assert isinstance(config["parsed"], list)
    return config["parsed"]


def test_the_proxy_passes_on_that_a_request_came_over_tls() -> None:
    """Also if a proxy before it says so, since this one listens on plain HTTP."""
    config = parsed()
    assert ["X-Forwarded-Proto", "$http_x_forwarded_proto"] in directives(config, "http", "server", "proxy_set_header")


def test_the_proxy_asks_every_api_container_anew() -> None:
    config = parsed()
    command = SERVICES["api"]["command"]
    port = command[command.index("--port") + 1]
    ((address, *options),) = directives(config, "http", "upstream", "server")
    assert address == f"api:{port}"
    assert "resolve" in options
    assert directives(config, "http", "upstream", "zone")  # which `resolve` needs
    assert directives(config, "http", "resolver") == [["127.0.0.11", "valid=5s"]]
    assert directives(config, "http", "server", "location", "proxy_pass") == [["http://api"]] * 2


def test_the_proxy_listens_where_its_port_is_published() -> None:
    ((listened,),) = directives(parsed(), "http", "server", "listen")
    (published,) = SERVICES["proxy"]["ports"]
    assert published.rpartition(":")[2] == listened
    assert f":{listened}/" in SERVICES["proxy"]["healthcheck"]["test"][-1]


def test_the_proxy_limits_a_key_in_all_processes_together_as_each_process_does() -> None:
    config, settings = parsed(), Settings()
    zones = directives(config, "http", "limit_req_zone")
    # A page shows no key, but a session.
    assert [key for key, *_ in zones] == ["$http_authorization", "$http_authorization", f"$cookie_{COOKIE}"]
    decisions, *others = [rate for *_, rate in zones]
    assert decisions == f"rate={settings.decisions_per_minute // 60}r/s"
    assert set(others) == {f"rate={settings.requests_per_minute // 60}r/s"}
    limits = directives(config, "http", "server", "location", "limit_req")
    assert [f"{zone}:10m" for zone, *_ in limits] == [zone for _, zone, _ in zones]
    assert {burst for _, burst, *_ in limits} == {f"burst={settings.requests_burst}"}


def test_the_proxy_tells_requests_to_decide_from_others() -> None:
    locations = {args[-1]: args for args in directives(parsed(), "http", "server", "location")}
    (pattern,) = [args[1] for args in locations.values() if args[0] == "~"]
    found = [path for path in paths() if re.search(pattern, path)]
    assert found == ["/v1/cascades/{cascade}/decide", "/v1/classifiers/{classifier}/decide"]


@pytest.mark.parametrize(("status", "problem"), [("413", Problem.BODY_TOO_LARGE), ("429", Problem.TOO_MANY_REQUESTS)])
def test_the_proxy_refuses_as_the_program_does(status: str, problem: Problem) -> None:
    config = parsed()
    assert status in {answered for answered, *_ in directives(config, "http", "server", "error_page")}
    answers = directives(config, "http", "server", "location", "return")
    (body,) = (answer[1] for answer in answers if answer[0] == status)
    answer = ProblemAnswer.model_validate_json(body)
    assert (answer.code, answer.title, str(answer.status)) == (problem, problem.heading, status)


def test_the_proxy_keeps_no_body_and_no_answer() -> None:
    """Its memory is a tenth of what a file may have, and what it would write to disk is in memory too."""
    config = parsed()
    for directive in ("proxy_request_buffering", "proxy_buffering"):
        assert directives(config, "http", "server", directive) == [["off"]]


def test_the_program_itself_refuses_what_is_a_little_too_large() -> None:
    ((most,),) = directives(parsed(), "http", "server", "client_max_body_size")
    assert most.endswith("m")
    upload_mb = Settings().upload_mb
    assert upload_mb < int(most.removesuffix("m")) < 1.2 * upload_mb
    assert not any("UPLOAD_MB" in name for name in SERVICES["api"]["environment"])


def test_the_proxy_writes_to_tmp_only() -> None:
    config = parsed()
    written = directives(config, "pid")
    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        written += directives(config, "http", f"{kind}_temp_path")
    assert len(written) == 6
    assert all(path.startswith("/tmp/") for (path,) in written)
    assert SERVICES["proxy"]["tmpfs"] == ["/tmp"]
