"""What a certificate asks of the data, what becomes of it on odd data, and certification again as labels arrive."""

from typing import Any

import numpy as np
import pytest

from tests.flows.recalibration import EDGE, Due, age, give
from tests.running import Arrays, Bench, certificate_of
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel
from venn_admit.core.reasons import Reason
from venn_admit.core.types import KnnParameters
from venn_admit.errors import Code, NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.reports.report import report

NAME, CLASSES, DIMENSION, K = "shapes", 3, 2, 4
BOTH = ("predicted", "true")
# A model of no class: the score is then that of the network.
NO_MODEL = ReliabilityModel(median_distance=1.0, models={})


def points(prefix: str, labels: np.ndarray[Any, Any], *, right: bool = True, documents: int | None = None) -> Arrays:
    """Points around their classes, all of them predicted right or wrong, in a number of documents or one each."""
    rng, n = np.random.default_rng(list(prefix.encode())), len(labels)
    predicted = labels if right else (labels + 1) % CLASSES
    found: Arrays = {
        "id": np.array([f"{prefix}-{row}" for row in range(n)]),
        "r": (rng.normal(size=(n, DIMENSION)) + 3 * labels[:, None]).astype(np.float32),
        "f": (rng.random((n, CLASSES)) + 3 * np.eye(CLASSES)[predicted]).astype(np.float32),
        "y": labels,
    }
    if documents is not None:
        found["doc"] = np.array([f"{prefix}-doc-{row % documents}" for row in range(n)])
    return found


def evenly(n: int, classes: int = CLASSES) -> np.ndarray[Any, Any]:
    return np.arange(n) % classes


@pytest.fixture
def shapes(bench: Bench) -> Bench:
    """The classifier `shapes` with training data and parameters; mc and vp are still empty."""
    bench.create(NAME, dimension=DIMENSION, class_count=CLASSES, neighbour_count=K)
    bench.ingest(NAME, bench.write("train.npz", points("train", evenly(30))), "train")
    bench.adopt(NAME, KnnParameters(np.zeros(CLASSES), np.ones(CLASSES), 1.0), 1.0, NO_MODEL)
    return bench


def hold(bench: Bench, *, mc: Arrays, vp: Arrays) -> None:
    for split, arrays in (("mc", mc), ("vp", vp)):
        bench.ingest(NAME, bench.write(f"{split}.npz", arrays), split)


def assert_refused(bench: Bench, message: str, code: Code, **asked: Any) -> None:
    with pytest.raises(NotReadyError, match=message) as refusal:
        bench.calibrate_abers(NAME, score="network", **asked)
    assert refusal.value.code is code
    for table in ("calibrator", "calibration", "calibration_point", "certificate", "score_choice"):
        assert bench.value(f"SELECT count(*) FROM {table}") == 0


def test_a_true_class_without_points_is_named(shapes: Bench) -> None:
    hold(shapes, mc=points("mc", evenly(300, 2)), vp=points("vp", evenly(300, 2)))
    message = "splits mc and vp of 'shapes' hold no exemplar of class 'class 2': a certificate for true classes needs"
    assert_refused(shapes, message, Code.NOT_CERTIFIABLE, certify=BOTH)


def test_a_predicted_class_without_points_is_never_admitted(shapes: Bench) -> None:
    hold(shapes, mc=points("mc", evenly(300, 2)), vp=points("vp", evenly(300, 2)))
    policy = certificate_of(shapes.calibrate_abers(NAME, score="network", certify=("predicted",))).policy
    assert policy is not None
    assert [threshold is None for threshold in policy.thresholds] == [False, False, True]


def test_too_few_documents_are_refused(shapes: Bench) -> None:
    hold(shapes, mc=points("mc", evenly(60), documents=1), vp=points("vp", evenly(60), documents=2))
    message = (
        r"the held-out data of 'shapes' hold \d documents? (to propose policies|as evidence): expected at least two"
    )
    assert_refused(shapes, message, Code.NOT_CERTIFIABLE, certify=("predicted",))


def test_an_empty_vp_is_refused(shapes: Bench) -> None:
    shapes.ingest(NAME, shapes.write("mc.npz", points("mc", evenly(60))), "mc")
    assert_refused(shapes, "split vp of 'shapes' holds no labelled exemplar", Code.TOO_FEW_CLASSES, certify=BOTH)


