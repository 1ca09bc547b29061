"""Prometheus and Grafana: they ask for what the program and the database have, where and as whom they may."""

import json
import re
import uuid
from typing import Any

import pytest
import yaml
from sqlalchemy import Engine, text

from tests.conftest import administration
from tests.deployment.manifests import DEPLOY, compose_file
from tests.roles import as_role
from venn_admit.store.database.engine import connect
from venn_admit.store.database.schema import Group, grant

SERVICES = compose_file()["services"]
DASHBOARD = json.loads((DEPLOY / "grafana/dashboards/venn-admit.json").read_text())
TARGETS: list[dict[str, Any]] = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
# What Prometheus knows by itself of whatever it asks.
OF_PROMETHEUS = {"up"}


def source(uid: str) -> dict[str, Any]:
    content = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/sources.yml").read_text())
    (found,) = [one for one in content["datasources"] if one["uid"] == uid]
    assert isinstance(found, dict)
    return found


def test_prometheus_asks_every_api_container_with_its_key() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    command = SERVICES["api"]["command"]
    (discovery,) = job["dns_sd_configs"]
    assert (discovery["names"], discovery["type"]) == (["api"], "A")
    assert discovery["port"] == int(command[command.index("--port") + 1])
    (secret,) = SERVICES["prometheus"]["secrets"]
    assert job["authorization"] == {"type": "Bearer", "credentials_file": f"/run/secrets/{secret}"}


def test_the_dashboard_asks_for_figures_that_the_program_exports(exported: dict[str, set[str]]) -> None:
    asked = {name for target in TARGETS for name in re.findall(r"\b(?:venn_admit_\w+|up)\b", target.get("expr", ""))}
    assert asked - OF_PROMETHEUS
    assert asked - OF_PROMETHEUS <= exported.keys()


@pytest.mark.parametrize("query", [target["rawSql"] for target in TARGETS if "rawSql" in target])
def test_a_reader_may_ask_what_the_dashboard_asks_of_the_database(engine: Engine, query: str) -> None:
    # As Grafana expands it.
    query = re.sub(r"\$__timeFilter\((.*?)\)", r"\1 BETWEEN '2026-01-01Z' AND '2026-02-01Z'", query)
    role = f"reader_{uuid.uuid4().hex[:12]}"
    with administration(engine.url.render_as_string(hide_password=False)) as execute:
        execute(f"CREATE ROLE {role}")
        grant(engine, Group.READER, role)
        reader = as_role(engine, role)
        try:
            with connect(reader) as connection:
                assert list(connection.execute(text(query).execution_options(no_parameters=True)).keys())
        finally:
            reader.dispose()
            execute(f"DROP ROLE {role}")


def test_grafana_knows_both_sources_and_reads_the_database_as_a_reader() -> None:
    assert {target["datasource"]["uid"] for target in TARGETS} == {"prometheus", "reports"}
    for target in TARGETS:
        assert target["datasource"]["type"] == source(target["datasource"]["uid"])["type"]
    reports, server = source("reports"), SERVICES["postgres"]
    assert reports["url"] == "postgres:5432"
    assert reports["jsonData"]["database"] == server["environment"]["POSTGRES_DB"]
    assert SERVICES["migrate"]["command"][2].endswith(f"venn-admit db grant-reader {reports['user']}")
    assert f"CREATE ROLE {reports['user']} LOGIN" in (DEPLOY / "postgres/roles.sql").read_text()
    assert reports["secureJsonData"] == {"password": "$__file{" + server["environment"]["READER_PASSWORD_FILE"] + "}"}
    assert source("prometheus")["url"] == "http://prometheus:9090"


def test_grafana_finds_what_is_mounted_for_it() -> None:
    mounted = {volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]}
    (provider,) = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/files.yml").read_text())["providers"]
    assert provider["options"]["path"] in mounted
    assert "/etc/grafana/provisioning" in mounted


def test_panels_have_titles_and_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < 24 for x, _ in cells)
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    assert len(titles) == len(set(titles))
