"""What one label, one exemplar or one claim sets off looks up what it needs, with no statistics and with fresh ones."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import venn_admit
from tests.conftest import fresh_engine
from tests.plans.plans import rows_read
from tests.running import Arrays, Bench
from venn_admit.store.database.engine import transaction

TRAINING, HELD_OUT, SCORED = 1_000, 3_000, 2_000
MOST = 100
CLASSES, DIMENSION, K = 3, 8, 5
# Training exemplars that arrive may be in any list of neighbours, an advance empties the ledger of what was seen, and a
# claim says how many points wait. As long as the queue has no statistics, a claim also sorts it.
OF_ALL = {
    "approximations.outdated_neighbours",
    "exemplars.support_fingerprint",
    "job_chunks.chunk_exemplars",
    "point_changes.forget_seen",
    "reviews.claim",
    "reviews.standing",
}
TABLES = """
SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'venn_admit'::regnamespace
"""


def drawn(prefix: str, count: int, seed: int) -> Arrays:
    """Rows, most of which the network has right."""
    rng = np.random.default_rng(seed)
    label = rng.integers(CLASSES, size=count)
    vectors = rng.normal(size=(count, DIMENSION)) + 2 * np.eye(CLASSES, DIMENSION)[label]
    return {
        "id": np.array([f"{prefix}-{row}" for row in range(count)]),
        "r": vectors.astype(np.float32),
        "f": vectors[:, :CLASSES].astype(np.float32),
        "y": label,
    }


class Kept:
    """A classifier with a certificate that stands, points that were drawn to be audited, and what can happen to it."""

    def __init__(self, bench: Bench, classifier: venn_admit.Classifier) -> None:
        self.bench, self.classifier = bench, classifier
        self.scored = drawn("scored", SCORED, seed=3)
        self.seeds = iter(range(10, 100))
        self.filling: dict[str, int] = {}

    def new(self, *, labelled: bool = True) -> Path:
        """A file of one more row."""
        seed = next(self.seeds)
        row = drawn(f"new{seed}", 1, seed)
        return self.bench.write("new.npz", row if labelled else {key: row[key] for key in ("id", "r", "f")})

    def review(self) -> None:
        row = SCORED - next(self.seeds)
        self.classifier.label({f"scored-{row}": int(self.scored["y"][row])}, selection="review")


STEPS: dict[str, Callable[[Kept], object]] = {
    "a review": Kept.review,
    "an advance": lambda kept: kept.classifier.recalibrate(),
    "a monitor": lambda kept: kept.classifier.monitor(),
    "a decision": lambda kept: kept.classifier.decide(kept.scored["r"][0], logits=kept.scored["f"][0]),
    "a job of one point": lambda kept: kept.classifier.score(kept.new(labelled=False)),
    "a claim": lambda kept: kept.classifier.reviewer("anna").claim(),
    "another claim": lambda kept: kept.classifier.reviewer("ben").claim(),
    "a held-out exemplar": lambda kept: kept.classifier.ingest(kept.new()),
    "an advance by it": lambda kept: kept.classifier.recalibrate(),
    "a training exemplar": lambda kept: kept.classifier.ingest(kept.new(), split="train"),
    "an advance after it": lambda kept: kept.classifier.recalibrate(),
}


def fill(bench: Bench, connection: venn_admit.Connection) -> Kept:
    names = [f"class {one}" for one in range(CLASSES)]
    classifier = connection.create("kept", names, dimension=DIMENSION, neighbours=K)
    for split, rows in (("train", drawn("train", TRAINING, 1)), ("held-out", drawn("held-out", HELD_OUT, 2))):
        classifier.ingest(bench.write(f"{split}.npz", rows), split=split)
    classifier.fit()
    classifier.calibrate(standing=True)
    classifier.audit(0.5)
    kept = Kept(bench, classifier)
    classifier.monitor(label_deadline=timedelta(days=7))
    classifier.score(bench.write("scored.npz", {key: kept.scored[key] for key in ("id", "r", "f")}))
    classifier.monitor()
    return kept


@pytest.fixture(scope="module", params=["without statistics", "analysed"])
def kept(
    request: pytest.FixtureRequest, server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("kept")
    with fresh_engine(server_url, template_database) as engine:
        with transaction(engine) as connection:
            for table in connection.exec_driver_sql(TABLES).scalars().all():
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
        with venn_admit.connect(engine.url.render_as_string(hide_password=False), home=folder) as connected:
            found = fill(Bench(engine, folder), connected)
            with rows_read() as found.filling:
                found.classifier.reviewer("first").claim()
            if request.param == "analysed":
                with transaction(engine) as connection:
                    connection.exec_driver_sql("ANALYZE")
            yield found


def test_a_queue_is_filled_by_look_ups(kept: Kept) -> None:
    for name in ("reviews.fill", "reviews.arrange"):
        assert SCORED / 4 < kept.filling[name] < 4 * SCORED, name


def test_each_step_looks_up_what_it_needs(kept: Kept) -> None:
    looked_at: dict[tuple[str, str], int] = {}
    for what, step in STEPS.items():
        with rows_read() as found:
            step(kept)
        assert found, what
        looked_at |= {(what, name): rows for name, rows in found.items() if rows > MOST and name not in OF_ALL}
    assert looked_at == {}
