"""Verbs up to a calibration: create, ingest, fit, calibrate."""

import json
from pathlib import Path

import pytest

from tests.cli import samples
from tests.cli.databases import CALIBRATION
from tests.cli.program import Program, check_refusal, nothing_stored
from tests.cli.samples import HELD_OUT_ROWS, NAME, TRAIN_ROWS, K
from tests.files.samples import SUFFIXES
from venn_admit.core.calibrators.arguments import ALL_DECLARED

CREATE = ("create", "other", "--classes", "good, bad", "--dim", 3, "--k", 7, "--seed", -1)


def test_create(program: Program) -> None:
    assert program(*CREATE, "--json").result == {
        "classifier": "other",
        "classes": ["good", "bad"],
        "dimension": 3,
        "k": 7,
        "seed": -1,
        "generation": 1,
        "is_current": True,
        "extractor": None,
    }


def test_a_class_with_a_comma_is_in_double_quotes(program: Program) -> None:
    created = program("create", "quoted", "--classes", '"good, or better",bad', "--dim", 3, "--json").result
    assert created["classes"] == ["good, or better", "bad"]
    outcome = program("create", "torn", "--classes", '"good, bad', "--dim", 3)
    check_refusal(outcome, 2, "classes: expected names such as negative,positive, each in quotes or none, got")


def test_create_tells_people(program: Program) -> None:
    outcome = program(*CREATE)
    assert (outcome.code, outcome.stdout) == (0, "Created classifier other: 2 classes, D = 3, K = 7.\n")


@pytest.mark.parametrize("name", ["[b]", "[red]x", ":smile:", "ünï 你好", "%(s)s {0}", "'; --"])
def test_any_name_will_do(program: Program, tmp_path: Path, name: str) -> None:
    assert f"Created classifier {name}: " in program("create", name, "--classes", "[/b],:+1:", "--dim", 8).stdout
    columns = samples.take(samples.train(), slice(5))
    columns["logits"], columns["label"] = columns["logits"][:, :2], columns["label"] % 2
    path = samples.save(tmp_path, f"{name}.npz", columns)
    outcome = program("ingest", name, path, "--split", "train")
    assert (outcome.code, outcome.stdout) == (0, f"{path.name}: 5 rows, 5 new (train 5).\n")


def test_vectors_of_another_extractor_are_sent_to_its_generation(program: Program, tmp_path: Path) -> None:
    assert program("create", "other", "--classes", "red,green,blue", "--dim", samples.DIMENSION).code == 0
    assert program("generation", "extractor", "other", "v1").code == 0
    path = samples.save(tmp_path, "train.npz", samples.train())
    refused = program("ingest", "other", path, "--split", "train", "--extractor", "v2")
    check_refusal(refused, 2, "expected 'v1', .* got 'v2'; .* use the generation of the classifier for this one")
    assert "`venn-admit generation list other` lists the generations with theirs; " in refused.stderr


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ingest_twice_stores_nothing_twice_and_says_so(ingested: Program, tmp_path: Path, suffix: str) -> None:
    """Whichever format the file has then, the rows are the same."""
    train = samples.save(tmp_path, f"train{suffix}", samples.train())
    held_out = samples.save(tmp_path, f"held-out{suffix}", samples.held_out())
    with nothing_stored(ingested):
        assert ingested("ingest", NAME, train, "--split", "train", "--json").result == {
            "rows": TRAIN_ROWS,
            "new": 0,
            "already_stored": TRAIN_ROWS,
            "new_per_split": {},
            "copies": 0,
            "training_copies": 0,
            "labels_carried": 0,
            "training_waiting": 0,
            "recalibrations_due": 0,
        }
        told = ingested("ingest", NAME, held_out, "--split", "held-out")
    assert (told.code, told.stdout) == (0, f"held-out{suffix}: 1,500 rows, 0 new, 1,500 already stored.\n")


def test_ingest_adds_what_is_new(own_ingested: Program, tmp_path: Path) -> None:
    both = samples.exemplars("held-out", HELD_OUT_ROWS + 500, seed=2)
    known = samples.held_out()
    columns = {name: [*known[name], *values[HELD_OUT_ROWS:]] for name, values in both.items()}
    path = samples.save(tmp_path, "more.parquet", columns)
    result = own_ingested("ingest", NAME, path, "--split", "held-out", "--json").result
    assert (result["rows"], result["new"], result["already_stored"]) == (HELD_OUT_ROWS + 500, 500, HELD_OUT_ROWS)
    per_split = result["new_per_split"]
    assert sum(per_split.values()) == 500
    assert per_split["knn"] < 100
    assert min(per_split["mc"], per_split["vp"]) > 150


