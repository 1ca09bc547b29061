"""After whatever has happened, a snapshot is that of a calibration from scratch on the same data, row by row.

A state machine lets labels arrive, be corrected and taken back, and training data grow, shrink and be relabelled, on
a real database; vectors lie on a grid, so that distances are exact and ties abound.
"""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from sqlalchemy import Engine

from tests.flows.recalibration import Computing
from tests.from_scratch import current_points, store_again, stored_exemplars
from tests.running import Arrays, Bench
from venn_admit.core.types import KnnParameters
from venn_admit.errors import NotReadyError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay

DIMENSION, CLASSES, K = 3, 2, 4
PARAMETERS = KnnParameters(beta=np.array([0.1, -0.2]), gamma=np.array([0.3, 0.4]), eta=1.5)
ETA_LOC = 0.7
CALIBRATOR: dict[str, Any] = {"kappa": 3, "q_bins": (0, 1, 4)}

LISTS = """
SELECT exemplar.id, neighbour_ids, distances, neighbours.support_version
FROM neighbours
INNER JOIN exemplar ON exemplar.id = neighbours.exemplar_id
INNER JOIN classifier ON classifier.id = exemplar.classifier_id
WHERE name = :name
"""

seeds = st.integers(0, 2**32 - 1)
few = st.integers(1, 6)


STEPS = """
SELECT cell, step.score, lower, upper_at, upper_above
FROM venn_abers_step AS step
INNER JOIN calibrator ON calibrator.id = calibrator_id
INNER JOIN classifier ON classifier.id = classifier_id
WHERE name = :name AND valid_until IS NULL
ORDER BY cell, step.score
"""


CERTIFICATES = """
SELECT certificate.thresholds, bounded, share, p_value, certificate.documents, documents_needed, document
FROM certificate
INNER JOIN calibration ON calibration.id = calibration_id
INNER JOIN calibrator ON calibrator.id = calibrator_id
INNER JOIN classifier ON classifier.id = classifier_id
WHERE name = :name AND state = 'current'
"""

# What calibrates may not train beside it.
OF_OTHER_DOCUMENTS = """
NOT EXISTS (
    SELECT
    FROM exemplar AS held_out
    WHERE
        held_out.classifier_id = exemplar.classifier_id
        AND held_out.document_id = exemplar.document_id
        AND held_out.split IN ('knn', 'mc', 'vp')
)
"""

# So little is asked for that a few points can show it, and often do not.
METHODS: dict[str, dict[str, Any]] = {
    "venn-admit": CALIBRATOR,
    "venn-abers": {"score": "network", "q_bins": (0, 1, 4)},
    "certified": {
        "score": "network",
        "alpha": Decimal("0.25"),
        "certify": ("predicted", "true"),
        "confidence": Decimal("0.8"),
    },
}


def calibrated(bench: Bench, name: str, method: str) -> str:
    """What comes of a calibration: "done", or why there is none."""
    try:
        if method == "venn-admit":
            bench.calibrate(name, **METHODS[method])
        else:
            bench.calibrate_abers(name, **METHODS[method])
    except NotReadyError as error:
        return str(error).replace(name, "NAME")
    return "done"


