"""Changes of a classifier's generations and name while exemplars arrive: each waits, and neither undoes the other."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.flows.calibration.test_generations import EDGE, add_generation
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import Arrays, Bench
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.generations import create_generation, switch
from venn_admit.flows.data.catalogue import list_classifiers
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.data.settings import rename

WAITING = """
SELECT count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def more_training() -> Arrays:
    """Training exemplars that are not stored yet."""
    arrays = EDGE.exemplars("train")
    return arrays | {"id": np.array([f"more-{external_id}" for external_id in arrays["id"]])}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda engine: create_generation(engine, "edge"), ["edge", "edge@2", "edge@3"]),
        (lambda engine: switch(engine, "edge@2"), ["edge", "edge@1"]),
        (lambda engine: rename(engine, "edge", "ridge"), ["ridge", "ridge@2"]),
    ],
    ids=["create", "switch", "rename"],
)
def test_training_data_that_arrive_are_stored(
    edge: Bench, change: Callable[[Engine], object], names: list[str]
) -> None:
    add_generation(edge)
    path = edge.write("more.npz", more_training())
    changing: list[Future[object]] = []

    def change_meanwhile(_rows: int) -> None:
        changing.append(pool.submit(change, edge.engine))
        wait_until(lambda: edge.value(WAITING) or changing[0].done(), "the change waits or ends")

    with ThreadPoolExecutor(1) as pool:
        stored = ingest(edge.engine, "edge", FileSource(path), "train", on_rows=change_meanwhile)
        changing[0].result(PATIENCE_SECONDS)
    assert stored.new == len(more_training()["r"])
    assert [one.classifier.name for one in list_classifiers(edge.engine)] == names