def test_ids_are_file_name_and_row_where_there_are_none(own_ingested: Program, tmp_path: Path) -> None:
    columns = samples.exemplars("new", 3, seed=4)
    del columns["external_id"]
    path = samples.save(tmp_path, "bare.npz", columns)
    for new in (3, 0):
        assert own_ingested("ingest", NAME, path, "--split", "mc", "--json").result["new"] == new


def test_fit(own_ingested: Program) -> None:
    result = own_ingested("fit", NAME, "--json").result
    assert set(result) == {
        "knn_parameters",
        "fit",
        "dev",
        "dev_discrepancies",
        "full_matches",
        "eta",
        "eta_loc",
        "recalibrations_due",
    }
    assert result["recalibrations_due"] == 0, "nothing is calibrated yet"
    assert result["fit"] + result["dev"] == pytest.approx(HELD_OUT_ROWS / 10, rel=0.3)
    assert result["dev_discrepancies"] < result["dev"] / 5
    assert result["eta"] > 0
    assert result["eta_loc"] > 0
    # The same data and seed give the same parameters.
    again = own_ingested("fit", NAME, "--json").result
    assert again == result | {"knn_parameters": result["knn_parameters"] + 1}


def test_fit_takes_parameters_that_export_wrote(calibrated: Program, own_ingested: Program, tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    assert calibrated("export", NAME, "--what", "parameters", "--out", given).code == 0
    outcome = own_ingested("fit", NAME, "--parameters", given)
    assert (outcome.code, outcome.stdout) == (0, "Took the parameters in given.json.\n")
    taken = tmp_path / "taken.json"
    assert own_ingested("export", NAME, "--what", "parameters", "--out", taken).code == 0
    fitted = {
        field: json.loads(given.read_text())[field] for field in ("beta", "gamma", "eta", "eta_loc", "reliability")
    }
    assert json.loads(taken.read_text()) == fitted


def test_calibrate(own_calibrated: Program) -> None:
    first = own_calibrated("calibrate", NAME, *CALIBRATION, "--json").result
    assert set(first) == {
        "calibration",
        "is_stored",
        "withheld",
        "weaker",
        "method",
        *ALL_DECLARED,
        "s_hat",
        "omega",
        "mc",
        "vp",
        "vp_in_usable_bands",
        "vp_singletons",
        "largest_usable_kappa",
        "rows_closed",
        "rows_opened",
    }
    assert (first["calibration"], first["alpha"], first["delta"], first["kappa"]) == (2, "0.2", 1.0, 10)
    assert first["omega"] == first["s_hat"] > 0
    assert HELD_OUT_ROWS * 0.8 < first["mc"] + first["vp"] < HELD_OUT_ROWS
    assert 0 < first["vp_singletons"] <= first["vp_in_usable_bands"] < first["vp"]
    # Nothing changed since snapshot 1, so none of its rows are written again.
    assert (first["rows_closed"], first["rows_opened"]) == (0, 0)


def test_calibrate_with_every_option(own_calibrated: Program) -> None:
    outcome = own_calibrated(
        "calibrate",
        NAME,
        "--method",
        "venn-admit",
        "--alpha",
        "0.25",
        "--delta",
        "inf",
        "--kappa",
        1,
        "--thresholds",
        "0.75,0.8,1",
        "--json",
    )
    assert (outcome.result["delta"], outcome.result["omega"]) == ("inf", "inf")
    assert outcome.result["alpha"] == "0.25"


def test_fit_and_calibrate_tell_people(own_ingested: Program) -> None:
    fitted = own_ingested("fit", NAME)
    assert (fitted.code, fitted.stdout.count("\n")) == (0, 2)
    assert fitted.stdout.startswith("KNN and network differ on ")
    calibrated = own_ingested("calibrate", NAME, *CALIBRATION)
    assert calibrated.code == 0
    assert "Calibration 1 is in use: alpha 0.2, kappa 10, omega " in calibrated.stdout
    assert "warning" not in calibrated.stderr


def test_k_is_kept(own_calibrated: Program) -> None:
    """The default bins of q are 0 to K, so K is the last edge there can be."""
    for edge, code in ((K, 0), (K + 1, 2)):
        assert (
            own_calibrated("calibrate", NAME, "--method", "venn-admit", "--kappa", 1, "--q-bins", f"0,{edge}").code
            == code
        )