class Life(RuleBasedStateMachine):
    """One classifier, to which all may happen that its users can do."""

    bench: Bench
    method: str
    outcomes: ClassVar[Counter[str]]
    count = 0

    def __init__(self) -> None:
        super().__init__()
        Life.count += 1
        self.name = f"life-{Life.count}"
        self.rows = 0

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        self.bench.create(self.name, dimension=DIMENSION, class_count=CLASSES, neighbour_count=K)
        self.ingest("train", self.points(seed, 12))
        self.ingest("held-out", self.points(seed + 1, 60))
        self.bench.adopt(self.name, PARAMETERS, ETA_LOC)
        calibrated(self.bench, self.name, self.method)  # from scratch itself

    def points(self, seed: int, n: int) -> Arrays:
        """Two classes that overlap, on a grid of quarters; three points a document."""
        rng = np.random.default_rng(seed)
        y = rng.integers(CLASSES, size=n)
        r = np.round(4 * (rng.normal(size=(n, DIMENSION)) + y[:, None])) / 4
        f = rng.normal(size=(n, CLASSES)) + 2 * np.eye(CLASSES)[y]
        ids = np.array([f"{self.name}-{self.rows + row}" for row in range(n)])
        documents = np.array([f"doc-{(self.rows + row) // 3}" for row in range(n)])
        self.rows += n
        return {"id": ids, "doc": documents, "r": r.astype(np.float32), "f": f.astype(np.float32), "y": y}

    def ingest(self, split: str, arrays: Arrays) -> None:
        self.bench.ingest(self.name, self.bench.write("new.npz", arrays), split)

    def some(self, condition: str, seed: int, n: int) -> list[str]:
        """External ids of some of the exemplars stored that fulfil a condition."""
        found = self.bench.rows(
            "SELECT external_id FROM exemplar INNER JOIN classifier ON classifier.id = classifier_id "
            f"WHERE name = :name AND {condition} ORDER BY exemplar.id",
            name=self.name,
        )
        return [found[one].external_id for one in np.random.default_rng(seed).permutation(len(found))[:n]]

    def give(self, ids: list[str], labels: list[int | None], **options: Any) -> None:
        path = self.bench.folder / "labels.csv"
        lines = [f"{one},{'' if number is None else number}" for one, number in zip(ids, labels, strict=True)]
        path.write_text("\n".join(["external_id,label", *lines]) + "\n")
        if ids:
            label(self.bench.engine, self.name, LabelFile(path), **{"selection": "random", "retract": False, **options})

    @rule(seed=seeds, n=few)
    def more_training_exemplars(self, seed: int, n: int) -> None:
        self.ingest("train", self.points(seed, n))

    @rule(seed=seeds, n=few)
    def more_held_out_data(self, seed: int, n: int) -> None:
        self.ingest("held-out", self.points(seed, n))

    @precondition(lambda self: self.bench.value("SELECT count(*) FROM calibration WHERE state = 'current'"))
    @rule(seed=seeds, n=few)
    def score(self, seed: int, n: int) -> None:
        arrays = self.points(seed, n)
        path = self.bench.write("scored.npz", arrays | {"y": np.full(n, -1)})
        self.bench.score(self.name, path, weighted=bool(seed % 2) and self.method != "certified")

    @rule(seed=seeds, n=few, selection=st.sampled_from(["random", "selected"]))
    def labels_arrive(self, seed: int, n: int, selection: str) -> None:
        ids = self.some("split = 'scored'", seed, n)
        self.give(ids, [seed % CLASSES] * len(ids), selection=selection)

    @rule(seed=seeds, n=few)
    def labels_are_corrected(self, seed: int, n: int) -> None:
        ids = self.some("split <> 'scored'", seed, n)
        self.give(ids, [seed % CLASSES] * len(ids), selection="selected")

    @rule(seed=seeds, n=few, training=st.booleans())
    def labels_are_taken_back(self, seed: int, n: int, training: bool) -> None:
        # Documents are a third of the points, so that whole ones go; enough training exemplars stay for K.
        if training and len(self.some("split = 'train'", 0, 1000)) < K + n:
            return
        ids = self.some("split = 'train'" if training else "split IN ('knn', 'mc', 'vp')", seed, n)
        self.give(ids, [None] * len(ids), retract=True)

    @rule(seed=seeds, n=few)
    def selected_exemplars_join_training(self, seed: int, n: int) -> None:
        ids = self.some(f"split = 'scored' AND {OF_OTHER_DOCUMENTS}", seed, n)
        self.give(ids, [seed % CLASSES] * len(ids), selection="selected", join_train=True)

    @rule()
    def calibrate(self) -> None:
        self.check(calibrated(self.bench, self.name, self.method))

    @rule()
    def recalibrate(self) -> None:
        """It goes by what has changed since the snapshot before, where `calibrate` looks at everything."""
        for _, step in recalibrate(self.bench.workspace(), self.name, shell=Computing(self.bench)):
            assert step is not None
            self.outcomes["recalibrated"] += step.error is None
            self.check("done" if step.error is None else step.error.replace(self.name, "NAME"))

    def check(self, outcome: str) -> None:
        """Compare the outcome with that of a calibration of the same data under another name."""
        again = f"{self.name}-again"
        if outcome == "done":
            self.check_lists()
        store_again(self.bench, self.name, again, PARAMETERS, ETA_LOC)
        assert calibrated(self.bench, again, self.method) == outcome
        if outcome == "done":
            assert current_points(self.bench, self.name) == current_points(self.bench, again)
            steps = self.bench.rows(STEPS, name=self.name)
            assert steps == self.bench.rows(STEPS, name=again)
            assert bool(steps) == (self.method != "venn-admit")
            certificates = self.bench.rows(CERTIFICATES, name=self.name)
            assert certificates == self.bench.rows(CERTIFICATES, name=again)
            assert len(certificates) == (self.method == "certified")
            self.outcomes.update("certified" if row.thresholds else "not certified" for row in certificates)
        self.forget(again)

    def check_lists(self) -> None:
        """Every list stored, of points scored long ago too, is that of a search of all training exemplars now."""
        stored = stored_exemplars(self.bench, self.name)
        vectors = {row.id: np.array(row.r) for row in stored}
        training = [row.id for row in stored if row.split == "train"]
        ids, support = np.array(training), np.array([vectors[one] for one in training])
        for row in self.bench.rows(LISTS, name=self.name):
            distances = np.sqrt(((vectors[row.id] - support) ** 2).sum(axis=1))  # exact on the grid
            nearest = np.lexsort((ids, distances))[:K]
            assert row.neighbour_ids == ids[nearest].tolist()
            assert row.distances == distances[nearest].tolist()

    def forget(self, name: str) -> None:
        """Let the next calibration from scratch have the name."""
        with self.bench.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE classifier SET name = name || id WHERE name = %s", (name,))

    def teardown(self) -> None:
        # What is drawn depends on the numbers in all modules that were imported, and may have no recalibration.
        self.more_held_out_data(0, 3)
        self.recalibrate()
        decided = self.bench.rows(
            "SELECT decision.id FROM decision INNER JOIN exemplar ON exemplar.id = exemplar_id "
            "INNER JOIN classifier ON classifier.id = classifier_id WHERE name = :name",
            name=self.name,
        )
        for row in decided:
            assert replay(self.bench.workspace(), row.id).differing == ()
        super().teardown()


@pytest.fixture(params=METHODS)
def life(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> type[Life]:
    class LifeHere(Life):
        bench = Bench(engine, tmp_path)
        method = request.param
        outcomes: ClassVar[Counter[str]] = Counter()

    return LifeHere


@pytest.mark.slow
@pytest.mark.usefixtures("all_replace")
def test_a_snapshot_is_a_calibration_from_scratch(life: type[Life]) -> None:
    run_state_machine_as_test(
        life,
        settings=settings(
            # Few lives that are long: a snapshot is made from all that happened before, and beginnings take long.
            max_examples=4,
            stateful_step_count=18,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert life.outcomes.pop("recalibrated") > 0
    assert set(life.outcomes) == ({"certified", "not certified"} if life.method == "certified" else set())
