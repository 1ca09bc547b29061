"""Certificates for groups through the flows: attributes of exemplars and of traffic, and what is stored and decided."""

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.conftest import fresh_engine
from tests.flows.logits import NAME, calibrated, make, with_regions
from tests.running import Bench, certificate_of
from venn_admit.core.evaluation.tallies import wilson_interval
from venn_admit.core.groups import group_value
from venn_admit.errors import Code, NotReadyError
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.flows.decisions.listing import applied_rule
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import GivenPoint, PointScorer
from venn_admit.flows.reports.evaluate import compare_methods, request_evaluation_of_decisions
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.report.evaluation.terminal import report_tables
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.database.engine import connect

STORED = """
SELECT decision.*, abers_evidence.*
FROM job_row
INNER JOIN decision USING (exemplar_id)
INNER JOIN abers_evidence ON decision.id = decision_id
WHERE job_id = :job_id
ORDER BY row_number
"""
CELLS = ("predicted", "predicted*group:region")


@pytest.fixture(scope="module")
def regions(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with fresh_engine(server_url, template_database) as engine:
        bench = Bench(engine, tmp_path_factory.mktemp("groups"))
        make(bench)
        bench.ingest(NAME, bench.write("held-out.npz", with_regions("held-out", 3000, seed=1)), "held-out")
        yield bench


@pytest.fixture(scope="module")
def certified(regions: Bench) -> Calibrated:
    return calibrated(regions, alpha=Decimal("0.12"), certify=CELLS, confidence=Decimal("0.9"))


def test_a_weak_group_is_not_promised_anything(regions: Bench, certified: Calibrated) -> None:
    found = certificate_of(certified)
    assert found.policy is not None
    assert "south" in {result.value for result in found.lacking}
    assert "north" in {result.value for result in found.classes}
    assert all(of.keys() <= {"north", "west"} for of in found.policy.groups[0].least)
    with connect(regions.engine) as connection:
        assert venn_abers.certificate_of(connection, certified.calibration_id) == found
        assert venn_abers.policy_of(connection, certified.calibration_id) == found.policy
    (row,) = regions.rows("SELECT * FROM report.policy_v3 WHERE calibration = :id", id=certified.calibration_id)
    assert (row.certify, row.groups[0]["attribute"]) == (list(CELLS), "region")
    tests = regions.rows("SELECT * FROM report.policy_test_v2 WHERE calibration = :id", id=certified.calibration_id)
    assert {(row.kind, row.chain_name) for row in tests} == {("predicted*group:region", "class in group")}
    assert "north" in {row.group for row in tests}


def test_one_point_is_that_of_a_job_and_replays(regions: Bench, certified: Calibrated) -> None:
    rows = with_regions("traffic", 300, seed=2)
    rows["region"] = np.where(np.arange(300) % 10 == 0, "east", rows["region"])
    scores = regions.score(NAME, regions.write("traffic.npz", rows), weighted=None)
    stored = regions.rows(STORED, job_id=scores.request.job_id)
    scorer = PointScorer(regions.workspace())
    points = [
        GivenPoint(None, logits, {"region": str(region)})
        for logits, region in zip(rows["f"], rows["region"], strict=True)
    ]
    policy = certificate_of(certified).policy
    assert policy is not None
    for row, point, decided in zip(stored, points, scorer.score_each(NAME, points), strict=True):
        assert decided.fields == {field: row._mapping[field] for field in decided.fields}
        threshold = policy.groups[0].least[row.predicted].get(point.attributes["region"])
        assert decided.policy is not None
        assert decided.policy.threshold == threshold
        assert (row.reason == "group not certified") == (threshold is None)
        assert (row.decision is not None) == (threshold is not None and row.score >= threshold)
        rule = applied_rule(regions.engine, NAME, row.calibration_id, row.predicted, point.attributes)
        assert rule.policy == decided.policy
        assert (None if rule.least is None else float(rule.least)) == threshold
    assert {row.reason for row in stored} == {None, "group not certified", "score below threshold"}
    for row in stored[::30]:
        again = replay(regions.workspace(), row.id)
        assert (again.differing, again.basis and again.basis.threshold) == ((), again.policy and again.policy.threshold)


@pytest.mark.usefixtures("certified")
def test_without_its_attribute_a_point_is_rejected(regions: Bench) -> None:
    scorer = PointScorer(regions.workspace())
    sure = np.array([9.0, 0.0, 0.0], dtype=np.float32)
    reasons = [
        scorer.score(NAME, None, logits=sure, attributes=known).fields["reason"]
        for known in (None, {}, {"region": None}, {"region": ["north"]}, {"region": "north"})
    ]
    assert reasons == ["group not certified"] * 4 + [None]


def test_sql_admits_what_arrays_admit(regions: Bench, certified: Calibrated) -> None:
    policy = certificate_of(certified).policy
    assert policy is not None
    rows = regions.rows(
        "SELECT point.predicted, point.score, point.is_admitted, exemplar.attributes "
        "FROM venn_admit.judged_point_v1 AS point INNER JOIN exemplar ON exemplar.id = point.exemplar_id "
        "WHERE point.calibration = :id",
        id=certified.calibration_id,
    )
    least = [policy.groups[0].least[row.predicted].get(row.attributes["region"], np.inf) for row in rows]
    assert [row.is_admitted for row in rows] == [row.score >= one for row, one in zip(rows, least, strict=True)]
    assert {row.is_admitted for row in rows} == {True, False}


def test_evaluate_and_the_view_count_groups_as_the_decisions_are(regions: Bench, certified: Calibrated) -> None:
    rows = with_regions("labelled", 400, seed=3)
    rows["region"] = np.where(np.arange(400) % 20 == 0, "east", rows["region"])
    scores = regions.score(
        NAME, regions.write("labelled.npz", rows), weighted=None, calibration_id=certified.calibration_id
    )
    request = request_evaluation_of_decisions(regions.workspace(), NAME, calibration_id=certified.calibration_id)
    report = compare_methods(regions.workspace(), request, "labelled")
    stored = regions.rows(
        "SELECT attributes ->> 'region' AS region, decision, label FROM decision INNER JOIN exemplar "
        "ON exemplar.id = exemplar_id WHERE calibration_id = :id",
        id=scores.request.calibration_id,
    )
    in_view = {
        row.group: row
        for row in regions.rows(
            "SELECT * FROM report.group_accuracy_v1 WHERE calibration = :id", id=request.calibration_id
        )
    }
    assert [share.value for share in report.groups] == sorted(in_view) == ["east", "north", "south", "west"]
    for share in report.groups:
        own = [row for row in stored if row.region == share.value]
        admitted = [row for row in own if row.decision is not None]
        counts = (share.points, share.right.count, share.right.correct)
        assert counts == (len(own), len(admitted), sum(row.decision == row.label for row in admitted))
        seen = in_view[share.value]
        assert (seen.decisions, seen.admitted, seen.correct) == counts
        if admitted:
            low, high = wilson_interval(counts[2], counts[1])
            assert (seen.wilson_low, seen.wilson_high) == pytest.approx((float(low), float(high)))
    (told,) = [group for group in report_payload(report)["groups"] if group["group"] == "north"]
    assert told["verdict"] == "met"
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report_tables(report))
    assert "Groups that the certificate was asked for" in console.export_text()


