"""The monitor of a certificate for groups through the flows: lamps, views, shells, and what goes on after an update."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from sqlalchemy import text

from tests.conftest import fresh_database, fresh_engine
from tests.flows.logits import CLASSES, NAME, calibrated, make, with_regions
from tests.running import Arrays, Bench
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.certification import GroupKind, PromisedClass
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.lit_lamps import lit_lamps_of
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.notify import update_behind
from venn_admit.flows.reports.report import report
from venn_admit.report.calibration.wording import sections
from venn_admit.report.monitoring.payload import monitor_payload
from venn_admit.report.monitoring.report import MonitorReport, metrics_text
from venn_admit.report.monitoring.tables import group_lines, monitor_tables, verdict_lines
from venn_admit.store.database.engine import create_engine, transaction

CELLS, WITHIN = ("predicted", "predicted*group:region"), GroupKind("predicted*group:region")
ROWS = 1200
STORED = "SELECT documents, digest, state::text AS state FROM monitor_state ORDER BY documents"
READINGS = "SELECT * FROM monitor_reading ORDER BY lamp, number"
ALARMS = "SELECT lamp, number, label_event_id FROM monitor_alarm WHERE ended_at IS NULL ORDER BY lamp, number"
LABELLED = """
SELECT decision.predicted, attributes ->> 'region' AS region, count(*) AS points,
    count(*) FILTER (WHERE decision = label) AS correct
FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id
WHERE decision IS NOT NULL AND label IS NOT NULL AND external_id LIKE 'traffic-%'
GROUP BY 1, 2
"""


def traffic() -> Arrays:
    """Where the west is right less often than on the calibration data, and some points are in a region of their own."""
    rows = with_regions("traffic", ROWS, seed=7)
    rng = np.random.default_rng(8)
    wrong = (rows["region"] == "west") & (rng.random(ROWS) < 0.6)
    rows["y"] = np.where(wrong, (rows["f"].argmax(axis=1) + 1) % CLASSES, rows["y"])
    return rows | {"region": np.where(np.arange(ROWS) % 20 == 0, "east", rows["region"])}


@pytest.fixture(scope="module")
def template(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with scored traffic, by a certificate for regions."""
    with fresh_database(server_url, template_database) as url:
        engine = create_engine(url)
        try:
            bench = Bench(engine, tmp_path_factory.mktemp("groups"))
            make(bench)
            bench.ingest(NAME, bench.write("held-out.npz", with_regions("held-out", 3000, seed=1)), "held-out")
            calibrated(bench, alpha=Decimal("0.2"), certify=CELLS, confidence=Decimal("0.9"))
            bench.score(NAME, bench.write("traffic.npz", traffic() | {"y": np.full(ROWS, -1)}), weighted=None)
        finally:
            engine.dispose()
        yield str(engine.url.database)


