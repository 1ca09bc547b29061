"""A promise of the mean loss on the command line: what is promised, shown, evaluated, and refused."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, NAME
from venn_admit.core.calibrators.certified.document import from_document

LOSS = "0,1,0.5;2,0,1;0.25,1,0"
CERTIFY = ("calibrate", NAME, "--score", "network", "--certify", "predicted,true", "--alpha", "0.2")


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_mean_loss_is_certified_reported_evaluated_and_not_monitored(
    own_calibrated: Program, files: Path, tmp_path: Path
) -> None:
    table = tmp_path / "loss.csv"
    table.write_text("true,blue,green,red\ngreen,1,0,2\nred,0.5,1,0\nblue,0,1,0.25\n")
    found = own_calibrated(*CERTIFY, "--loss", table, "--json").result
    assert found["loss"] == [["0", "1", "0.5"], ["2", "0", "1"], ["0.25", "1", "0"]]
    certificate = from_document(found["certificate"])
    assert certificate.policy is not None
    assert certificate.loss == tuple(tuple(map(Decimal, row)) for row in found["loss"])
    assert all(0 <= one.mean_loss < 0.2 for one in certificate.classes if one.mean_loss is not None)
    said = words(own_calibrated(*CERTIFY, "--loss", LOSS).stdout)
    assert "Certified with confidence 0.95: the mean loss of what is admitted is at most 0.2 in every predicted" in said
    assert "at least 0.8 is right" not in said

    report = own_calibrated("report", NAME, "--json").result
    assert "the mean loss is at most 0.2" in report["calibration"]["promise_sentence"]
    dataset = own_calibrated("evaluate", NAME, files / "scored.npz", "--json").result
    shown = dataset["mean_loss"]
    admitted = dataset["methods"][dataset["own_method"]]
    assert shown["all"]["n"] == admitted["all"]["n"]
    assert admitted["promise"] == "loss"
    low, high = shown["all"]["interval"]
    assert low <= shown["all"]["mean"] <= high
    out = tmp_path / "decided.parquet"
    own_calibrated("score", NAME, files / "scored.npz", "--out", out)
    assert shown["all"]["mean"] == pytest.approx(mean_of(out))
    decide = ("decide", NAME, files / "scored.npz", "--row", 3)
    decided = own_calibrated(*decide, "--json").result["policy"]
    assert (decided["promise"], "the mean loss is at most 0.2" in decided["promise_sentence"]) == ("loss", True)
    assert "the mean loss is at most 0.2" in words(own_calibrated(*decide).stdout)
    told = words(own_calibrated("evaluate", NAME, files / "scored.npz").stdout)
    assert "What the admitted points cost on average" in told
    assert "against a target of 80%" not in told

    refused = own_calibrated("monitor", NAME)
    assert refused.code == 2
    assert "promises a mean loss, and monitors bet on the share right alone" in words(refused.stderr)
    assert "Not watched: a mean loss is promised" in words(own_calibrated("report", NAME).stdout)
    refused = own_calibrated("what-if", NAME, "--alpha", "0.25")
    assert refused.code == 2
    assert "asks for a certificate, whose policies are tested on all of mc and vp" in words(refused.stderr)


def mean_of(out: Path) -> float:
    """The mean loss of what a file of decisions admits."""
    import pyarrow.parquet as pq

    label = dict(zip(samples.scored()["external_id"].tolist(), samples.scored()["label"].tolist(), strict=True))
    matrix = np.array([row.split(",") for row in LOSS.split(";")], dtype=np.float64)
    rows = [row for row in pq.read_table(out).to_pylist() if row["decision"] is not None]
    return float(np.mean([matrix[label[row["external_id"]], row["decision"]] for row in rows]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--promise", "average", "--loss", LOSS), "the average promise counts right and wrong alone"),
        (("--promise", "pointwise", "--loss", LOSS), "the pointwise promise counts right and wrong alone"),
        (("--method", "venn-admit", "--loss", LOSS), "loss: the method venn-admit has no such setting"),
        (
            ("--compare", "--loss", LOSS),
            "by right and wrong alone, without losses, groups or class shares; got --loss;",
        ),
        (
            ("--compare", "--certify", "group:region"),
            "by right and wrong alone, without losses, groups or class shares; got --certify;",
        ),
        (("--loss", "0,1;1,0"), "got 2 rows of 2 values"),
        (("--loss", "absent.csv"), "cannot be read"),
    ],
    ids=str,
)
def test_what_cannot_have_a_loss_is_refused(calibrated: Program, arguments: tuple[str, ...], said: str) -> None:
    done = calibrated("calibrate", NAME, *arguments)
    assert done.code == 2
    assert said in words(done.stderr)


def test_a_loss_without_a_policy_rejects_everything_and_takes_no_average(own_calibrated: Program) -> None:
    costly = ";".join(",".join("0" if one == other else "500" for one in CLASS_NAMES) for other in CLASS_NAMES)
    done = own_calibrated("calibrate", NAME, "--loss", costly, "--json").result
    assert (done["certificate"]["certified"], done["average"]) == (False, None)
