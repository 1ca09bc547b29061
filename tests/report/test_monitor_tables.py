"""What a monitor says, as tables for a narrow terminal and as metrics."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.monitoring.anytime.plan import LEVEL, Lamp, plan_of
from venn_admit.core.monitoring.anytime.readings import StandingAlarm, readings
from venn_admit.core.monitoring.anytime.state import advance, initial_state
from venn_admit.report.monitoring.payload import monitor_payload
from venn_admit.report.monitoring.report import MonitorReport, metrics_text
from venn_admit.report.monitoring.tables import monitor_tables, verdict_lines
from venn_admit_client.records.calibrations import Withheld

GOOD = Law(right=(0.97,) * 6)
CHANGED = Law(right=(0.97,) * 6, share=(0.25, 0.25, 0.2, 0.2, 0.05, 0.05))
BAD = Law(right=(0.97, 0.6) * 3)


def report(law: Law, documents: int = 600) -> MonitorReport:
    rng = np.random.default_rng(0)
    plan = plan_of(GOOD.draw(rng, 900), class_count=CLASSES, alpha=ALPHA)
    state = initial_state(plan)
    advance(plan, state, law.draw(rng, documents), LEVEL)
    found, now = tuple(readings(plan, state)), datetime.now(UTC)
    lit = [reading for reading in found if reading.lit_at is not None]
    return MonitorReport(
        promised=(ClassKind.PREDICTED,),
        classifier="reviews",
        class_names=("negative", 'po"sitive\n'),
        neighbour_count=25,
        method="venn-admit",
        alpha=Decimal("0.1"),
        setting=1,
        calibration=3,
        monitor=1,
        started_at=now,
        documents=documents,
        points=documents,
        computed=documents,
        readings=found,
        alarms=tuple(StandingAlarm(n, reading.about, now) for n, reading in enumerate(lit, 1)),
        withheld={},
        from_starts=True,
    )


def test_a_newer_calibration_that_is_not_in_use_is_said() -> None:
    found = replace(report(GOOD), withheld={4: Withheld(in_use=3, points=400, share=0.0, share_in_use=0.8)})
    text = " ".join(" ".join(drawn(found)).split())
    assert "Calibration 4 is not in use because it would admit 0.0% of 400 calibration points and calibration 3" in text
    assert monitor_payload(found)["withheld"] == [
        {"calibration": 4, "in_use": 3, "points": 400, "share": 0.0, "share_in_use": 0.8}
    ]


def test_documents_are_named_where_points_are_grouped() -> None:
    alone = "\n".join(drawn(replace(report(CHANGED), from_starts=False)))
    assert "came after the decision: 600. At least" in alone
    assert "document" not in alone
    grouped = " ".join(" ".join(drawn(replace(report(CHANGED), points=900))).split())
    assert "came after the decision: 900, of 600 documents. At least" in grouped
    assert "after at least 20,000 documents on average" in grouped


def test_a_certificate_for_true_classes_makes_their_lamp_an_alarm() -> None:
    found = report(BAD)
    true_alone = replace(found, promised=(ClassKind.TRUE,))
    assert Lamp.TRUE_CLASSES in {alarm.about.lamp for alarm in found.notices}
    assert Lamp.TRUE_CLASSES in {alarm.about.lamp for alarm in true_alone.harmful}
    assert Lamp.PROMISE in {alarm.about.lamp for alarm in true_alone.notices}
    text = " ".join("\n".join(verdict_lines(true_alone)).split())
    assert "ALARM: of the admitted points whose class is 'negative', fewer than 0.9 are right since about point" in text
    assert re.search(r"are right since about point \d+; nothing is promised about predicted classes\.", text)
    assert "The promise: share right of the admitted, by true class" in "\n".join(drawn(true_alone))
    both = replace(found, promised=tuple(ClassKind))
    assert {Lamp.PROMISE, Lamp.TRUE_CLASSES} <= {alarm.about.lamp for alarm in both.harmful}


def drawn(found: MonitorReport) -> list[str]:
    console = Console(file=StringIO(), width=80)
    with console.capture() as captured:
        console.print(monitor_tables(found))
    return captured.get().splitlines()


def test_a_share_right_with_a_few_errors_among_thousands_is_not_rounded_to_all() -> None:
    found = report(GOOD)
    readings = tuple(row if row.right is None else replace(row, points=3000, right=2999) for row in found.readings)
    lines = drawn(replace(found, class_names=("negative", "positive"), readings=readings))
    assert any(" >.999 " in line for line in lines)
    assert not any(" 1.000 " in line for line in lines)


def test_an_average_over_calibrations_is_said_beside_its_alarms() -> None:
    found = report(BAD)
    first, second, *_ = verdict_lines(replace(found, on_average=True))[len(found.harmful) - 1 :]
    assert first.startswith("ALARM: ")
    assert second.startswith("What is promised is an average over calibrations")


def test_every_row_stands_in_one_line_of_eighty_columns() -> None:
    found = replace(report(BAD), class_names=("negative", "positive"))
    lines = drawn(found)
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith((" negative ", " positive ")) for line in lines) == len(
        [row for row in found.readings if row.about.lamp.warned_of is None]
    )
    assert sum(line.rstrip().endswith(" ALARM") for line in lines) == len(found.harmful)


@pytest.mark.parametrize(
    ("law", "documents", "alarm", "notice"),
    [
        (GOOD, 0, "No label counts yet", None),
        (GOOD, 600, "No alarm stands. If nothing is amiss, each lamp is ever lit with a chance of 1% at most", None),
        (CHANGED, 600, "No alarm stands", "Notice: some predictions are more or less frequent"),
        (BAD, 600, "ALARM: of what is admitted as 'po", "Notice: of the admitted points whose class is 'negative'"),
    ],
    ids=["no label", "as promised", "another mix", "harm"],
)
def test_the_verdict(law: Law, documents: int, alarm: str, notice: str | None) -> None:
    said = verdict_lines(report(law, documents))
    assert said[0].startswith(alarm)
    notices = [line for line in said if line.startswith("Notice")]
    assert bool(notices) == (notice is not None)
    if notice is not None:
        assert notices[0].startswith(notice)


def test_an_early_warning_is_a_notice_until_its_lamp_is_lit() -> None:
    found = report(BAD)
    rows = {row.about.lamp: row for row in found.readings if row.about.number == 1}
    early, lit = rows[Lamp.EARLY_PROMISE], rows[Lamp.PROMISE]
    assert early.since is not None
    assert lit.lit_at is not None
    warned = StandingAlarm(1, early.about, datetime.now(UTC))
    said = verdict_lines(replace(found, alarms=(warned,)))
    assert said[0].endswith("; the first false early warning of a lamp comes after at least 20,000 points on average.")
    (notice,) = said[1:]
    assert notice.startswith("Notice: early warning: of what is admitted as 'po")
    assert notice.endswith(f"fewer than 0.9 are right since about point {early.since}.")
    both = verdict_lines(replace(found, alarms=(warned, StandingAlarm(2, lit.about, datetime.now(UTC)))))
    assert [line.split(":")[0] for line in both] == ["ALARM"]
    not_yet = replace(lit, lit_at=None, since=None)
    shown = drawn(replace(found, readings=(not_yet, early), alarms=(warned,)))
    assert any(line.startswith(" po") and line.rstrip().endswith(" early") for line in shown)


def test_a_monitor_of_before_early_warnings_says_how_to_have_them() -> None:
    said = verdict_lines(replace(report(GOOD), from_starts=False))
    assert "on average" not in said[0]
    assert said[1].endswith("there are no early warnings. Start it again to have both.")


def test_names_in_metrics_are_escaped() -> None:
    lines = metrics_text(report(BAD)).splitlines()
    assert any(r'class="po\"sitive\n"' in line for line in lines)
    assert all(line.startswith(("#", "venn_admit_monitor_")) for line in lines)
    assert len([line for line in lines if line.startswith("# TYPE")]) == len(
        {line.split("{")[0] for line in lines if "{" in line}
    )
