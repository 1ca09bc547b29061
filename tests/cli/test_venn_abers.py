"""The method venn-abers on the command line: calibrate, score, decide, replay, report, export, and what is refused."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import NAME
from tests.running import ADDED_TO_ABERS

ABERS = ("calibrate", NAME, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2")


@pytest.fixture
def by_abers(own_calibrated: Program) -> Program:
    """Calibrated by venn-abers last."""
    assert own_calibrated(*ABERS).code == 0
    return own_calibrated


def test_calibrate(own_calibrated: Program) -> None:
    result = own_calibrated(*ABERS, "--json").result
    assert (result["method"], result["alpha"], result["score"]) == ("venn-abers", "0.2", "auto")
    assert (result["delta"], result["kappa"]) == (None, None)
    assert result["chosen_score"] in {"network", "reliability"}
    assert 0 < result["network_share"] <= 1
    assert result["rows_opened"] == result["mc"] > 0
    assert result["steps"] > 0
    asked = own_calibrated(
        *ABERS, "--score", "reliability", "--q-bins", "0,2", "--thresholds", "0.8,0.9,0.95", "--json"
    )
    assert (asked.result["chosen_score"], asked.result["network_share"]) == ("reliability", None)
    said = own_calibrated(*ABERS, "--score", "network").stdout
    assert "is in use: method venn-abers, alpha 0.2, score network; points: " in said
    assert "Cross-fitted" not in said


@pytest.mark.parametrize(
    ("promise", "points"), [("strongest", "the points that propose the policy"), ("pointwise", "mc")]
)
def test_calibrate_says_by_which_points_the_score_was_chosen(
    own_calibrated: Program, promise: str, points: str
) -> None:
    said = " ".join(own_calibrated("calibrate", NAME, "--promise", promise).stdout.split())
    assert re.search(rf"the network's score admit \d+\.\d% of {points}, by the reliability score \d+\.\d%", said)


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        (("--method", "venn-abers", "--delta", 1), "delta: the method venn-abers has no such setting, got 1.0"),
        (("--method", "venn-abers", "--kappa", 5), "kappa: the method venn-abers has no such setting, got 5"),
        (("--method", "venn-admit", "--score", "auto"), "score: the method venn-admit has no such setting, got auto"),
        (("--method", "other"), "method: expected venn-admit or venn-abers, got 'other'"),
        (("--method", "venn-abers", "--score", "best"), "the score must be auto, network or reliability; got best"),
    ],
)
def test_options_of_another_method_are_refused(
    own_calibrated: Program, options: tuple[object, ...], saying: str
) -> None:
    outcome = own_calibrated("calibrate", NAME, *options)
    assert outcome.code != 0
    assert saying in " ".join(outcome.stderr.split())
    assert len(own_calibrated("calibrations", NAME, "--json").result["settings"]) == 1


def test_score_decide_and_replay(by_abers: Program, files: Path, tmp_path: Path) -> None:
    file = files / "scored.npz"
    tables = {}
    for mode in ("", "--weighted", "--unweighted"):
        out = tmp_path / f"scores{mode}.parquet"
        assert by_abers("score", NAME, file, "--out", out, *([mode] if mode else [])).code == 0
        tables[mode] = pq.read_table(out).to_pylist()
    assert tables[""] == tables["--unweighted"] != tables["--weighted"]
    predicted = samples.scored()["logits"].argmax(axis=1)
    assert [row["predicted"] for row in tables[""]] == predicted.tolist()
    for row in tables[""]:
        assert (row["method"], row["set"], row["upweight"]) == ("venn-abers", None, 1.0)
        assert 0 < row["score"] <= 1
    for mode, table in tables.items():
        decided = by_abers("decide", NAME, file, "--row", 3, "--json", *([mode] if mode else [])).result
        names = ("predicted", "score", "upweight", "lower", "upper", "decision", "reason", "logits")
        assert {name: decided[name] for name in names} == {name: table[3][name] for name in names}
    said = by_abers("decide", NAME, file, "--row", 3).stdout
    assert "score, s" in said
    assert "Evidence per class" not in said
    replayed = by_abers("replay", "--classifier", NAME, "--id", tables[""][3]["external_id"], "--json").result
    assert replayed["differing"] == []
    basis = replayed["basis"]
    shown = by_abers("replay", "--classifier", NAME, "--id", tables[""][3]["external_id"]).stdout
    assert "What it rests on" in shown
    assert f"points of mc in the cell  {basis['cell_size']:,}" in shown
    assert "(this one)" in shown


@pytest.mark.parametrize("verb", ["score", "decide"])
def test_weighted_and_not_at_once_is_refused(own_calibrated: Program, files: Path, tmp_path: Path, verb: str) -> None:
    out = ("--out", tmp_path / "scores.parquet") if verb == "score" else ()
    outcome = own_calibrated(verb, NAME, files / "scored.npz", *out, "--weighted", "--unweighted")
    assert outcome.code != 0
    assert "expected --weighted or --unweighted, got both" in " ".join(outcome.stderr.split())


@pytest.mark.usefixtures("blank_charts")
def test_report_says_method_score_and_counts(by_abers: Program, tmp_path: Path) -> None:
    result = by_abers("report", NAME, "--json").result
    assert (result["calibration"]["method"], result["calibration"]["asked_score"]) == ("venn-abers", "auto")
    assert sum(cell["points"] for cell in result["cells"]) == result["calibration"]["mc"] > 0
    said = by_abers("report", NAME, "--out", tmp_path / "report").stdout
    assert "method venn-abers, alpha 0.2" in " ".join(said.split())
    for title in (
        "What is stored",
        "What ranks the predictions",
        "Predicted classes, and",
        "How much is right in each partition",
    ):
        assert f"\n{title}" in said
    assert json.loads((tmp_path / "report" / "report.json").read_text()) == result
    assert "<svg" in (tmp_path / "report" / "index.html").read_text()
    # That of the other method still says what it said.
    assert by_abers("report", NAME, "--calibration", 1, "--json").result["calibration"]["kappa"] == 10


@pytest.mark.usefixtures("blank_charts")
def test_evaluate(by_abers: Program, files: Path, tmp_path: Path) -> None:
    file, folder = files / "scored.npz", tmp_path / "evaluation"
    result = by_abers("evaluate", NAME, file, "--json").result
    own = result["own_method"]
    assert own in {"Venn-Abers network", "Venn-Abers reliability"}
    assert own.removeprefix("Venn-Abers ") == result["calibration"]["score"]
    assert (result["calibration"]["method"], result["calibration"]["weighted"]) == ("venn-abers", False)
    out = tmp_path / "scores.parquet"
    assert by_abers("score", NAME, file, "--out", out).code == 0
    admitted = [row["decision"] for row in pq.read_table(out).to_pylist()]
    assert result["methods"][own]["all"]["n"] == sum(decision is not None for decision in admitted)
    assert result["verdict"]["per_predicted_class"].keys() == result["methods"][own]["per_predicted_class"].keys()
    said = by_abers("evaluate", NAME, file, "--details", "--out", folder).stdout
    words = " ".join(said.split())
    assert "Calibration 2 by the method venn-abers" in words
    assert f"First the method of the calibration, {own}" in words
    assert "Venn-ADMIT left out: no band holds kappa = 1,000 points of each class in mc" in words
    assert "Partitions of the KNN" not in words
    assert json.loads((folder / "evaluation.json").read_text())["own_method"] == own
    assert own in (folder / "index.html").read_text()
    other = by_abers("evaluate", NAME, file, "--calibration", 1, "--json").result
    assert (other["own_method"], other["calibration"]["method"]) == ("Venn-ADMIT weighted", "venn-admit")
    assert by_abers("evaluate", NAME, "--json").result["points"] == result["points"]


def test_an_audit_of_the_index_asks_for_a_calibration_with_bands(by_abers: Program) -> None:
    assert by_abers("index", "create", NAME).code == 0
    outcome = by_abers("index", "audit", NAME)
    assert outcome.code != 0
    assert "is by the method venn-abers, expected the method venn-admit" in " ".join(outcome.stderr.split())


def test_what_is_listed_and_exported(by_abers: Program, tmp_path: Path) -> None:
    newest, older = by_abers("calibrations", NAME, "--json").result["settings"]
    assert (newest["method"], newest["score"], newest["kappa"]) == ("venn-abers", "auto", None)
    assert (older["method"], older["score"], older["kappa"]) == ("venn-admit", None, 10)
    assert "venn-abers" in by_abers("show", NAME).stdout
    out = tmp_path / "parameters.json"
    assert by_abers("export", NAME, "--what", "parameters", "--out", out).code == 0
    names = ["beta", "gamma", "eta", "eta_loc", "reliability", "alpha", *ADDED_TO_ABERS]
    assert list(json.loads(out.read_text())) == [*names, "thresholds", "q_bins"]
    points = tmp_path / "calibration.parquet"
    assert by_abers("export", NAME, "--what", "calibration", "--out", points).code == 0
    assert {row["split"] for row in pq.read_table(points).to_pylist()} == {"mc"}
