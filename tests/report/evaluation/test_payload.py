"""The report as programs read it."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from math import inf

import pytest

from tests.report.samples import ALPHA, HOSTILE_NAMES, PARAMETERS
from tests.running import ADDED_TO_ADMIT
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.evaluation.measures import ClassTallies
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.files.output.exports import finite_json
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.evaluated import EvaluatedCalibration, settings_of_bands
from venn_admit.report.evaluation.payload import report_payload

KINDS = ("per_true_class", "per_predicted_class", "all")


def as_tally(measured: Tally, share: str) -> dict[str, object]:
    return {
        share: measured.share,
        "interval": list(measured.interval),
        "n": measured.count,
        "N": measured.total,
        "documents": measured.documents,
        "verdict": str(measured.verdict(ALPHA)),
    }


def as_classes(report: DatasetReport, measured: ClassTallies, share: str) -> dict[str, object]:
    def by_class(tallies: tuple[Tally, ...]) -> dict[str, object]:
        named = zip(report.class_names, tallies, strict=True)
        return {name: as_tally(tally, share) for name, tally in named}

    return {
        "per_true_class": by_class(measured.per_true_class),
        "per_predicted_class": by_class(measured.per_predicted_class),
        "all": as_tally(measured.overall, share),
    }


@pytest.mark.parametrize("which", ["compared", "of_documents", "of_few_documents", "hostile"])
def test_holds_every_measure_of_every_method(which: str, request: pytest.FixtureRequest) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    methods = report_payload(report)["methods"]
    assert list(methods) == [row.name for row in report.methods]
    for row in report.methods:
        told = methods[row.name]
        assert {key: told[key] for key in KINDS} == as_classes(report, row.singletons, "share_correct")
        assert told["coverage"] == as_classes(report, row.coverage, "share_covered")
        assert told["mean_size"] == row.mean_size
        assert told["by_size"] == [
            {"least": size.least, "most": size.most, **as_tally(size.covered, "share_covered")} for size in row.by_size
        ]


def test_says_of_every_method_what_it_promises_and_whether_every_class_holds(selective: DatasetReport) -> None:
    methods = report_payload(selective)["methods"]
    assert {name: told["promise"] for name, told in methods.items()} == {
        **dict.fromkeys(("Conf_BASE", "RAPS adaptiveness", "RAPS size", "APS"), "sets"),
        **dict.fromkeys(("KNN", "LocalConf_BASE", "ADMIT"), "none"),
        **{f"Venn-ADMIT {kind}{more}": "pointwise" for kind in ("plain", "weighted") for more in ("", ", q = K")},
        "softmax >= 1 - alpha": "none",
        "SGR": "overall",
        "Venn-Abers network": "pointwise",
        "Venn-Abers reliability": "pointwise",
        "certified": "both",
        "on average": "average",
    }
    for told in methods.values():
        assert told["promise_sentence"] == Promised(told["promise"]).sentence
        tallies = [*told["per_true_class"].values(), *told["per_predicted_class"].values()]
        verdicts = [one["verdict"] for one in tallies if one["n"]]
        assert told["every_class"]["classes_met"] == verdicts.count("met")
        assert told["every_class"]["of"] == len(verdicts)
        expected = (
            "missed" if "missed" in verdicts else "met" if verdicts and set(verdicts) == {"met"} else "cannot_tell"
        )
        assert told["every_class"]["verdict"] == expected


def test_risk_coverage_curves(selective: DatasetReport) -> None:
    told = report_payload(selective)["risk_coverage"]
    assert list(told) == ["softmax >= 1 - alpha", "Venn-Abers network", "Venn-Abers reliability", "Venn-ADMIT weighted"]
    wrong = 1 - report_payload(selective)["accuracy"]["network"]["accuracy"]
    for name, one in told.items():
        coverage = [point["coverage"] for point in one["curve"]]
        assert coverage == sorted(set(coverage))
        assert len(coverage) <= 100
        assert 0 < one["area"] < 0.2
        if name != "Venn-ADMIT weighted":
            assert one["curve"][-1] == {"coverage": 1.0, "share_wrong": pytest.approx(wrong)}


def test_accuracy_has_intervals(compared: DatasetReport) -> None:
    accuracy = report_payload(compared)["accuracy"]
    assert list(accuracy) == ["network", "KNN"]
    for row in compared.accuracy:
        told, measured = accuracy[row.name], row.accuracy
        assert told["accuracy"] == told["tallies"]["all"]["share_correct"] == measured.tallies.overall.share
        assert told["f_half_macro"] == measured.f_half_macro
        low, high = told["f_half_macro_interval"]
        assert low < told["f_half_macro"] < high
        assert told["tallies"] == as_classes(compared, measured.tallies, "share_correct")
        assert told["per_true_class"] == {
            name: told["tallies"]["per_true_class"][name]["share_correct"] for name in compared.class_names
        }


def test_reliability_of_both_bounds(of_documents: DatasetReport) -> None:
    told = report_payload(of_documents)["reliability"]
    for bound, measured in (("lower", of_documents.reliability_lower), ("upper", of_documents.reliability_upper)):
        for name, bins in measured.items():
            listed = told[bound][name]
            assert [one["n"] for one in listed] == [n for n in bins.count.tolist() if n]
            assert sum(one["few"] for one in listed) == bins.few.sum()
            for one in listed:
                assert one["from"] <= one["mean_probability"] <= one["to"]
                assert one["interval"][0] <= one["share_correct"] <= one["interval"][1]


def test_says_what_was_evaluated(compared: DatasetReport, of_documents: DatasetReport) -> None:
    plain, clustered = report_payload(compared), report_payload(of_documents)
    assert (plain["points"], plain["document_count"], plain["left_out"], plain["chosen"]) == (500, None, 12, 0)
    assert (clustered["points"], clustered["document_count"], clustered["left_out"]) == (500, 100, 0)
    assert plain["parameters"] == dict(PARAMETERS)
    assert plain["notes"][0].startswith("12 rows are left out")
    assert clustered["notes"][0].startswith("This sample cannot judge predictions of")
    assert clustered["notes"][1].startswith("Venn-ADMIT weighted admits")


def test_few_documents_never_meet_the_target(of_few_documents: DatasetReport) -> None:
    told = report_payload(of_few_documents)
    text = json.dumps(told)
    assert '"cannot_tell"' in text
    assert '"met"' not in text
    assert told["verdict"]["all_predicted_classes"] == "cannot_tell"


def test_the_verdict(two_class_report: Callable[..., DatasetReport]) -> None:
    told = report_payload(two_class_report([(0, 0, 12), (0, 1, 50), (1, 1, 95)]))
    assert told["verdict"] == {
        "target": "0.9",
        "all_predicted_classes": "missed",
        "per_predicted_class": {
            "rare": {"verdict": "cannot_tell", "n": 12, "more_to_settle": 23},
            "common": {"verdict": "missed", "n": 145, "more_to_settle": 0},
        },
    }


def test_the_calibration(sentiment: DatasetReport) -> None:
    assert report_payload(sentiment)["calibration"] is None
    settings = make_settings(2, 25, alpha=ALPHA, kappa=100, delta=inf, q_bins=(0, 1, 6))
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    made = EvaluatedCalibration(7, at, "venn-admit", settings_of_bands(settings, 25), True, 500, 480)
    of = replace(sentiment, calibration=made)
    assert json.loads(json.dumps(finite_json(report_payload(of)), allow_nan=False))["calibration"] == {
        "id": 7,
        "created_at": "2026-03-01T09:30:00+00:00",
        "method": "venn-admit",
        "alpha": "0.1",
        "thresholds": ["0.9", "0.9"],
        "kappa": 100,
        "delta": "inf",
        **ADDED_TO_ADMIT,
        "bin_edges": [0, 1, 6],
        "mc_count": 500,
        "vp_count": 480,
        "weighted": True,
    }


def test_is_json_whatever_the_names_are(hostile: DatasetReport) -> None:
    told = json.loads(json.dumps(finite_json(report_payload(hostile)), allow_nan=False))
    assert tuple(told["methods"]["KNN"]["coverage"]["per_true_class"]) == HOSTILE_NAMES
    assert told["parameters"] == {"<b>$x": "[red]1 & $2"}
