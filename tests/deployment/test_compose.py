"""docker-compose.yml: the servers, the service on them, in which order they start, and what each may do."""

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url, text

from tests.deployment.manifests import ROOT, SERVICE_ROLE, USER, check_command, check_settings, compose_file
from venn_admit import __version__
from venn_admit.store.database.engine import connect, create_engine

COMPOSE = compose_file()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("migrate", "api", "worker", "beat")
THEIRS = ("postgres", "redis", "proxy")
MONITORING = ("prometheus", "grafana")


def check_schema(file: Path) -> "subprocess.CompletedProcess[str]":
    """Hold a file against the schema of the Compose specification, which comes with the checker."""
    checker = Path(sysconfig.get_path("scripts")) / "check-jsonschema"
    command: list[str | Path] = [checker, "--builtin-schema", "vendor.compose-spec", file]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_file_follows_the_compose_specification(tmp_path: Path) -> None:
    checked = check_schema(ROOT / "docker-compose.yml")
    assert checked.returncode == 0, checked.stdout
    wrong = tmp_path / "docker-compose.yml"
    misspelt = {name: {**service, "cap_drops": ["ALL"]} for name, service in SERVICES.items()}
    wrong.write_text(yaml.safe_dump({**COMPOSE, "services": misspelt}))
    assert "cap_drops" in check_schema(wrong).stdout


def test_the_services_are_those_of_the_design() -> None:
    assert set(SERVICES) == {*THEIRS, *OURS, *MONITORING}
    assert [name for name in SERVICES if "profiles" in SERVICES[name]] == list(MONITORING)


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert str(service["user"]).partition(":")[0] not in {"root", "0"}
    assert not service.get("privileged")
    assert service["deploy"]["resources"]["limits"].keys() >= {"memory", "pids"}
    assert service["restart"] == ("on-failure:3" if name == "migrate" else "unless-stopped")


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "migrate"])
def test_every_container_that_stays_tells_whether_it_is_healthy(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    kind, program, *arguments = check["test"]
    assert kind == "CMD"
    if program == "venn-admit":
        check_command([program, *arguments])
    assert {"interval", "timeout", "retries"} <= check.keys()


def test_worker_and_beat_are_asked_whether_they_work() -> None:
    asked = {name: SERVICES[name]["healthcheck"]["test"][-1] for name in ("worker", "beat")}
    assert asked == {"worker": "--worker-here", "beat": "--beat-here"}


@pytest.mark.parametrize("name", SERVICES)
def test_images_have_a_version(name: str) -> None:
    repository, _, tag = SERVICES[name]["image"].partition(":")
    assert re.search(r"\d+\.\d+", tag), f"{repository} has the tag {tag!r}"


def test_postgres_has_a_pgvector_that_is_recent_enough() -> None:
    repository, _, tag = SERVICES["postgres"]["image"].partition(":")
    pgvector, postgres = tag.split("-pg")
    assert repository == "pgvector/pgvector"
    assert tuple(map(int, pgvector.split("."))) >= (0, 7)
    assert int(postgres) >= 15


def test_postgres_plans_as_the_embedded_server_does(server_url: str) -> None:
    set_there = dict(option.split("=") for option in SERVICES["postgres"]["command"][2::2])
    engine = create_engine(server_url)
    with connect(engine) as connection:
        set_here = {name: connection.execute(text(f"SHOW {name}")).scalar_one() for name in set_there}
    engine.dispose()
    assert "random_page_cost" in set_there
    assert set_here == set_there


def test_only_this_machine_reaches_what_is_published() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published.keys() == {"proxy", "grafana"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_postgres_and_redis_are_reached_by_those_only_that_need_them() -> None:
    assert COMPOSE["networks"]["servers"] == {"internal": True}
    inside = {name for name, service in SERVICES.items() if "servers" in service["networks"]}
    assert inside == {"postgres", "redis", "grafana", *OURS}
    assert SERVICES["postgres"]["networks"] == SERVICES["redis"]["networks"] == ["servers"]


def test_there_is_no_password_in_the_file() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"://[^/]*:[^/]*@", str(value)), variable
            if "PASSWORD" in variable:
                assert variable.endswith("_FILE")
                assert str(value).removeprefix("/run/secrets/") in service["secrets"], name
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


def test_the_files_of_the_passwords_stay_out_of_git_and_of_the_image() -> None:
    folder = {Path(secret["file"]).parts[0] for secret in COMPOSE["secrets"].values()}
    assert folder == {"secrets"}
    assert "/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    assert rules[0] == "*"
    assert "!secrets" not in rules


@pytest.mark.parametrize("secret", COMPOSE["secrets"])
def test_every_secret_is_for_those_that_need_it(secret: str) -> None:
    holders = {name for name, service in SERVICES.items() if secret in service.get("secrets", ())}
    assert holders == {
        "owner_password": {"postgres", "migrate"},
        "service_password": {"postgres", "api", "worker", "beat"},
        "reader_password": {"postgres", "grafana"},
        "metrics_key": {"prometheus"},
        "grafana_password": {"grafana"},
    }.get(secret)


@pytest.mark.parametrize("name", OURS)
def test_ours_run_this_version_with_settings_and_commands_that_exist(name: str) -> None:
    ours = SERVICES[name]
    assert ours["image"] == f"venn-admit:{__version__}"
    assert (ROOT / ours["build"] / "Dockerfile").exists()
    assert ours["user"] == f"{USER}:{USER}"
    check_settings(ours["environment"])
    check_command(ours["command"])


def test_only_the_migration_logs_in_as_the_owner() -> None:
    server = SERVICES["postgres"]["environment"]
    for name in OURS:
        environment = SERVICES[name]["environment"]
        address = make_url(environment["VENN_ADMIT_DATABASE_URL"])
        assert (address.host, address.port, address.database) == ("postgres", 5432, server["POSTGRES_DB"])
        owns = name == "migrate"
        assert address.username == (server["POSTGRES_USER"] if owns else SERVICE_ROLE)
        secret = server["POSTGRES_PASSWORD_FILE"] if owns else server["SERVICE_PASSWORD_FILE"]
        assert environment["VENN_ADMIT_DATABASE_PASSWORD_FILE"] == secret
        assert environment["VENN_ADMIT_BROKER_URL"].startswith("redis://redis:6379/")
    assert f"&& venn-admit db grant-service {SERVICE_ROLE} " in SERVICES["migrate"]["command"][2]


def test_the_schema_comes_after_the_server_and_before_all_else() -> None:
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("api", "worker", "beat"):
        assert SERVICES[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }
    assert SERVICES["proxy"]["depends_on"] == {"api": {"condition": "service_healthy"}}


def test_every_volume_is_declared_or_a_file_here_that_cannot_be_written() -> None:
    named = set()
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source, target, *mode = volume.split(":")
            assert target.startswith("/")
            if source.startswith("./"):
                assert (ROOT / source).exists()
                assert mode == ["ro"]
            else:
                named.add(source)
    assert named == set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", OURS)
def test_ours_may_write_to_their_home_and_to_tmp(name: str) -> None:
    ours = SERVICES[name]
    home = ours["environment"]["VENN_ADMIT_HOME"]
    written = [volume.split(":")[1] for volume in ours.get("volumes", ())]
    written += [mount.partition(":")[0] for mount in ours["tmpfs"]]
    assert sorted(written) == ["/tmp", home]