@pytest.fixture
def bench(server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with fresh_engine(server_url, template) as engine:
        yield Bench(engine, tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def watched(
    server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Bench, MonitorReport]]:
    """With all labels; to be left as it is."""
    with fresh_engine(server_url, template) as engine:
        bench = Bench(engine, tmp_path_factory.mktemp("watched"))
        give(bench, range(ROWS))
        yield bench, look(bench)


def give(bench: Bench, rows: Sequence[int]) -> None:
    known, path = traffic(), bench.folder / "labels.csv"
    lines = [f"{known['id'][row]},{known['y'][row]}" for row in rows]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    label(bench.engine, NAME, LabelFile(path), selection="random", retract=False)


def look(bench: Bench) -> MonitorReport:
    return update_monitor(bench.engine, NAME)


def of_groups(found: MonitorReport) -> Mapping[PromisedClass, Any]:
    return {row.about.of: row for row in found.readings if row.about.lamp is Lamp.GROUPS}


def test_rows_count_the_admitted_of_each_certified_group(watched: tuple[Bench, MonitorReport]) -> None:
    bench, found = watched
    counts = {PromisedClass(WITHIN, row.predicted, row.region): row for row in bench.rows(LABELLED)}
    rows = of_groups(found)
    assert {of: (row.points, row.right) for of, row in rows.items()} == {
        of: (row.points, row.correct) for of, row in counts.items()
    }
    assert {of.value for of in rows} == {"north", "west"}
    assert {row.e_value is not None for row in rows.values()} == {True}
    assert "south" in {of.value for of in found.groups.not_promised}
    assert found.groups.unknown == {"region": int(np.sum(traffic()["region"] == "east"))}


def test_what_falls_short_in_a_group_alone_is_seen_there(watched: tuple[Bench, MonitorReport]) -> None:
    _, found = watched
    lit = {(alarm.about.lamp, alarm.about.of.value) for alarm in found.harmful}
    assert (Lamp.GROUPS, "west") in lit
    assert not {(Lamp.GROUPS, "north"), (Lamp.PROMISE, None)} & lit
    said = "\n".join(verdict_lines(found))
    assert (
        "ALARM: of what is admitted of predicted class 2, region west, fewer than 0.8 are right since about document "
        in said
    )


def test_views_say_what_the_monitor_does(watched: tuple[Bench, MonitorReport]) -> None:
    bench, found = watched
    shown = bench.rows("SELECT * FROM report.monitor_v2")
    expected = {
        (
            row.about.lamp,
            str(name.kind),
            name.class_name,
            name.group,
            row.points,
            row.right,
            found.is_harmful(row.about.lamp),
        )
        for row in found.readings
        for name in [found.name(row.about)]
    }
    assert len(shown) == len(expected)
    assert {
        (row.lamp, row.kind, row.class_name, row.group, row.labels, row.correct, row.is_harmful) for row in shown
    } == expected
    alarms = bench.rows("SELECT * FROM report.alarm_v2 ORDER BY alarm")
    assert [(row.lamp, row.kind, row.class_name, row.group, row.is_harmful) for row in alarms] == [
        (alarm.about.lamp, str(name.kind), name.class_name, name.group, found.is_harmful(alarm.about.lamp))
        for alarm in sorted(found.alarms, key=lambda alarm: alarm.id)
        for name in [found.name(alarm.about)]
    ]
    for view, rows in (("monitor_v1", shown), ("alarm_v1", alarms)):
        before = bench.rows(f"SELECT * FROM report.{view}")
        of_before = {"promise", "true_classes", "partitions", "mix"}
        assert {row.lamp for row in before} == {row.lamp for row in rows} & of_before
        assert len(before) == sum(row.lamp in of_before for row in rows)


def test_figures_are_in_json_metrics_report_and_lamps(watched: tuple[Bench, MonitorReport]) -> None:
    bench, found = watched
    payload = json.loads(json.dumps(monitor_payload(found)))
    assert payload["lamps"]["groups"] == {"harmful": True, "lit": True}
    (alarm,) = [one for one in payload["alarms"] if one["lamp"] == "groups" and one["predicted_class"] == "class 2"]
    assert (alarm["kind"], alarm["group"], alarm["harmful"]) == (WITHIN, "west", True)
    assert alarm["figures"]["needed"] == 9 / LEVEL, "three classes of three regions have labels enough"
    lacking = payload["groups"]["not_promised"]
    assert {(one["kind"], one["group"]) for one in lacking} >= {(WITHIN, "south")}
    assert payload["groups"]["not_tested"] == []
    sample = 'venn_admit_monitor_lit{classifier="logits",lamp="groups",class="class 2",kind="predicted*group:region",'
    assert f'{sample}group="west"}} 1' in metrics_text(found).splitlines()
    seen = report(bench.workspace(), NAME, calibration_id=None)
    (section,) = [one for one in sections(seen, command) if one.title == "Lamps of the monitor"]
    texts = [part for part in section.parts if isinstance(part, str)]
    assert texts == [*verdict_lines(found), *group_lines(found)]
    console = Console(width=80)
    with console.capture() as captured:
        console.print(monitor_tables(found))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert "The promise: share right of the admitted, by group" in map(str.strip, lines)
    lit = lit_lamps_of(bench.engine, NAME)
    assert lit is not None
    assert lit.alarms == len(found.harmful)


def everything(bench: Bench) -> list[list[tuple[Any, ...]]]:
    return [
        [tuple(row)[1:] if query == READINGS else tuple(row) for row in bench.rows(query)]
        for query in (STORED, READINGS, ALARMS)
    ]


def test_beat_carries_states_on(bench: Bench, watched: tuple[Bench, MonitorReport]) -> None:
    counted = watched[0].rows(
        "SELECT external_id FROM label_event INNER JOIN exemplar ON exemplar.id = exemplar_id "
        "WHERE external_id LIKE 'traffic-%' ORDER BY label_event.id"
    )
    in_order = [int(row.external_id.removeprefix("traffic-")) for row in counted]
    for rows in (in_order[:500], in_order[500:1000], in_order[1000:]):
        give(bench, rows)
        assert update_behind(bench.engine, None) == [NAME]
    carried, at_once = (one.rows(READINGS) for one in (bench, watched[0]))
    assert [tuple(row) for row in carried] == [tuple(row) for row in at_once]


def test_a_monitor_from_before_groups_were_watched_gets_their_lamps(bench: Bench) -> None:
    """From all that it counts; what it says of classes stays, and so do its alarms."""
    give(bench, range(ROWS))
    look(bench)
    with_groups = everything(bench)
    with transaction(bench.engine) as connection:
        connection.execute(text("UPDATE monitor SET plan = (plan::jsonb - 'groups')::json"))
        connection.execute(
            text("UPDATE monitor_state SET state = ((state::jsonb - 'groups' - 'unknown') #- '{games,groups}')::json")
        )
        for table in ("monitor_reading", "monitor_alarm"):
            connection.execute(text(f"DELETE FROM {table} WHERE lamp = 'groups'"))
    alarms = bench.rows("SELECT id, lamp, number, created_at FROM monitor_alarm ORDER BY id")
    look(bench)
    assert everything(bench) == with_groups
    kept = bench.rows("SELECT id, lamp, number, created_at FROM monitor_alarm WHERE lamp <> 'groups' ORDER BY id")
    assert [tuple(row) for row in kept] == [tuple(row) for row in alarms]
    assert look(bench).computed == 0


def test_a_group_that_is_certified_later_is_said_until_a_restart(bench: Bench) -> None:
    give(bench, range(ROWS))
    before = look(bench)
    with transaction(bench.engine) as connection:
        groups = connection.execute(text("SELECT plan -> 'groups' FROM monitor")).scalar_one()
        west = [place for place, of in enumerate(groups["classes"]) if of["group"] == "west"]
        for place in west:  # as if the monitor had been started with too few labels of them
            groups["certified"][place], groups["documents"][place] = False, 20
        connection.execute(
            text("UPDATE monitor SET plan = jsonb_set(plan::jsonb, '{groups}', CAST(:groups AS jsonb))::json"),
            {"groups": json.dumps(groups)},
        )
        connection.execute(text("DELETE FROM monitor_state"))
    found = look(bench)
    rows = of_groups(found)
    west_rows = [row for of, row in rows.items() if of.value == "west"]
    assert [(row.e_value, row.lit_at) for row in west_rows] == [(None, None)] * len(west_rows)
    assert [row.points for row in west_rows] == [
        row.points for of, row in of_groups(before).items() if of.value == "west"
    ]
    assert {of.value for of in found.groups.not_tested} == {"west"}
    assert any("Certified and not tested" in line and "region west" in line for line in group_lines(found))
    again = update_monitor(bench.engine, NAME, restart=True)
    assert (again.groups.not_tested, again.documents) == ((), 0)
