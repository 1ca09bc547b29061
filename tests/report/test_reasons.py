"""Every reason of a rejection is known wherever reasons are counted or shown."""

import re
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from docs.generate.decisions import reasons_table
from tests.report.test_calibration_report import made_report, shown
from venn_admit.cli.tables.decision_tables import print_decision
from venn_admit.cli.tables.summaries import ScoreSummary
from venn_admit.core.evidence import ABERS
from venn_admit.core.monitoring.drift import OutcomeCounts
from venn_admit.core.reasons import ADMITTED, Reason
from venn_admit.core.split_names import Split
from venn_admit.flows.decisions.listing import AppliedRule
from venn_admit.flows.reports.gauges import WatchedFigures
from venn_admit.http.metrics import Metrics
from venn_admit.store.database.engine import connect
from venn_admit.store.decisions.decisions import DecisionCount
from venn_admit.web.explanation import steps

NAMES = ("negative", "positive")
CHECK = """
SELECT pg_get_constraintdef(oid)
FROM pg_constraint
WHERE conname = 'decision_known_reason_check'
"""
# Of Venn-Abers with logits only.
REJECTED = {
    **dict.fromkeys(("predicted", *(field.name for field in ABERS.fields), "upweight"), 1),
    **dict.fromkeys(("lower", "upper"), 0.5),
    **dict.fromkeys(("decision", "match_count", "distance", "logits")),
}


def words(printed: str) -> str:
    return " ".join(re.sub(r"[│┃|]", " ", printed).split())


def test_codes_are_those_of_before() -> None:
    """Stored texts and arrays in use keep their meaning, wherever a new reason stands."""
    assert len({reason.code for reason in Reason}) == len(Reason)
    assert ADMITTED not in {reason.code for reason in Reason}
    known = {reason.code: str(reason) for reason in Reason}
    assert known.items() >= {
        (1, "band below kappa"),
        (2, "set not a singleton"),
        (3, "policy not certified"),
        (4, "probability below threshold"),
        (5, "q below K"),
    }


def test_the_database_takes_these_and_no_others(engine: Engine) -> None:
    with connect(engine) as connection:
        check = connection.execute(text(CHECK)).scalar_one()
    assert set(re.findall(r"'([^']+)'", check)) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_has_words_everywhere(reason: Reason, capsys: pytest.CaptureFixture[str]) -> None:
    stored = {**REJECTED, "reason": str(reason)}
    print_decision("one", NAMES, stored, [0, 0], [])
    page = steps(stored, NAMES, AppliedRule(None, None))[-1]
    said = (words(capsys.readouterr().out), f"{page.said}", reasons_table())
    for place in said:
        assert all(part in place for part in (reason, reason.meaning, reason.remedy)), place
    assert page.outcome == "stopped"


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_is_counted_everywhere(reason: Reason) -> None:
    counted = ScoreSummary(NAMES, [DecisionCount(Split.SCORED, 1, None, reason, 7)])
    assert counted.lines()[-1] == f"  rejected, {reason}: 7"
    assert counted.payload()["rejected"] == counted.payload()["classes"][1]["rejected"] == {reason: 7}
    metrics = Metrics()
    metrics.count_decided([str(reason)])
    figures = metrics.text(WatchedFigures(0, None, None, []), {}).decode()
    assert f'venn_admit_http_decided_points_total{{admitted="false",reason="{reason}"}} 1.0' in figures


@pytest.mark.parametrize("reason", Reason)
def test_a_report_counts_and_explains_a_reason(reason: Reason) -> None:
    report = made_report(NAMES)
    assert report.traffic is not None
    rejected = dict.fromkeys(Reason, 0) | {reason: 60}
    traffic = replace(report.traffic, outcomes=(OutcomeCounts(True, False, 60, 0, rejected),))
    found = words(shown(replace(report, traffic=traffic), 400))
    assert f"{reason}: {reason.meaning}" in found
    assert re.search(r"weighted 60 \.000 (\.000 )*1\.00", found)
