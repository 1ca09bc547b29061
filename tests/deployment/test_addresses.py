"""What health checks, probes and Prometheus ask of the HTTP service is there, behind a key only if they have one."""

import re

from tests.deployment.manifests import compose_file, kubernetes_objects
from venn_admit.api.application import document

PATHS = document()["paths"]
SERVICES = compose_file()["services"]


def needs_key(path: str) -> bool:
    return bool(PATHS[path]["get"].get("security"))


def test_compose_checks_paths_that_need_no_key() -> None:
    checked = {
        name: re.findall(r"http://127\.0\.0\.1:\d+(/[\w/]+)", SERVICES[name]["healthcheck"]["test"][-1])
        for name in ("api", "proxy")
    }
    assert checked == {"api": ["/health/ready"], "proxy": ["/health/live"]}
    for (path,) in checked.values():
        assert not needs_key(path)


def test_kubernetes_probes_paths_that_need_no_key() -> None:
    (deployment,) = [
        one for _, one in kubernetes_objects() if one["kind"] == "Deployment" and one["metadata"]["name"] == "api"
    ]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    probed = {kind: container[kind]["httpGet"]["path"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probed == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    assert not any(needs_key(path) for path in probed.values())


def test_prometheus_asks_a_path_that_needs_the_key_that_it_has() -> None:
    assert needs_key("/metrics")
