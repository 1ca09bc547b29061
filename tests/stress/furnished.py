"""A database in which every example of the OpenAPI document finds what it names."""

from pathlib import Path

import numpy as np
from sqlalchemy import text

from tests.cli.program import Program
from tests.files.samples import Columns, write
from venn_admit.store.database.engine import create_engine, transaction

NAME, CLASSES, DIMENSION, K = "reviews", ("negative", "positive"), 3, 25
LOGITS_ONLY = "logits"
# Nothing else names them, so that they can be removed.
SPARE = tuple(f"spare-{number}" for number in range(1, 6))
CALIBRATION, DECISION, JOB = 7, 4711, 12


def furnish(program: Program, folder: Path) -> None:
    """Make two classifiers, one with logits only; calibrations, one of them certified; decisions, labels and jobs.

    And classifiers to spare, with exemplars.
    """
    run(program, "create", NAME, "--classes", ",".join(CLASSES), "--dim", DIMENSION, "--k", K)
    run(program, "ingest", NAME, write(folder / "train.npz", reviews("train", 200, seed=1)), "--split", "train")
    run(program, "ingest", NAME, write(folder / "rest.npz", reviews("held-out", 800, seed=2)), "--split", "held-out")
    run(program, "fit", NAME)
    _number_from(program, "calibration", CALIBRATION)
    run(program, "calibrate", NAME, "--method", "venn-admit", "--alpha", "0.2", "--kappa", 10, "--q-bins", "0,1")
    _number_from(program, "decision", DECISION)
    _number_from(program, "job", JOB)
    scored = reviews("review", 50, seed=3)
    run(program, "score", NAME, write(folder / "new.npz", scored), "--out", folder / "scores.parquet")
    run(program, "calibrate", NAME, "--method", "venn-abers", "--alpha", "0.2", "--certify", "predicted")
    run(program, "create", LOGITS_ONLY, "--classes", ",".join(CLASSES), "--logits-only")
    without_vectors = {name: values for name, values in reviews("only", 400, seed=4).items() if name != "vector"}
    run(program, "ingest", LOGITS_ONLY, write(folder / "only.npz", without_vectors), "--split", "held-out")
    run(program, "calibrate", LOGITS_ONLY, "--method", "venn-abers", "--promise", "pointwise", "--alpha", "0.2")
    few = write(folder / "few.npz", reviews("few", 20, seed=5))
    for name in SPARE:
        run(program, "create", name, "--classes", ",".join(CLASSES), "--dim", DIMENSION)
        run(program, "ingest", name, few, "--split", "train")


def reviews(prefix: str, count: int, seed: int) -> Columns:
    """Return points around two centres, which the network mostly tells apart."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(len(CLASSES), size=count)
    vectors = (2.0 * labels[:, None] + generator.normal(size=(count, DIMENSION))).astype(np.float32)
    margin = vectors.mean(axis=1) - 1.0
    return {
        "external_id": np.array([f"{prefix}-{row}" for row in range(1, count + 1)]),
        "vector": vectors,
        "logits": np.stack([-margin, margin], axis=1),
        "label": labels,
    }


def run(program: Program, *arguments: object) -> None:
    """Run a command, which must succeed."""
    outcome = program(*arguments)
    assert outcome.code == 0, outcome


def _number_from(program: Program, table: str, first: int) -> None:
    """Have the next row of a table be the one that the examples name."""
    engine = create_engine(program.url)
    with transaction(engine) as connection:
        connection.execute(
            text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :first, FALSE)"), {"table": table, "first": first}
        )
    engine.dispose()
