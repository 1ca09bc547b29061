"""A certified calibration of the bundled reviews on the command line, beside what the core computes from its export."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest

from tests.cli.program import Program
from tests.running import EXAMPLES, REVIEW_ETA_LOC, REVIEW_PARAMETERS
from venn_admit.core.calibrators.certified.document import from_document
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells, certify_cells
from venn_admit.core.calibrators.venn_abers.scores import network_score

CLASSES, SEED = 2, 3


def cells(rows: list[dict[str, Any]], held_out: dict[str, tuple[str, int, npt.NDArray[np.float32]]]) -> LabelledCells:
    """The points of the export, which are evidence, and the others of the file, which propose."""
    evidence = {row["external_id"]: row for row in rows}
    every = [*evidence, *(name for name in held_out if name not in evidence)]
    logits = np.array([held_out[name][2] for name in every])
    points = CellPoints(logits.argmax(axis=1), np.zeros(len(every), dtype=np.int64), network_score(logits))
    assert points.score[: len(evidence)].tolist() == [row["score"] for row in rows]
    return LabelledCells(points, np.array([held_out[name][1] for name in every]), [held_out[name][0] for name in every])


def shares(admitted: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_], *classes: npt.NDArray[Any]) -> list[float]:
    return [float(right[admitted & (of == number)].mean()) for of in classes for number in range(CLASSES)]


@pytest.mark.slow
def test_admitted_and_right_are_as_the_core_computes(program: Program, tmp_path: Path) -> None:
    parameters = tmp_path / "parameters.json"
    parameters.write_text(
        json.dumps(
            {
                "beta": REVIEW_PARAMETERS.beta.tolist(),
                "gamma": REVIEW_PARAMETERS.gamma.tolist(),
                "eta": REVIEW_PARAMETERS.eta,
                "eta_loc": REVIEW_ETA_LOC,
            }
        )
    )
    for verb in (
        ("create", "reviews", "--classes", "negative,positive", "--dim", 128, "--seed", SEED),
        ("ingest", "reviews", EXAMPLES / "train.npz", "--split", "train"),
        ("ingest", "reviews", EXAMPLES / "valid.npz", "--split", "held-out"),
        ("fit", "reviews", "--parameters", parameters),
    ):
        assert program(*verb).code == 0
    asked = ("--method", "venn-abers", "--score", "network", "--certify", "predicted,true", "--confidence", "0.9")
    certificate = from_document(program("calibrate", "reviews", *asked, "--json").result["certificate"])
    points, scores = tmp_path / "points.parquet", tmp_path / "scores.parquet"
    assert program("export", "reviews", "--what", "calibration", "--out", points).code == 0
    summary = program("score", "reviews", EXAMPLES / "test.npz", "--out", scores, "--json").result

    rows = pq.read_table(points).to_pylist()
    with np.load(EXAMPLES / "valid.npz") as arrays:
        columns = (arrays["doc"].astype(str).tolist(), arrays["y"].tolist(), arrays["f"].astype(np.float32))
        held_out = dict(zip(arrays["id"].astype(str).tolist(), zip(*columns, strict=True), strict=True))
    every = cells(rows, held_out)
    settings = make_venn_abers_settings(
        CLASSES, 25, certify=["predicted", "true"], confidence=Decimal("0.9"), score="network"
    )
    assert settings.certification is not None
    proposing = np.arange(len(every.keys)) >= len(rows)
    assert certify_cells(every, proposing, settings, settings.certification) == certificate
    assert certificate.policy is not None

    with np.load(EXAMPLES / "test.npz") as arrays:
        logits, label = arrays["f"].astype(np.float32), arrays["y"]
    predicted = logits.argmax(axis=1)
    score = network_score(logits)
    admitted, right = admit(score, predicted, certificate.policy), predicted == label
    assert sum(summary["admitted"].values()) == admitted.sum()
    table = pq.read_table(scores).to_pydict()
    decided = np.array([decision is not None for decision in table["decision"]])
    assert decided.tolist() == admitted.tolist()
    assert table["score"] == score.tolist()
    of_rows = np.array(table["predicted"]) == label
    assert shares(decided, of_rows, np.array(table["predicted"]), label) == shares(admitted, right, predicted, label)
    assert admitted.mean() > 0.75
    assert min(shares(admitted, right, predicted, label)) >= 0.89
