"""Evaluation of a calibration by Venn-Abers: its own decisions are judged, and the others are its rivals."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.running import EXAMPLES, METHODS, Bench
from tests.templates import fresh_bench
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.files.sources import FileSource
from venn_admit.flows.reports.evaluate import EvaluationRequest, compare_methods, request_evaluation_of_source
from venn_admit.methods.venn_abers import describe
from venn_admit.report.evaluation.dataset import DatasetReport

NAME, OWN = "reviews", "Venn-Abers network"


@pytest.fixture(scope="module")
def reviews(server_url: str, few_reviews_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Real data, calibrated by Venn-ADMIT at kappa 100 first, and then by Venn-Abers with the network's score."""
    with fresh_bench(server_url, few_reviews_template, tmp_path_factory.mktemp("abers")) as bench:
        bench.calibrate_abers(NAME, score="network")
        yield bench


def request(bench: Bench, path: Path = EXAMPLES / "test.npz", calibration_id: int | None = None) -> EvaluationRequest:
    return request_evaluation_of_source(
        bench.workspace(chunk_rows=512), NAME, FileSource(path), calibration_id=calibration_id
    )


def run(bench: Bench, path: Path = EXAMPLES / "test.npz", calibration_id: int | None = None) -> DatasetReport:
    asked = request(bench, path, calibration_id)
    if asked.job_id is not None:
        bench.run(asked.job_id)
    return compare_methods(bench.workspace(), asked, "reviews")


@pytest.fixture(scope="module")
def report(reviews: Bench) -> DatasetReport:
    return run(reviews)


def test_its_own_row_holds_the_decisions_of_score(reviews: Bench, report: DatasetReport) -> None:
    with np.load(EXAMPLES / "test.npz") as arrays:
        label, network = arrays["y"], arrays["f"].argmax(axis=1)
    decision = reviews.score(NAME, EXAMPLES / "test.npz", weighted=None).column("decision")
    admitted, right = ~np.isnan(decision), decision == label
    own = report.method(OWN)
    assert (report.own, report.baseline) == (OWN, "network")
    assert own.overall == Tally(int(right.sum()), int(admitted.sum()), len(label))
    for c in range(2):
        said, true = decision == c, admitted & (label == c)
        assert own.per_predicted_class[c] == Tally(int((right & said).sum()), int(said.sum()), len(label))
        assert own.per_true_class[c] == Tally(int((right & true).sum()), int(true.sum()), len(label))
    assert report.method("network").overall == Tally(int((network == label).sum()), len(label), len(label))
    assert report.calibration is not None
    assert (report.calibration.method, report.calibration.weighted) == ("venn-abers", False)
    assert report.calibration.settings.stored["score"] == "network"


def test_the_rivals_are_those_of_the_other_method_on_the_same_data(
    reviews: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Splits mc and vp are the same, whichever method calibrates, and Venn-ADMIT has the settings of the other one."""
    monkeypatch.setattr(describe, "make_settings", partial(make_settings, kappa=100))
    report, other = run(reviews), run(reviews, calibration_id=1)
    assert [row.name for row in report.methods] == ["KNN", "network", *METHODS[1:]]
    for name in METHODS:
        assert report.method(name) == other.method(name), name
    assert report.method("Venn-ADMIT weighted").overall.count > 80
    assert "usable bands" in dict(report.parameters)["Venn-ADMIT"]


def test_by_its_usual_settings_venn_admit_has_no_usable_band_here(report: DatasetReport) -> None:
    assert not any("ADMIT" in row.name for row in report.methods)
    assert dict(report.parameters)["Venn-ADMIT"].startswith("left out: no band holds kappa = 1,000 points")


def test_several_bins_of_q_stand_beside_one(reviews: Bench) -> None:
    reviews.calibrate_abers(NAME, score="network", q_bins=(0, 13))
    try:
        report = run(reviews)
        assert report.own == f"{OWN}, bins of q"
        assert report.method(report.own) != report.method(OWN)
    finally:
        reviews.calibrate_abers(NAME, score="network")


def test_calibration_data_of_any_rival_are_left_out(reviews: Bench) -> None:
    with np.load(EXAMPLES / "valid.npz") as valid:
        held_out = {name: values[:60] for name, values in valid.items()}
    rows = reviews.rows("SELECT external_id FROM exemplar WHERE split IN ('knn', 'mc', 'vp') ORDER BY id LIMIT 60")
    held_out["id"] = np.array([row.external_id for row in rows])
    with np.load(EXAMPLES / "ood.npz") as ood:
        others = {name: values[:40] for name, values in ood.items()} | {"id": np.array([f"t{i}" for i in range(40)])}
    mixed = {name: np.concatenate([held_out[name], others[name]]) for name in ("id", "r", "f", "y")}
    mixed["doc"] = np.concatenate([held_out["doc"].astype(str), others["doc"].astype(str)])
    report = run(reviews, reviews.write("mixed.npz", mixed))
    assert (report.point_count, report.left_out) == (40, 60)
