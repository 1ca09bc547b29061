"""Whatever removes something may be killed at any moment, and is completed by running it again."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.removal.conftest import Make
from tests.flows.removal.test_delete import contents
from tests.flows.removal.test_forget import RESULTS, recalibrated, results
from tests.running import Bench, Golden
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[3]
# Batches are small, so that there are many transactions to be killed between or within.
# The timer ends it in its own time, however late others are: nobody handles its signal.
PROGRAM = """
import signal
import sys
from pathlib import Path
from venn_admit.flows.removal import batches, delete, forget
from venn_admit.store.database.engine import create_engine
from venn_admit.store.workspace import Workspace

workspace = Workspace(create_engine(sys.argv[1]), Path(sys.argv[2]), 1 << 30, 50, None, "cpu")
batches.BATCH = 10
print("ready", flush=True)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[5]))
if sys.argv[3] == "delete":
    delete.delete(workspace, sys.argv[4])
else:
    forget.forget(workspace, "edge", sys.argv[4].split(","), missing_ok=False)
"""
KILLS = 6
SECONDS = 300


def killed_until_done(bench: Bench, *arguments: str, seed: int, is_done: Callable[[], bool] = lambda: False) -> int:
    """Run the program until it ends by itself, killing it before that some times; return how often it was killed.

    is_done: Whether a program that was killed had done all that it was to do.
    """
    never, chance, kills = 0.0, random.Random(seed), 0
    command = [sys.executable, "-c", PROGRAM, bench.engine.url.render_as_string(hide_password=False)]
    while True:
        seconds = chance.uniform(0, 0.4) if kills < KILLS else never
        process = subprocess.Popen(
            [*command, str(bench.folder / "cache"), *arguments, str(seconds)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
        assert process.stdout is not None
        with process.stdout as said:
            assert said.readline() == b"ready\n"
            code = process.wait(SECONDS)
        if code == 0:
            return kills
        assert code == -signal.SIGALRM
        kills += 1
        if is_done():
            return kills


@pytest.mark.parametrize("seed", [1])
def test_a_deletion_that_is_killed_is_completed_by_the_next(edge: Bench, make: Make, seed: int) -> None:
    before = contents(edge)
    make(edge, "other")

    def is_gone() -> bool:
        return bool(edge.value("SELECT count(*) FROM classifier WHERE name = 'other'") == 0)

    assert killed_until_done(edge, "delete", "other", seed=seed, is_done=is_gone) > 0
    assert is_gone()
    assert contents(edge) == before
    delete(edge.workspace(), "edge")
    assert edge.value("SELECT count(*) FROM classifier") == 0


@pytest.mark.parametrize("seed", [1])
def test_forgetting_that_is_killed_is_completed_by_the_next(edge: Bench, golden: Golden, make: Make, seed: int) -> None:
    ids = [f"{part}-{row}" for part in ("train", "mc", "vp", "score") for row in range(0, 60, 4)]
    assert killed_until_done(edge, "forget", ",".join(ids), seed=seed) > 0
    done = forget(edge.workspace(chunk_rows=50), "edge", ids)
    assert (done.forgotten_before, done.exemplars) == (len(ids), 0)
    for job_id in done.jobs:
        edge.run(job_id)
    recalibrated(edge, golden, "edge")
    make(edge, "other", frozenset(ids))
    after, other = results(edge, "edge"), results(edge, "other")
    for what in RESULTS:
        assert after[what] == other[what], what
