"""Evaluation of a classifier with logits only: the methods on the network are those of a classifier with vectors."""

from decimal import Decimal
from pathlib import Path

import numpy as np

from tests.counting import traffic
from tests.flows.logits import NAME, WITH_VECTORS, calibrated, exemplars, with_vectors
from tests.running import Bench, workspace
from venn_admit.files.output.exports import finite_json
from venn_admit.files.sources import FileSource
from venn_admit.flows.reports.evaluate import (
    EvaluationRequest,
    compare_methods,
    request_evaluation_of_decisions,
    request_evaluation_of_source,
)
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.glance import glance_table
from venn_admit.report.evaluation.payload import report_payload
from venn_admit.store.search.array_cache import ArrayCache

POINTS = 300
OF_NETWORK = (
    "network",
    "RAPS adaptiveness",
    "RAPS size",
    "APS",
    "softmax >= 1 - alpha",
    "SGR",
    "Venn-Abers network",
    "certified",
    "on average",
)


def request(bench: Bench, name: str, path: Path) -> EvaluationRequest:
    return request_evaluation_of_source(bench.workspace(chunk_rows=128), name, FileSource(path), calibration_id=None)


def run(bench: Bench, asked: EvaluationRequest) -> DatasetReport:
    if asked.job_id is not None:
        bench.run(asked.job_id)
    return compare_methods(bench.workspace(), asked, "new")


def admitted_of(report: DatasetReport) -> tuple[int, int, int]:
    """How many points the method of the calibration has right, admits, and was given."""
    overall = report.method(report.own).overall
    return overall.correct, overall.count, overall.total


def test_what_each_method_on_the_network_admits_needs_no_vectors(both: Bench) -> None:
    rows = exemplars("new", POINTS, seed=9)
    bare = run(both, request(both, NAME, both.write("new.npz", rows)))
    seen = run(both, request(both, WITH_VECTORS, with_vectors(both, rows, seed=4)))
    assert [row.name for row in bare.methods] == list(OF_NETWORK)
    # As JSON has them, where a share of nothing, which is NaN, is a text, and equals itself.
    found, known = (finite_json(report_payload(report)["methods"]) for report in (bare, seen))
    for name in OF_NETWORK:
        assert found[name] == known[name], name
    assert (bare.own, bare.baseline) == ("Venn-Abers network", "network")
    shared = dict(seen.parameters)
    assert dict(bare.parameters) == {name: shared[name] for name in dict(bare.parameters)}
    assert shared.keys() - dict(bare.parameters).keys() == {"Conf_BASE", "Venn-ADMIT"}
    assert report_payload(bare)["verdict"] == report_payload(seen)["verdict"]


def test_its_own_row_holds_its_decisions(both: Bench) -> None:
    rows = exemplars("own", POINTS, seed=10)
    path = both.write("own.npz", rows)
    report = run(both, request(both, NAME, path))
    decision = both.score(NAME, path, weighted=None).column("decision")
    assert admitted_of(report) == (int((decision == rows["y"]).sum()), int((~np.isnan(decision)).sum()), POINTS)
    again = run(both, request_evaluation_of_decisions(both.workspace(chunk_rows=128), NAME, calibration_id=None))
    assert again.point_count >= POINTS


def test_calibration_data_are_left_out(both: Bench) -> None:
    """Those of vp too, by which the others are calibrated."""
    parts = (exemplars("mc", 800, 1), exemplars("vp", 700, 2), exemplars("later", 50, 11))
    rows = {name: np.concatenate([part[name][-50:] for part in parts]) for name in parts[0]}
    report = run(both, request(both, NAME, both.write("mixed.npz", rows)))
    assert (report.point_count, report.left_out) == (50, 100)


def test_a_certified_policy_is_judged(both: Bench) -> None:
    calibrated(both, certify=["predicted"], confidence=Decimal("0.9"))
    try:
        rows = exemplars("certified", POINTS, seed=12)
        path = both.write("certified.npz", rows)
        report = run(both, request(both, NAME, path))
        decision = both.score(NAME, path, weighted=None).column("decision")
        admitted = int((~np.isnan(decision)).sum())
        assert admitted > 0
        assert report.own == "certified, predicted"
        assert admitted_of(report) == (int((decision == rows["y"]).sum()), admitted, POINTS)
        assert [row.name for row in report.methods].count("certified") == 1
        # It promises nothing of true classes; the rival, which is certified for both, does.
        promises = {name: one["promise"] for name, one in report_payload(report)["methods"].items()}
        assert (promises["certified, predicted"], promises["certified"]) == ("predicted", "both")
        (row,) = [row for row in glance_table(report, every=False).rows if row.is_own]
        assert (row.names, row.cells[0].figure) == (("certified, predicted",), "predicted")
    finally:
        calibrated(both)


def test_no_vector_is_read(both: Bench) -> None:
    asked = request(both, NAME, both.write("few.npz", exemplars("few", 60, seed=13)))
    assert asked.job_id is not None
    both.run(asked.job_id)
    cache = ArrayCache(both.folder / "none")
    with traffic(both.engine) as counted:
        compare_methods(workspace(both.engine, cache), asked, "few")
    assert not counted.copied_in
    assert not (both.folder / "none").exists()