@pytest.mark.parametrize("size", [1, 3])
def test_all_right_is_certified(shapes: Bench, size: int) -> None:
    n = 900
    hold(shapes, mc=points("mc", evenly(n), documents=n // size), vp=points("vp", evenly(n), documents=n // size))
    certificate = certificate_of(shapes.calibrate_abers(NAME, score="network", certify=BOTH))
    assert certificate.single_points == (size == 1)
    assert certificate.points + certificate.proposing == 2 * n
    assert certificate.policy is not None
    assert {result.share for result in certificate.classes} == {1.0}


def test_all_wrong_is_not_certified_and_no_number_of_labels_would_do(shapes: Bench) -> None:
    wrong = {name: points(name, evenly(300), right=False) for name in ("mc", "vp")}
    hold(shapes, mc=wrong["mc"], vp=wrong["vp"])
    made = shapes.calibrate_abers(NAME, score="network", certify=BOTH)
    assert (certificate_of(made).policy, certificate_of(made).labels_needed) == (None, None)
    assert made.is_certified is False
    assert shapes.value("SELECT thresholds IS NULL AND documents_needed IS NULL FROM certificate")
    scores = shapes.score(NAME, shapes.write("scored.npz", points("scored", evenly(9))), weighted=None)
    assert scores.column("reason").tolist() == ["policy not certified"] * 9


def test_one_class_wrong_is_never_admitted(shapes: Bench) -> None:
    parts: dict[str, Arrays] = {}
    for name in ("mc", "vp"):
        right, wrong = points(name, evenly(600, 2)), points(f"{name}-wrong", np.full(300, 1), right=False)
        parts[name] = {key: np.concatenate([right[key], wrong[key]]) for key in right}
    hold(shapes, mc=parts["mc"], vp=parts["vp"])
    policy = certificate_of(shapes.calibrate_abers(NAME, score="network", certify=("predicted",))).policy
    assert policy is not None
    assert policy.thresholds[2] is None
    scores = shapes.score(NAME, shapes.write("scored.npz", points("scored", np.full(5, 1), right=False)), weighted=None)
    assert scores.column("predicted").tolist() == [2] * 5
    assert scores.column("reason").tolist() == ["class not certified"] * 5
    made = report(shapes.workspace(), NAME, calibration_id=None)
    counts = made.part.rejected_of_reference(made)
    assert counts[Reason.CLASS_NOT_CERTIFIED] == 300
    assert sum(counts.values()) + made.part.admitted_of_reference == made.snapshot.mc_count


def test_a_reliability_without_a_model_certifies_as_the_network_does(shapes: Bench) -> None:
    """As it is fitted on fewer than 50 points of knn."""
    hold(shapes, mc=points("mc", evenly(300)), vp=points("vp", evenly(300)))
    network, reliability = (
        certificate_of(shapes.calibrate_abers(NAME, score=score, certify=BOTH)) for score in ("network", "reliability")
    )
    assert network == reliability
    assert certificate_of(shapes.calibrate_abers(NAME, score="auto", certify=BOTH)) == network


@pytest.fixture
def certified(edge: Bench) -> Bench:
    """The classifier `edge`, asked for a certificate last."""
    edge.calibrate_abers("edge", score="network", certify=BOTH)
    return edge


SNAPSHOTS = """
SELECT number, calibration.state, document
FROM calibration
INNER JOIN certificate ON calibration.id = calibration_id
ORDER BY number
"""


def test_labels_that_arrive_are_certified_anew(certified: Bench, due: Due) -> None:
    give(certified, rows=range(40))
    age(certified, 1000.0)
    steps = [step for step in due() if step.calibrated is not None]
    assert {step.calibrated.is_certified for step in steps if step.calibrated is not None} == {None, False}
    first, second = certified.rows(SNAPSHOTS)
    assert [(row.number, row.state) for row in (first, second)] == [(1, "retired"), (3, "current")]
    assert first.document != second.document


def test_a_certificate_that_the_labels_no_longer_allow_is_said_and_leaves_the_snapshot(
    certified: Bench, due: Due
) -> None:
    (number, *_) = np.unique(EDGE["vp_y"]).tolist()
    of_class = [(split, row) for split in ("mc", "vp") for row in np.flatnonzero(EDGE[f"{split}_y"] == number).tolist()]
    path = certified.folder / "labels.csv"
    path.write_text("\n".join(["external_id,label", *(f"{split}-{row}," for split, row in of_class)]) + "\n")
    label(certified.engine, "edge", LabelFile(path), selection="random", retract=True)
    age(certified, 1000.0)
    errors = [step.error for step in due() if step.error is not None]
    assert len(errors) == 1
    assert f"splits mc and vp of 'edge' hold no exemplar of class 'class {number}'" in errors[0]
    assert [row.state for row in certified.rows(SNAPSHOTS)] == ["current"]
