"""Two networks on the bundled reviews: the bundled one, and a logistic regression on a few of its dimensions."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.running import EXAMPLES, Arrays, Bench
from venn_admit.core.types import Float32Array
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, settings_for
from venn_admit.flows.cascades.certify import cascade_settings_for, request_certificate
from venn_admit.flows.cascades.manage import show
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.create import create
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit_client.records.cascades import CascadeReport

CLASSES = ("negative", "positive")
DIMENSIONS = 16
HELD_OUT = 4000
STAGES = (("small", 1.0), ("large", 20.0), ("person", 300.0))


@dataclass(frozen=True)
class Reviews:
    """The logits of both networks by name, and ids and labels, of held-out reviews and of those to score."""

    held_out: dict[str, Arrays]
    scored: dict[str, Arrays]


def reviews() -> Reviews:
    parts = {name: dict(np.load(EXAMPLES / f"{name}.npz")) for name in ("train", "valid", "test")}
    weights = _fit(_inputs(parts["train"]["r"]), parts["train"]["y"].astype(np.float64))

    def both(part: Arrays, count: int) -> dict[str, Arrays]:
        rows = {"id": part["id"][:count], "y": part["y"][:count].astype(np.int64)}
        small = (_inputs(part["r"][:count]) @ weights / 2).astype(np.float32)
        logits: dict[str, Float32Array] = {"small": np.stack([-small, small], axis=1), "large": part["f"][:count]}
        return {name: {**rows, "f": of} for name, of in logits.items()}

    return Reviews(both(parts["valid"], HELD_OUT), both(parts["test"], len(parts["test"]["y"])))


def _inputs(vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.float64]:
    return np.hstack([vectors[:, :DIMENSIONS].astype(np.float64), np.ones((len(vectors), 1))])


def _fit(inputs: npt.NDArray[np.float64], label: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Newton's method for a ridge logistic regression."""
    weights = np.zeros(inputs.shape[1])
    for _ in range(30):
        share = 1 / (1 + np.exp(-inputs @ weights))
        curvature = (inputs * (share * (1 - share))[:, np.newaxis]).T @ inputs + 0.01 * np.eye(len(weights))
        weights -= np.linalg.solve(curvature, inputs.T @ (share - label) + 0.01 * weights)
    return weights


def prepare(bench: Bench, held_out: dict[str, Arrays], names: tuple[str, ...] = ("small", "large")) -> None:
    """Make classifiers with logits only, and calibrate them."""
    for name in names:
        create(bench.engine, name, CLASSES, seed=0, logits_only=True)
        bench.ingest(name, bench.write(f"{name}.npz", held_out[name]), "held-out")
        calibrate(bench, name)


def calibrate(bench: Bench, name: str, method: str = "venn-abers", **given: object) -> None:
    known = find(bench.engine, name)
    calibrate_on_stored(bench.workspace(), known, settings_for(known, method, given), reason="test")


def certify(bench: Bench, name: str, **given: object) -> CascadeReport:
    """Certify a cascade in a job, whose chunk is computed here; JobError if it fails."""
    submitted = request_certificate(bench.workspace(), name, cascade_settings_for(given))
    compute_job(bench.engine, bench.runner(), submitted.job_id)
    return show(bench.engine, name)
