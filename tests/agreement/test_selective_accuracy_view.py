"""`report.selective_accuracy_v4` and `evaluate` count the same decisions and come to the same figures."""

from typing import Any

import numpy as np
import pytest

from tests.running import EXAMPLES, Bench
from tests.templates import CopyOf, Filled, reviews_of
from venn_admit.core.evaluation.tallies import Tally, Verdict, wilson_interval
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.evaluate import compare_methods, request_evaluation_of_decisions
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.report.evaluation.dataset import DatasetReport

VARIANTS = {
    "Venn-ADMIT plain": (False, False),
    "Venn-ADMIT plain, q = K": (False, True),
    "Venn-ADMIT weighted": (True, False),
    "Venn-ADMIT weighted, q = K": (True, True),
}

FIGURES = """
SELECT correct, admitted, points, documents, share_correct, share_admitted, wilson_low, wilson_high, verdict
FROM report.selective_accuracy_v4
WHERE
    classifier = 'reviews' AND calibration = 1
    AND weighted = :weighted AND q_equals_k = :q_equals_k AND per = :per AND class IS NOT DISTINCT FROM :class
"""


@pytest.fixture
def bench(copy_of: CopyOf, filled: Filled) -> Bench:
    return copy_of(filled(reviews_of(4000)))


def report_of_decisions(bench: Bench) -> DatasetReport:
    request = request_evaluation_of_decisions(bench.workspace(), "reviews", calibration_id=1)
    if request.job_id is not None:
        bench.run(request.job_id)
    return compare_methods(bench.workspace(), request, "all")


def expected_verdict(tally: Tally, report: DatasetReport) -> Verdict:
    """That of `evaluate`; where it resamples documents, one by Wilson's interval that takes each for one point."""
    if tally.documents is None or tally.is_few:
        return tally.verdict(report.alpha)
    low, high = wilson_interval(tally.share * tally.documents, tally.documents)
    target = float(report.target)
    return Verdict.MET if low >= target else Verdict.MISSED if high < target else Verdict.CANNOT_TELL


def check_agreement(bench: Bench, report: DatasetReport, variants: dict[str, tuple[bool, bool]]) -> None:
    for name, (weighted, q_equals_k) in variants.items():
        measured = report.method(name)
        cells: list[tuple[str, int | None, Tally]] = [("all", None, measured.overall)]
        cells += [("true", c, tally) for c, tally in enumerate(measured.per_true_class)]
        cells += [("predicted", c, tally) for c, tally in enumerate(measured.per_predicted_class)]
        for per, number, tally in cells:
            asked: dict[str, Any] = {"weighted": weighted, "q_equals_k": q_equals_k, "per": per, "class": number}
            (row,) = bench.rows(FIGURES, **asked)
            assert (row.correct, row.admitted, row.points) == (tally.correct, tally.count, tally.total)
            assert row.documents == (tally.count if tally.documents is None else tally.documents)
            assert row.verdict == expected_verdict(tally, report)
            assert row.share_admitted == pytest.approx(tally.portion, rel=1e-12)
            if tally.count:
                assert row.share_correct == pytest.approx(tally.share, rel=1e-12)
                low, high = Tally(tally.correct, tally.count, tally.total).interval
                assert [row.wilson_low, row.wilson_high] == pytest.approx([low, high], rel=1e-9)
            else:
                assert row.share_correct is row.wilson_low is row.wilson_high is None


def test_all_variants_on_all_labelled_decisions(bench: Bench) -> None:
    with np.load(EXAMPLES / "ood.npz") as ood:
        tweets = {name: values[:800] for name, values in ood.items()}
    # Documents of several points, points without a label, and points the calibration was made with.
    tweets["doc"] = np.array([f"tweets-{row // 4}" for row in range(800)])
    tweets["y"] = np.where(np.arange(800) % 10 == 0, -1, tweets["y"])
    with np.load(EXAMPLES / "valid.npz") as valid:
        seen = {name: values[:500] for name, values in valid.items()}
    seen["id"] = np.array([f"valid.npz:{row}" for row in range(500)])
    paths = [EXAMPLES / "test.npz", bench.write("tweets.npz", tweets), bench.write("seen.npz", seen)]
    for path in paths:
        for weighted in (True, False):
            bench.score("reviews", path, weighted=weighted)
    report = report_of_decisions(bench)
    assert report.point_count == 488 + 720
    assert report.left_out == 500
    assert report.document_count == 488 + 200
    assert all(report.method(name).overall.count for name in VARIANTS)
    check_agreement(bench, report, VARIANTS)


def test_decisions_made_with_q_equals_k_count_for_that_variant_alone(bench: Bench) -> None:
    bench.score("reviews", EXAMPLES / "test.npz", require_full_match=True, weighted=False)
    kept = bench.rows("SELECT DISTINCT weighted, q_equals_k FROM report.selective_accuracy_v4")
    assert [tuple(row) for row in kept] == [(False, True)]
    check_agreement(bench, report_of_decisions(bench), {"Venn-ADMIT plain, q = K": (False, True)})


def test_each_classifier_and_calibration_counts_its_own(bench: Bench) -> None:
    bench.score("reviews", EXAMPLES / "test.npz")
    bench.calibrate("reviews", kappa=60)
    bench.score("reviews", EXAMPLES / "test.npz")
    query = "SELECT calibration, points FROM report.selective_accuracy_v4 WHERE per = 'all' ORDER BY calibration"
    assert [tuple(row) for row in bench.rows(query)] == [(1, 488), (1, 488), (2, 488), (2, 488)]


def test_labels_that_came_later_count_whichever_split_they_joined(bench: Bench) -> None:
    """In this view, among the decisions, for a monitor and for `evaluate`: some of them joined knn."""
    with np.load(EXAMPLES / "test.npz") as test:
        ids = np.array([f"later-{row}" for row in range(488)])
        path = bench.write("later.npz", {"r": test["r"], "f": test["f"], "y": np.full(488, -1), "id": ids})
        lines = [f"later-{row},{given}" for row, given in enumerate(test["y"].tolist())]
    bench.score("reviews", path)
    update_monitor(bench.engine, "reviews")
    labels = bench.folder / "labels.csv"
    labels.write_text("\n".join(["external_id,label", *lines]) + "\n")
    label(bench.engine, "reviews", LabelFile(labels), selection="random", retract=False)
    joined = "SELECT count(*) FROM exemplar WHERE split = 'knn' AND external_id LIKE 'later-%'"
    assert bench.value(joined) > 20
    update_monitor(bench.engine, "reviews")

    (said,) = bench.rows(
        "SELECT points, admitted FROM report.selective_accuracy_v4 WHERE per = 'all' AND weighted AND NOT q_equals_k"
    )
    of_decisions = "SELECT count(*) FROM report.decision_v2 WHERE label IS NOT NULL{}"
    assert said.points == bench.value(of_decisions.format("")) == 488
    assert said.admitted == bench.value(of_decisions.format(" AND decision IS NOT NULL"))
    assert said.admitted == bench.value("SELECT sum(labels) FROM report.monitor_v1 WHERE lamp = 'promise'")
    evaluated = report_of_decisions(bench)
    assert (evaluated.point_count, evaluated.left_out) == (488, 0)

    # A calibration on parameters that were fitted with them is not judged by them.
    bench.adopt("reviews")
    bench.calibrate("reviews", kappa=100)
    bench.score("reviews", path)
    newer = "SELECT coalesce(max(points), 0) FROM report.selective_accuracy_v4 WHERE per = 'all' AND calibration = 2"
    assert bench.value(newer) == 0
