"""The certified promise on the command line: calibrate, what it prints, decisions, report, lists, export, refusals."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import venn_admit
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, NAME
from venn_admit.core.calibrators.certified.document import from_document

ABERS = ("calibrate", NAME, "--method", "venn-abers", "--alpha", "0.1", "--score", "network")
CERTIFY = (*ABERS, "--certify", "true, predicted", "--confidence", "0.9")
# More than the samples can show.
TOO_MUCH = ("calibrate", NAME, "--method", "venn-abers", "--alpha", "0.01", "--certify", "predicted")


PROMISED = (
    "with confidence 0.9 over the calibration labels, at least 0.9 are right among the admitted of each predicted and "
    "of each true class"
)


def words(text: str) -> str:
    return " ".join(text.split())


def test_calibrate_and_what_follows(own_calibrated: Program, files: Path, tmp_path: Path) -> None:
    result = own_calibrated(*CERTIFY, "--json").result
    assert (result["certify"], result["confidence"], result["test"]) == (["predicted", "true"], "0.9", "finite-sample")
    assert result["rows_opened"] == result["mc"] + result["vp"]
    found = result["certificate"]
    assert (found["certified"], found["classes"], found["single_points"]) == (True, list(CLASS_NAMES), True)
    certificate = from_document(found)
    assert certificate.policy is not None
    assert (certificate.alpha, certificate.points) == (Decimal("0.1"), result["mc"] + result["vp"])

    said = words(own_calibrated(*CERTIFY).stdout)
    assert "Certified with confidence 0.9: of what is admitted, at least 0.9 is right in every predicted and" in said
    for kind in ("predicted", "true"):
        for name in CLASS_NAMES:
            assert f"{kind} {name}" in said
    assert f"red from {certificate.policy.thresholds[0]:.4g}" in said

    file, out = files / "scored.npz", tmp_path / "scores.parquet"
    assert own_calibrated("score", NAME, file, "--out", out).code == 0
    rows = pq.read_table(out).to_pylist()
    assert 0 < sum(row["decision"] is None for row in rows) < samples.SCORED_ROWS
    for row in rows:
        threshold = certificate.policy.thresholds[row["predicted"]]
        admitted = threshold is not None and row["score"] >= threshold
        assert row["decision"] == (row["predicted"] if admitted else None)
        assert row["reason"] == (None if admitted else "score below threshold")
    shown = own_calibrated("decide", NAME, file, "--row", 3, "--json").result
    threshold = certificate.policy.thresholds[shown["predicted"]]
    assert shown["policy"] == {
        "is_certified": True,
        "promise": "both",
        "promise_sentence": PROMISED,
        "threshold": threshold,
        "bounded": "score",
        "has_groups": False,
    }
    assert (shown["lower"], shown["decision"]) == (rows[3]["lower"], rows[3]["decision"])
    decided = words(own_calibrated("decide", NAME, file, "--row", 3).stdout)
    assert "policy The certified policy admits this class from" in decided
    assert f"promised {PROMISED}" in decided
    replayed = own_calibrated("replay", "--classifier", NAME, "--id", rows[3]["external_id"], "--json").result
    assert (replayed["differing"], replayed["policy"]) == ([], shown["policy"])

    report = own_calibrated("report", NAME, "--json").result
    assert report["certificate"] == found
    told = words(own_calibrated("report", NAME).stdout)
    assert "Policies tested" in told
    assert "thresholds of the policy" in told

    newest, *_ = own_calibrated("calibrations", NAME, "--json").result["settings"]
    assert (newest["is_certified"], newest["promised"], newest["certify"]) == (True, "both", ["predicted", "true"])
    for verb in (("show", NAME), ("list",)):
        said = own_calibrated(*verb).stdout
        assert ": certified" in words(said)
    assert f"for traffic like the calibration data: {PROMISED}." in words(own_calibrated("show", NAME).stdout)
    in_use = own_calibrated("list", "--json").result["classifiers"][0]["in_use"]
    assert in_use["is_certified"] is True
    admits = [None if one is None else float(one) for one in in_use["thresholds"]]
    assert admits == [float(one) for one in newest["thresholds"]] == list(certificate.policy.thresholds)

    policy = tmp_path / "policy.json"
    assert own_calibrated("export", NAME, "--what", "policy", "--out", policy).code == 0
    document = json.loads(policy.read_text())
    assert (document["classifier"], document["score"], document["q_bins"]) == (NAME, "network", [0])
    assert from_document(document) == certificate


def test_a_dry_run_shows_everything_and_stores_nothing(own_calibrated: Program) -> None:
    looked = words(own_calibrated(*TOO_MUCH, "--dry-run").stdout)
    assert "Dry run, no calibration is stored: method venn-abers" in looked
    assert "It would be stored and not put in use: it would admit 0.0% of" in looked
    assert "written" not in looked
    assert len(own_calibrated("calibrations", NAME, "--json").result["calibrations"]) == 1


def test_recalibrating_says_what_takes_the_place_of_a_certificate(own_calibrated: Program, tmp_path: Path) -> None:
    assert own_calibrated("calibrate", NAME, "--alpha", "0.1", "--confidence", "0.999999").code == 0
    labels = tmp_path / "labels.csv"
    labels.write_text("external_id,label\n" + "".join(f"held-out-{row},red\n" for row in range(9)))
    assert own_calibrated("label", NAME, labels, "--selection", "random").code == 0
    again = words(own_calibrated("recalibrate", NAME).stdout)
    assert "vp; the average promise takes the place of a certificate." in again


def test_a_switch_names_the_classes_that_the_generation_never_admits(
    own_calibrated: Program, files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = f"{NAME}@2"
    for step in (
        ("generation", "create", NAME),
        ("ingest", other, files / "train.npz", "--split", "train"),
        ("ingest", other, files / "held-out.parquet", "--split", "held-out"),
        ("fit", other),
        ("calibrate", other, "--alpha", "0.03", "--certify", "predicted"),
    ):
        assert own_calibrated(*step).code == 0
    never = f"Generation 2 never admits what is predicted as {CLASS_NAMES[1]}."
    assert never in words(own_calibrated("generation", "switch", other, "--dry-run").stdout)
    told = own_calibrated("generation", "switch", other, "--dry-run", "--json").result
    assert told["never_admitted"] == [CLASS_NAMES[1]]
    with venn_admit.connect(own_calibrated.url) as direct:
        assert direct.switch(other).generation == 2
        assert never in caplog.text
        direct.switch(f"{NAME}@1")
    assert own_calibrated("calibrate", other, "--alpha", "0.1", "--certify", "predicted").code == 0
    assert "never admits" not in words(own_calibrated("generation", "switch", other).stdout)


def test_with_too_few_labels_everything_is_rejected(own_calibrated: Program, files: Path, tmp_path: Path) -> None:
    said = words(own_calibrated(*TOO_MUCH).stdout)
    assert "Not certified: no policy passed at confidence 0.95 for every predicted class, so everything is" in said
    assert "labels" in said
    assert "Calibration 2 is stored and not in use" in said
    assert "It is not in use because it would admit 0.0% of" in said
    assert f"`venn-admit use {NAME} 2` puts it in use all the same" in said
    listed = words(own_calibrated("calibrations", NAME).stdout)
    assert "not in use" in listed
    assert "1 certificate looked at the labels of mc and vp" in listed
    used = own_calibrated("use", NAME, 2, "--reason", "to see what it rejects")
    assert words(used.stdout) == f"Calibration 2 of {NAME} is in use; calibration 1 was in use before."
    assert "warning: calibration 2 admits none of its calibration points: a report says why" in used.stderr
    back = own_calibrated("use", NAME, 1, "--json")
    assert (back.result["admits_nothing"], back.stderr) == (False, "")
    assert own_calibrated("use", NAME, 2, "--json").result["admits_nothing"] is True
    assert "Promised, for traffic like the calibration data: nothing." in words(own_calibrated("report", NAME).stdout)
    out = tmp_path / "scores.parquet"
    summary = own_calibrated("score", NAME, files / "scored.npz", "--out", out, "--json").result
    assert summary["rejected"] == {"policy not certified": samples.SCORED_ROWS}
    assert {row["reason"] for row in pq.read_table(out).to_pylist()} == {"policy not certified"}
    decided = own_calibrated("decide", NAME, files / "scored.npz", "--require-full-match").stdout
    assert "policy No policy is certified." in words(decided)
    assert ": not certified" in words(own_calibrated("calibrations", NAME).stdout)
    labels = tmp_path / "labels.csv"
    labels.write_text("external_id,label\n" + "".join(f"held-out-{row},red\n" for row in range(9)))
    assert own_calibrated("label", NAME, labels, "--selection", "random").code == 0
    again = words(own_calibrated("recalibrate", NAME).stdout)
    assert "certify predicted with confidence 0.95): calibration" in again
    assert "vp; not certified, so that everything is rejected." in again
    refused = own_calibrated("score", NAME, files / "scored.npz", "--out", out, "--weighted")
    assert refused.code == 2
    assert "in which weights have no part" in words(refused.stderr)


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        (
            ("--method", "venn-admit", "--certify", "predicted"),
            "certify: the method venn-admit has no such setting, got predicted",
        ),
        ((*ABERS[2:], "--certify", "each"), "predicted*group:COLUMN; got each"),
        ((*ABERS[2:], "--certify", ""), "predicted*group:COLUMN; got neither"),
        ((*ABERS[2:], "--certify", "true", "--confidence", "1"), "confidence must lie strictly between 0 and 1, got 1"),
        ((*ABERS[2:], "--certify", "true", "--confidence", "high"), "confidence: expected a decimal number"),
        (
            (*ABERS[2:], "--certify", "true", "--test", "t"),
            "documents are tested by finite-sample or asymptotic; got t",
        ),
        (
            (*ABERS[2:], "--promise", "pointwise", "--confidence", "0.9"),
            "confidence: this is a setting of certificates, got 0.9",
        ),
        (
            (*ABERS[2:], "--certify", "true", "--thresholds", "1,1,1"),
            "thresholds: a certificate sets the thresholds itself",
        ),
    ],
)
def test_what_cannot_be_asked_for(calibrated: Program, options: tuple[object, ...], saying: str) -> None:
    outcome = calibrated("calibrate", NAME, *options)
    assert outcome.code == 2
    assert saying in words(outcome.stderr)
    assert len(calibrated("calibrations", NAME, "--json").result["settings"]) == 1


def test_a_policy_that_was_not_asked_for_is_not_exported(calibrated: Program, tmp_path: Path) -> None:
    outcome = calibrated("export", NAME, "--what", "policy", "--out", tmp_path / "policy.json")
    assert outcome.code == 2
    assert "was asked for no certificate or average promise, so it has no policy" in words(outcome.stderr)
    assert not (tmp_path / "policy.json").exists()
    refused = calibrated("export", NAME, "--what", "policy", "--out", tmp_path / "policy.csv")
    assert ".json" in refused.stderr
