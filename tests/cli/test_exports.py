"""`export`: every kind of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli import samples
from tests.cli.databases import CALIBRATION
from tests.cli.program import Program, nothing_stored
from tests.cli.samples import CLASS_COUNT, HELD_OUT_ROWS, NAME, TRAIN_ROWS, K
from tests.running import ADDED_TO_ADMIT, column
from venn_admit.files.output import exports

KNN_PARAMETERS = ["beta", "gamma", "eta", "eta_loc", "reliability"]


def export(program: Program, what: str, out: Path, *options: object) -> pa.Table:
    """Export, and see that nothing changes in the database, and that what is told is right."""
    with nothing_stored(program):
        result = program("export", NAME, "--what", what, "--out", out, "--json", *options).result
    table = pq.read_table(out)
    assert result == {"rows": table.num_rows, "forgotten": 0, "out": str(out)}
    assert table.schema.equals(getattr(exports, f"{what.upper()}_SCHEMA"))
    return table


def export_parameters(program: Program, out: Path, *options: object) -> dict[str, Any]:
    with nothing_stored(program):
        result = program("export", NAME, "--what", "parameters", "--out", out, "--json", *options).result
    assert result == {"rows": 1, "forgotten": 0, "out": str(out)}
    parameters = json.loads(out.read_text())
    assert isinstance(parameters, dict)
    return parameters


def test_exemplars(calibrated: Program, tmp_path: Path) -> None:
    table = export(calibrated, "exemplars", tmp_path / "out.parquet")
    train, held_out = samples.train(), samples.held_out()
    for name, field in (("external_id", "external_id"), ("label", "label")):
        assert table[name].to_pylist() == [*train[field], *held_out[field]]
    logits = np.concatenate([train["logits"], held_out["logits"]])
    assert table["predicted_by_network"].to_pylist() == logits.argmax(axis=1).tolist()
    splits = table["split"].to_pylist()
    assert set(splits[:TRAIN_ROWS]) == {"train"}
    shares = Counter(splits[TRAIN_ROWS:])
    assert shares["knn"] == pytest.approx(0.1 * HELD_OUT_ROWS, rel=0.3)
    assert shares["mc"] == pytest.approx(0.45 * HELD_OUT_ROWS, rel=0.15)
    assert shares["vp"] == HELD_OUT_ROWS - shares["knn"] - shares["mc"]


def test_neighbours(calibrated: Program, tmp_path: Path) -> None:
    table = export(calibrated, "neighbours", tmp_path / "out.parquet")
    train, held_out = samples.train()["vector"].astype(np.float64), samples.held_out()["vector"].astype(np.float64)
    distances = np.sqrt(((held_out[:, None, :] - train) ** 2).sum(axis=2))  # (n, N)
    nearest = distances.argsort(axis=1, kind="stable")[:, :K]
    assert table["external_id"].to_pylist() == samples.held_out()["external_id"].tolist()
    assert table["neighbour_ids"].to_pylist() == samples.train()["external_id"][nearest].tolist()
    np.testing.assert_allclose(column(table, "distances"), np.take_along_axis(distances, nearest, axis=1), rtol=1e-12)


def test_approximations(calibrated: Program, tmp_path: Path) -> None:
    table = export(calibrated, "approximations", tmp_path / "out.parquet")
    neighbours = export(calibrated, "neighbours", tmp_path / "neighbours.parquet")
    assert table["external_id"].to_pylist() == samples.held_out()["external_id"].tolist()
    assert set(table["split"].to_pylist()) == {"knn", "mc", "vp"}
    assert column(table, "logits").shape == (HELD_OUT_ROWS, CLASS_COUNT)
    assert column(table, "predicted").tolist() == column(table, "logits").argmax(axis=1).tolist()
    assert column(table, "d").tolist() == column(neighbours, "distances")[:, 0].tolist()
    assert set(column(table, "q")) <= set(range(K + 1))


def test_calibration(calibrated: Program, tmp_path: Path) -> None:
    table = export(calibrated, "calibration", tmp_path / "out.parquet")
    approximations = export(calibrated, "approximations", tmp_path / "approximations.parquet")
    used = approximations.filter(pa.compute.not_equal(approximations["split"], "knn"))
    for name in ("external_id", "split", "predicted", "q", "d"):
        assert table[name].equals(used[name]), name
    powers = np.exp(column(used, "logits"))
    of_label = np.take_along_axis(powers, column(table, "label")[:, None], axis=1)[:, 0] / powers.sum(axis=1)
    np.testing.assert_allclose(column(table, "score"), 1 - of_label, atol=1e-12)
    for row in table.select(["split", "set", "predicted"]).to_pylist():
        assert (row["set"] is None) == (row["split"] == "mc")
        assert row["set"] is None or row["predicted"] in row["set"]


def test_an_older_calibration(own_calibrated: Program, tmp_path: Path) -> None:
    before = export(own_calibrated, "calibration", tmp_path / "before.parquet")
    parameters = export_parameters(own_calibrated, tmp_path / "before.json")
    assert own_calibrated("calibrate", NAME, "--method", "venn-admit", "--alpha", "0.05", "--kappa", 30).code == 0
    assert export(own_calibrated, "calibration", tmp_path / "current.parquet") != before
    assert export_parameters(own_calibrated, tmp_path / "current.json") != parameters
    older = ("--calibration", 1)
    assert export(own_calibrated, "calibration", tmp_path / "older.parquet", *older) == before
    assert export_parameters(own_calibrated, tmp_path / "older.json", *older) == parameters


def test_parameters(calibrated: Program, tmp_path: Path) -> None:
    parameters = export_parameters(calibrated, tmp_path / "out.json")
    assert list(parameters) == [
        *KNN_PARAMETERS,
        "s_hat",
        "omega",
        "alpha",
        "delta",
        "kappa",
        *ADDED_TO_ADMIT,
        "thresholds",
        "q_bins",
    ]
    assert len(parameters["beta"]) == len(parameters["gamma"]) == CLASS_COUNT
    assert min(parameters[field] for field in ("eta", "eta_loc", "s_hat", "omega")) > 0
    expected = {"alpha": 0.2, "delta": 1.0, "kappa": 10, "thresholds": [0.8] * CLASS_COUNT, "q_bins": [0, 1]}
    assert parameters | expected == parameters
    assert parameters["reliability"]["median_d"] > 0
    for model in parameters["reliability"]["models"].values():
        assert list(model) == ["mean", "sd", "coefficients", "intercept", "points"]


def test_an_infinite_delta_is_text(own_calibrated: Program, tmp_path: Path) -> None:
    assert own_calibrated("calibrate", NAME, *CALIBRATION, "--delta", "inf").code == 0
    parameters = export_parameters(own_calibrated, tmp_path / "out.json")
    assert (parameters["delta"], parameters["omega"]) == ("inf", "inf")


def test_parameters_fed_back_give_the_same_approximations(
    calibrated: Program, own_ingested: Program, tmp_path: Path
) -> None:
    parameters = export_parameters(calibrated, tmp_path / "given.json")
    assert own_ingested("fit", NAME, "--parameters", tmp_path / "given.json").code == 0
    assert list(export_parameters(own_ingested, tmp_path / "taken.json")) == KNN_PARAMETERS
    assert own_ingested("calibrate", NAME, *CALIBRATION).code == 0
    assert export_parameters(own_ingested, tmp_path / "again.json") == parameters
    for what in ("approximations", "calibration"):
        given, again = (export(program, what, tmp_path / f"{what}.parquet") for program in (calibrated, own_ingested))
        assert given == again


def test_what_is_not_there_yet_is_an_empty_table(ingested: Program, tmp_path: Path) -> None:
    for what in ("neighbours", "approximations"):
        assert export(ingested, what, tmp_path / f"{what}.parquet").num_rows == 0


def test_export_tells_people(calibrated: Program, tmp_path: Path) -> None:
    out = tmp_path / "[red]:+1:.parquet"
    outcome = calibrated("export", NAME, "--what", "exemplars", "--out", out)
    assert (outcome.code, outcome.stdout) == (0, f"Wrote exemplars to {out}: 1,800 rows.\n")
