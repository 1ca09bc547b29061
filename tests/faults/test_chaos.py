"""Processes of the HTTP service, the worker, Postgres and Redis are killed in turn, and no client loses anything.

`python -m tests.faults --service` does the same for longer.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.chaos import calibrated_template, differences, disturb, undisturbed
from tests.faults.parts import PROCESSES, Redis
from tests.faults.server import Server
from tests.faults.workload import Comparison

pytestmark = pytest.mark.processes

ROUNDS = 1


@pytest.fixture(scope="module")
def calibrated_here(faults_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with calibrated_template(faults_server, tmp_path_factory.mktemp("chaos")) as name:
        yield name


@pytest.fixture(params=["database", pytest.param("redis", marks=[pytest.mark.servers, pytest.mark.redis])])
def redis(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Redis | None]:
    """A Redis of the test's own as the broker; None: the database."""
    with ExitStack() as stack:
        made = None
        if request.param == "redis":
            made = Redis(tmp_path / "redis")
            stack.callback(made.kill)
        yield made


@pytest.mark.slow
def test_every_part_is_killed_in_turn(
    faults_server: Server, calibrated_here: str, redis: Redis | None, tmp_path: Path
) -> None:
    run = disturb(faults_server, calibrated_here, tmp_path, redis, rounds=ROUNDS, rng=random.Random(0))
    assert run.problems == []
    killed = sum(count for what, count in run.counts.items() if what.endswith(" killed"))
    assert killed == ROUNDS * (PROCESSES + 2 + (redis is not None))
    assert run.counts["connections lost"] > 0
    assert any(what.startswith("503 ") for what in run.counts), run.counts
    calm = undisturbed(faults_server, calibrated_here, tmp_path / "calm", list(map(len, run.found.told)))
    assert differences(calm, run.found) == (Comparison(calm.rows.total(), lost=0, doubled=0, differing=0), True)
