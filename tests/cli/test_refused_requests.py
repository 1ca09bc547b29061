"""Requests that cannot be met: what is asked for is out of range, or what it needs is not there."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli import samples
from tests.cli.program import Program, check_refusal, contents, nothing_stored
from tests.cli.samples import CLASS_NAMES, DIMENSION, NAME, K
from tests.files.samples import Columns
from venn_admit.errors import ConflictError, InvalidInputError, NotFoundError, NotReadyError

INVALID, NOT_FOUND, NOT_READY = InvalidInputError.exit_code, NotFoundError.exit_code, NotReadyError.exit_code

PARAMETERS = '{"beta": [0, 0, 0], "gamma": [1, 1, 1], "eta": 1, "eta_loc": 1}'


def create(program: Program) -> None:
    classes = ",".join(CLASS_NAMES)
    assert program("create", NAME, "--classes", classes, "--dim", DIMENSION, "--k", K).code == 0


def ingest(program: Program, folder: Path, split: str, columns: Columns) -> None:
    path = samples.save(folder, f"{split}.npz", columns)
    assert program("ingest", NAME, path, "--split", split).code == 0


def adopt(program: Program, folder: Path, parameters: str = PARAMETERS) -> None:
    path = folder / "parameters.json"
    path.write_text(parameters)
    assert program("fit", NAME, "--parameters", path).code == 0


def of_class(columns: Columns, label: int) -> Columns:
    return samples.take(columns, np.flatnonzero(columns["label"] == label).tolist())


@pytest.mark.parametrize(
    "verb",
    [
        ("ingest", "nobody", "{files}/train.npz", "--split", "train"),
        ("fit", "nobody"),
        ("calibrate", "nobody"),
        ("score", "nobody", "{files}/scored.npz", "--out", "{out}"),
        ("decide", "nobody", "{files}/scored.npz"),
        ("index", "show", "nobody"),
        ("export", "nobody", "--what", "parameters", "--out", "{out}.json"),
        *(
            ("export", "nobody", "--what", what, "--out", "{out}")
            for what in ("exemplars", "neighbours", "approximations", "calibration")
        ),
    ],
)
def test_an_unknown_classifier(calibrated: Program, files: Path, tmp_path: Path, verb: tuple[str, ...]) -> None:
    out = tmp_path / "out.csv"
    with nothing_stored(calibrated):
        outcome = calibrated(*(part.format(files=files, out=out) for part in verb))
        check_refusal(outcome, NOT_FOUND, f"no classifier is named 'nobody'; known: {NAME}")
    assert not list(tmp_path.iterdir())


def test_an_unknown_classifier_where_there_is_none(program: Program) -> None:
    check_refusal(program("fit", NAME), NOT_FOUND, "known: none yet; create one; run `venn-admit create NAME")


def test_an_unknown_split(calibrated: Program, files: Path) -> None:
    with nothing_stored(calibrated):
        outcome = calibrated("ingest", NAME, files / "scored.npz", "--split", "scored")
        check_refusal(outcome, INVALID, "unknown split 'scored': expected train, held-out, knn, mc or vp")


def test_a_classifier_that_cannot_be(ingested: Program) -> None:
    with nothing_stored(ingested):
        refused = ingested("create", "other", "--classes", "red,,blue", "--dim", DIMENSION)
        check_refusal(refused, INVALID, "classes: expected a name for each class, got an empty one")
        outcome = ingested("create", NAME, "--classes", "red,green", "--dim", DIMENSION)
        check_refusal(outcome, ConflictError.exit_code, f"a classifier named '{NAME}' exists already")


def test_calibrate_and_score_before_fit(ingested: Program, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.parquet"
    with nothing_stored(ingested):
        check_refusal(
            ingested("calibrate", NAME),
            NOT_READY,
            f"has no KNN parameters yet: fit it first; run `venn-admit fit {NAME}`$",
        )
        check_refusal(
            ingested("score", NAME, files / "scored.npz", "--out", out),
            NOT_READY,
            f"has no calibration yet: calibrate it first; run `venn-admit calibrate {NAME}`$",
        )
        for what, missing in (("parameters", "KNN parameters"), ("calibration", "calibration")):
            place = tmp_path / "parameters.json" if what == "parameters" else out
            outcome = ingested("export", NAME, "--what", what, "--out", place)
            check_refusal(outcome, NOT_READY, f"has no {missing} yet")
    assert not list(tmp_path.iterdir())


def test_fit_with_fewer_than_k_training_exemplars(program: Program, tmp_path: Path) -> None:
    create(program)
    ingest(program, tmp_path, "train", samples.take(samples.train(), slice(K - 1)))
    ingest(program, tmp_path, "held-out", samples.held_out())
    with nothing_stored(program):
        check_refusal(
            program("fit", NAME),
            NOT_READY,
            f"has {K - 1} training exemplars, but its KNN needs at least K = {K}: ingest more; "
            f"run `venn-admit ingest {NAME} FILE --split train`$",
        )
    adopt(program, tmp_path)
    with nothing_stored(program):
        check_refusal(program("calibrate", NAME), NOT_READY, f"its KNN needs at least K = {K}")


def test_fit_with_one_class_in_training(program: Program, tmp_path: Path) -> None:
    create(program)
    ingest(program, tmp_path, "train", of_class(samples.train(), 2))
    ingest(program, tmp_path, "held-out", samples.held_out())
    with nothing_stored(program):
        check_refusal(
            program("fit", NAME),
            NOT_READY,
            f"all training exemplars of '{NAME}' have label 2, expected two classes or more",
        )


def at_distance_one(prefix: str, count: int, train: Columns) -> Columns:
    """Return, for training exemplars that are far from each other, points exactly 1 away from one each."""
    columns = samples.take(train, [row % len(train["label"]) for row in range(count)])
    columns["vector"] = columns["vector"] + np.eye(DIMENSION, dtype=np.float32)[-1]
    # No two with the same logits, or they would be copies.
    columns["logits"] = columns["logits"] + np.float32(0.001) * np.arange(count, dtype=np.float32)[:, np.newaxis]
    columns["logits"][:, 0] += np.float32(len(prefix)) * np.float32(1e-4) * (prefix == "vp")
    return columns | {"external_id": np.array([f"{prefix}-{row}" for row in range(count)])}


def test_all_points_at_the_same_distance(program: Program, tmp_path: Path) -> None:
    train = samples.take(samples.train(), slice(60))
    train["vector"] = np.outer(np.arange(60), 100 * np.eye(DIMENSION)[0]).astype(np.float32)
    create(program)
    ingest(program, tmp_path, "train", train)
    for split in ("mc", "vp"):
        ingest(program, tmp_path, split, at_distance_one(split, 120, train))
    adopt(program, tmp_path)

    before = contents(program.url)
    check_refusal(
        program("calibrate", NAME, "--method", "venn-admit"),
        NOT_READY,
        "s_hat is 0: all points of mc .* lie at the same distance",
    )
    after = contents(program.url)

    # To know the distances, and that all are known, is right and useful, and was worth a job; of a calibration there
    # is no trace.
    found = {"job", "job_row", "job_chunk", "neighbours", "approximation", "point_change", "classifier"}
    assert {table for table in after if after[table] != before[table]} == found
    assert (
        program("calibrate", NAME, "--method", "venn-admit", "--delta", "inf", "--kappa", 1).code == 0
    )  # as the message advises


@pytest.mark.parametrize(
    ("option", "saying"),
    [
        (("--alpha=-0.1",), "alpha must lie strictly between 0 and 1; got -0.1"),
        (("--method", "venn-admit", "--delta", "nan"), "delta must be greater than 0"),
        (("--thresholds", "0.9,,0.9"), "thresholds: expected a decimal number with at most 20 places, got ''"),
        (("--q-bins", "0,x"), "q-bins: expected whole numbers, got 'x'"),
    ],
)
def test_a_setting_out_of_range(calibrated: Program, option: tuple[str, ...], saying: str) -> None:
    with nothing_stored(calibrated):
        check_refusal(calibrated("calibrate", NAME, *option), INVALID, saying)


def test_an_unknown_calibration(calibrated: Program, files: Path, tmp_path: Path) -> None:
    with nothing_stored(calibrated):
        for *verb, out in (
            ("score", NAME, files / "scored.npz", "out.parquet"),
            ("export", NAME, "--what", "calibration", "out.parquet"),
            ("export", NAME, "--what", "parameters", "out.json"),
        ):
            outcome = calibrated(*verb, "--out", tmp_path / out, "--calibration", 77)
            check_refusal(outcome, NOT_FOUND, f"classifier '{NAME}' has no calibration 77")
    assert not list(tmp_path.iterdir())


def test_an_unknown_kind_of_export(calibrated: Program, tmp_path: Path) -> None:
    outcome = calibrated("export", NAME, "--what", "everything", "--out", tmp_path / "out")
    check_refusal(
        outcome,
        INVALID,
        "what: expected exemplars, neighbours, approximations, calibration, parameters, policy, unlabelled, got 'every",
    )
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written(calibrated: Program, files: Path, tmp_path: Path) -> None:
    with nothing_stored(calibrated):
        (tmp_path / "folder.csv").mkdir()
        (tmp_path / "folder.json").mkdir()
        for *verb, ending in (
            ("score", NAME, files / "scored.npz", "csv"),
            ("export", NAME, "--what", "exemplars", "csv"),
            ("export", NAME, "--what", "parameters", "json"),
        ):
            for place in ("no folder/out", "folder", 300 * "x"):
                out = tmp_path / f"{place}.{ending}"
                check_refusal(calibrated(*verb, "--out", out), INVALID, f"{out}: expected ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "folder.json"]


def test_parameters_that_are_none(ingested: Program, tmp_path: Path) -> None:
    path = tmp_path / "parameters.json"
    path.write_text("[]")
    with nothing_stored(ingested):
        outcome = ingested("fit", NAME, "--parameters", path)
        check_refusal(outcome, INVALID, "parameters.json: expected an object with beta, gamma, eta and eta_loc")
