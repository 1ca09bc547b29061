"""docker-compose.yml: the servers, the service on them, and in which order they start."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from venn_admit import __version__
from venn_admit.service.settings import PREFIX, Settings
from venn_admit.service.store.database.engine import create_engine

REPOSITORY = Path(__file__).parents[1]
OURS = ("migrate", "worker", "beat")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    assert isinstance(content, dict)
    return content


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    services = compose["services"]
    assert isinstance(services, dict)
    return services


def test_the_services_are_those_of_the_design(services: dict[str, Any]) -> None:
    assert set(services) == {"postgres", "redis", *OURS}


def test_the_servers_are_pinned_and_tell_when_they_are_ready(services: dict[str, Any]) -> None:
    repository, _, tag = services["postgres"]["image"].partition(":")
    pgvector, postgres = tag.split("-pg")
    assert repository == "pgvector/pgvector"
    assert tuple(map(int, pgvector.split("."))) >= (0, 7)
    assert int(postgres) >= 15
    assert services["redis"]["image"].startswith("redis:8.")
    assert "pg_isready" in services["postgres"]["healthcheck"]["test"]
    assert services["redis"]["healthcheck"]["test"] == ["CMD", "redis-cli", "ping"]


def test_servers_are_reached_from_this_machine_only(services: dict[str, Any]) -> None:
    for name in ("postgres", "redis"):
        assert all(port.startswith("127.0.0.1:") for port in services[name]["ports"])


@pytest.mark.parametrize("name", OURS)
def test_ours_run_this_version_with_settings_that_exist(services: dict[str, Any], name: str) -> None:
    ours = services[name]
    assert ours["image"] == f"venn-admit:{__version__}"
    assert (REPOSITORY / ours["build"] / "Dockerfile").exists()
    assert {variable.removeprefix(PREFIX).lower() for variable in ours["environment"]} <= set(Settings.model_fields)


@pytest.mark.parametrize("name", OURS)
def test_ours_reach_the_servers_beside_them(services: dict[str, Any], name: str) -> None:
    environment = services[name]["environment"]
    server = services["postgres"]["environment"]
    password = server["POSTGRES_PASSWORD"]
    assert environment["VENN_ADMIT_DATABASE_URL"] == (
        f"postgresql://{server['POSTGRES_USER']}:{password}@postgres:5432/{server['POSTGRES_DB']}"
    )
    assert environment["VENN_ADMIT_BROKER_URL"].startswith("redis://redis:6379/")
    plain = environment["VENN_ADMIT_DATABASE_URL"].replace(password, "secret")
    assert create_engine(plain).url.host == "postgres"


def test_the_schema_comes_after_the_server_and_before_all_else(services: dict[str, Any]) -> None:
    assert services["migrate"]["command"] == ["venn-admit", "db", "upgrade"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["migrate"]["restart"].startswith("on-failure")
    for name in ("worker", "beat"):
        assert services[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }


def test_the_worker_and_beat_are_started(services: dict[str, Any]) -> None:
    assert services["worker"]["command"] == ["venn-admit", "worker"]
    assert services["beat"]["command"] == ["venn-admit", "beat"]


def test_every_volume_that_is_used_is_declared(compose: dict[str, Any], services: dict[str, Any]) -> None:
    used = {volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert used == set(compose["volumes"])


def test_the_image_holds_what_the_program_needs() -> None:
    recipe = (REPOSITORY / "Dockerfile").read_text()
    for folder in ("venn_admit", "service", "workers", "migrations", "examples"):
        assert f"COPY {folder} {folder}\n" in recipe
        assert (REPOSITORY / folder).is_dir()
    assert "--constraint constraints.txt" in recipe
    assert "USER venn-admit" in recipe