def test_evaluate_shows_the_mean_loss_of_groups_if_it_is_promised(regions: Bench) -> None:
    loss = [[0, 1, 1], [2, 0, 1], [1, 1, 0]]
    made = calibrated(regions, alpha=Decimal("0.3"), certify=CELLS, confidence=Decimal("0.9"), loss=loss)
    rows = with_regions("costly", 400, seed=4)
    regions.score(NAME, regions.write("costly.npz", rows), weighted=None, calibration_id=made.calibration_id)
    request = request_evaluation_of_decisions(regions.workspace(), NAME, calibration_id=made.calibration_id)
    report = compare_methods(regions.workspace(), request, "costly")
    stored = regions.rows(
        "SELECT attributes ->> 'region' AS region, decision, label FROM decision INNER JOIN exemplar "
        "ON exemplar.id = exemplar_id WHERE calibration_id = :id AND decision IS NOT NULL",
        id=made.calibration_id,
    )
    told = {group["group"]: group["mean_loss"] for group in report_payload(report)["groups"]}
    for region in ("north", "south", "west"):
        costs = [loss[row.label][row.decision] for row in stored if row.region == region]
        assert told[region]["n"] == len(costs)
        assert told[region]["mean"] == (pytest.approx(np.mean(costs)) if costs else None)
    assert told["north"]["n"] > 100
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report_tables(report))
    shown = console.export_text().partition("Groups that the certificate was asked for")[2]
    assert "mean loss" in shown.splitlines()[1] + shown.splitlines()[2]


@pytest.mark.parametrize(
    "value", ["north", "", 7, -7, 0, 10**20, 1.0, 100.0, 2.50, 1e-7, 1e22, -0.0, True, False, None, ["a"], {"a": 1}]
)
def test_a_group_is_the_same_in_sql_and_python(regions: Bench, value: Any) -> None:
    found = regions.value("SELECT venn_admit.group_value_v1(CAST(:value AS jsonb))", value=json.dumps(value))
    assert found == group_value(value)


def test_groups_may_be_numbers_and_cross_one_another(regions: Bench) -> None:
    found = certificate_of(calibrated(regions, certify=("group:floor", "group:region"), confidence=Decimal("0.9")))
    assert found.policy is not None
    assert [of.attribute for of in found.policy.groups] == ["floor", "region"]
    assert {"0", "1", "2", "north"} <= {result.value for result in found.classes} <= {"0", "1", "2", "north", "west"}


def test_an_attribute_that_nobody_has_is_refused(regions: Bench) -> None:
    with pytest.raises(NotReadyError, match="has a value of the attribute 'town'") as refused:
        calibrated(regions, certify=("group:town",))
    assert refused.value.code is Code.NOT_CERTIFIABLE
