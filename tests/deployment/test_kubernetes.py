"""The manifests for Kubernetes: valid, as restricted as its strictest profile asks, and what the program needs."""

import copy
import re
from typing import Any

import kubernetes_validate
import pytest
from sqlalchemy import make_url

from tests.deployment.manifests import SERVICE_ROLE, USER, check_command, check_settings, kubernetes_objects
from venn_admit import __version__

OBJECTS = list(kubernetes_objects())
# From the oldest that its makers still maintained when the manifests were written.
VERSIONS = ("1.31", "1.34", "1.37")
NAME = "app.kubernetes.io/component"


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = [one for _, one in OBJECTS if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def pods() -> dict[str, dict[str, Any]]:
    """The templates of all pods, by their component."""
    templates = [one["spec"]["template"] for _, one in OBJECTS if one["kind"] in {"Deployment", "Job"}]
    return {template["metadata"]["labels"][NAME]: template for template in templates}


PODS = pods()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_follows_the_schema_of_kubernetes(version: str) -> None:
    for _, one in OBJECTS:
        assert kubernetes_validate.validate(one, version, strict=True) == version
    wrong = copy.deepcopy(named("Deployment", "api"))
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_there_is_what_the_service_is_made_of() -> None:
    assert PODS.keys() == {"migrate", "api", "worker", "beat"}
    kinds = {one["kind"] for _, one in OBJECTS}
    assert kinds >= {"Namespace", "ConfigMap", "Secret", "Job", "Deployment", "Service", "PodDisruptionBudget"}
    assert {one["metadata"].get("namespace", "venn-admit") for _, one in OBJECTS} == {"venn-admit"}


@pytest.mark.parametrize("component", PODS)
def test_pods_are_restricted(component: str) -> None:
    assert named("Namespace", "venn-admit")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    spec = PODS[component]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("component", PODS)
def test_containers_run_this_version_with_settings_and_commands_that_exist(component: str) -> None:
    (container,) = PODS[component]["spec"]["containers"]
    assert container["image"] == f"venn-admit:{__version__}"
    check_command(container["command"])
    ((source,),) = [one.values() for one in container["envFrom"]]
    given = {one["name"]: one["value"] for one in container.get("env", ())}
    check_settings(named("ConfigMap", source["name"])["data"] | given)


@pytest.mark.parametrize("component", PODS)
def test_containers_may_write_to_their_home_and_to_tmp(component: str) -> None:
    spec = PODS[component]["spec"]
    (container,) = spec["containers"]
    kinds = {volume["name"]: volume.keys() - {"name"} for volume in spec["volumes"]}
    written = {mount["mountPath"] for mount in container["volumeMounts"] if kinds[mount["name"]] == {"emptyDir"}}
    assert written == {"/tmp", named("ConfigMap", "venn-admit")["data"]["VENN_ADMIT_HOME"]}


@pytest.mark.parametrize("component", PODS)
def test_only_the_migration_gets_the_password_of_the_owner(component: str) -> None:
    spec = PODS[component]["spec"]
    (container,) = spec["containers"]
    owns = component == "migrate"
    ((source,),) = [one.values() for one in container["envFrom"]]
    settings = named("ConfigMap", source["name"])["data"]
    (secret,) = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    (mounted,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")]
    (item,) = secret["items"]
    assert item["key"] == ("owner-password" if owns else "service-password")
    assert settings["VENN_ADMIT_DATABASE_PASSWORD_FILE"] == f"{mounted}/{item['path']}"
    assert secret["defaultMode"] == 0o440
    address = make_url(settings["VENN_ADMIT_DATABASE_URL"])
    assert address.password is None
    assert address.username == ("venn_admit" if owns else SERVICE_ROLE)


def test_the_example_of_the_secret_has_no_values_and_is_not_applied() -> None:
    (secret,) = [(file, one) for file, one in OBJECTS if one["kind"] == "Secret"]
    file, example = secret
    assert not file.endswith((".yaml", ".yml", ".json"))
    assert example["stringData"] == {"owner-password": "", "service-password": ""}
    assert {volume["secret"]["secretName"] for pod in PODS.values() for volume in pod["spec"]["volumes"][2:]} == {
        example["metadata"]["name"]
    }


def test_the_job_is_named_after_the_version() -> None:
    assert named("Job", "migrate-" + re.sub(r"[^a-z0-9]", "-", __version__))["spec"]["template"]["spec"]["containers"]


def test_what_selects_pods_selects_those_of_its_name() -> None:
    for _, one in OBJECTS:
        name, spec = one["metadata"]["name"], one.get("spec", {})
        if one["kind"] == "Deployment":
            assert spec["selector"]["matchLabels"] == PODS[name]["metadata"]["labels"]
        elif one["kind"] == "PodDisruptionBudget":
            assert spec["selector"]["matchLabels"] == PODS["api"]["metadata"]["labels"]
        elif one["kind"] == "Service":
            assert spec["selector"] == PODS["api"]["metadata"]["labels"]
    allowed = named("NetworkPolicy", "api-in")["spec"]
    assert allowed["podSelector"]["matchLabels"] == PODS["api"]["metadata"]["labels"]


def test_several_api_pods_stand_behind_one_address() -> None:
    deployment = named("Deployment", "api")["spec"]
    assert deployment["replicas"] > 1
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    (container,) = PODS["api"]["spec"]["containers"]
    (port,) = container["ports"]
    command = container["command"]
    assert str(port["containerPort"]) == command[command.index("--port") + 1]
    (served,) = named("Service", "api")["spec"]["ports"]
    (allowed,) = named("NetworkPolicy", "api-in")["spec"]["ingress"][0]["ports"]
    assert served["targetPort"] == port["name"]
    assert allowed["port"] == port["containerPort"]


def test_workers_have_time_to_finish_and_beat_is_alone() -> None:
    assert PODS["worker"]["spec"]["terminationGracePeriodSeconds"] >= 120
    beat = named("Deployment", "beat")["spec"]
    assert (beat["replicas"], beat["strategy"]) == (1, {"type": "Recreate"})
    for component in ("worker", "beat"):
        (container,) = PODS[component]["spec"]["containers"]
        check_command(container["readinessProbe"]["exec"]["command"])
    ticks = container["readinessProbe"]["exec"]
    assert ticks["command"][-1] == "--beat-here"
    assert container["livenessProbe"]["exec"] == ticks
