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
from venn_admit.core.calibrators.certified.certificate import from_document
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.crossfit import LabelledCells, certify_cells
from venn_admit.core.calibrators.venn_abers.scores import network_score

CLASSES, SEED = 2, 3


def cells(rows: list[dict[str, Any]], split: str, documents: dict[str, str]) -> LabelledCells:
    own = [row for row in rows if row["split"] == split]
    columns = [np.array([row[name] for row in own]) for name in ("predicted", "q", "score")]
    return LabelledCells(
        CellPoints(*columns), np.array([row["label"] for row in own]), [documents[row["external_id"]] for row in own]
    )


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
        documents = dict(zip(arrays["id"].astype(str).tolist(), arrays["doc"].astype(str).tolist(), strict=True))
    mc, vp = (cells(rows, split, documents) for split in ("mc", "vp"))
    settings = make_venn_abers_settings(
        CLASSES, 25, certify=["predicted", "true"], confidence=Decimal("0.9"), score="network"
    )
    index = VennAbersIndex(mc.points, mc.points.predicted == mc.label, class_count=CLASSES)
    assert settings.certification is not None
    assert certify_cells(index, mc, vp, settings, settings.certification, seed=SEED) == certificate
    assert certificate.policy is not None

    with np.load(EXAMPLES / "test.npz") as arrays:
        logits, label = arrays["f"].astype(np.float32), arrays["y"]
    predicted = logits.argmax(axis=1)
    none = np.zeros(len(label), dtype=np.int64)
    lower = index.bounds(CellPoints(predicted, none, network_score(logits))).lower
    admitted, right = admit(lower, predicted, certificate.policy), predicted == label
    assert sum(summary["admitted"].values()) == admitted.sum()
    table = pq.read_table(scores).to_pydict()
    decided = np.array([decision is not None for decision in table["decision"]])
    assert decided.tolist() == admitted.tolist()
    assert table["lower"] == lower.tolist()
    of_rows = np.array(table["predicted"]) == label
    assert shares(decided, of_rows, np.array(table["predicted"]), label) == shares(admitted, right, predicted, label)
    assert admitted.mean() > 0.75
    assert min(shares(admitted, right, predicted, label)) >= 0.89
