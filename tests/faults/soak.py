"""Round after round of the same jobs under faults, until there were kills enough; each compared with a calm run."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from tests.conftest import fresh_database, open_folder
from tests.faults.disturbances import Disturbances
from tests.faults.fleet import Fleet, Sweeper, running_fleet
from tests.faults.quota import NoPrivilegeError, await_error, small_disk
from tests.faults.server import Server, own_server
from tests.faults.workload import Comparison, Row, Size, compare, open_jobs, recorded_jobs, undisturbed, written
from venn_admit.store.database.engine import connect

SIZE = Size(rows=1600, chunk_rows=16)
WORKERS = 4
# Most chunks that are done between two faults.
STRIDE = 3
# How often each fault is drawn, out of a hundred.
WEIGHTS = {
    "kill_child": 50,
    "kill_worker": 20,
    "flush": 5,
    "restart_postgres": 5,
    "pause": 4,
    "cut": 10,
    "take_broker_away": 6,
}

TOTALS = """
SELECT count(*) AS chunks, count(*) FILTER (WHERE attempts > 1) AS again
FROM job_chunk
WHERE job_id = ANY(:jobs)
"""


class Soak:
    """Rounds on one server and one broker, and what happened in them."""

    def __init__(self, server: Server, template: str, calm: Counter[Row], broker_url: str | None, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.left_out = ""
        self._server = server
        self._template = template
        self._calm = calm
        self._broker_url = broker_url
        self._rng = random.Random(seed)

    @property
    def kills(self) -> int:
        return self.counts["processes killed"] + self.counts["workers killed"]

    def full_disk_round(self) -> None:
        """The cache of a single worker is full at first. Raises NoPrivilegeError where no disk can be made."""
        with open_folder() as folder, small_disk(folder / "worker-0" / "cache", "256k") as disk:

            def faults(fleet: Fleet) -> None:
                await_error(fleet)
                self.counts["quota hits"] += 1
                disk.make_room()

            self._round(folder, faults, workers=1, copies=1)

    def round(self, kills: int) -> None:
        """All jobs once, disturbed until they are done or the kills were made.

        In every second round each message is delivered twice.
        """

        def faults(fleet: Fleet) -> None:
            disturbances = Disturbances(fleet, self._server, self._rng, self.counts)
            while self.kills < kills and disturbances.await_chunks(self._rng.randint(1, STRIDE)):
                (name,) = self._rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
                getattr(disturbances, name)()

        with open_folder() as folder:
            self._round(folder, faults, workers=WORKERS, copies=1 + self.counts["rounds"] % 2)

    def _round(self, folder: Path, faults: Callable[[Fleet], None], *, workers: int, copies: int) -> None:
        with (
            fresh_database(self._server.url, self._template) as url,
            running_fleet(url, folder, self._broker_url, workers=workers) as fleet,
            Sweeper(fleet.engine, fleet.app, copies) as sweeper,
        ):
            started = open_jobs(fleet.engine)
            faults(fleet)
            fleet.await_jobs()
            self._count(fleet, started, compare(self._calm, written(fleet.engine)))
            self.counts["messages doubled"] += sweeper.duplicates
        self.counts["rounds"] += 1

    def _count(self, fleet: Fleet, started: list[int], comparison: Comparison) -> None:
        with connect(fleet.engine) as connection:
            totals = connection.execute(text(TOTALS), {"jobs": started}).one()
        self.counts["jobs"] += len(started)
        self.counts["chunks"] += totals.chunks
        self.counts["chunks begun again"] += totals.again
        self.counts["rows"] += comparison.rows
        self.counts["rows lost"] += comparison.lost
        self.counts["rows doubled"] += comparison.doubled
        self.counts["rows differing"] += comparison.differing


def soak(folder: Path, broker_url: str | None, *, kills: int, seed: int, on_round: Callable[[Soak], None]) -> Soak:
    """Rounds until the kills were made, and one with a full disk first; `on_round` is called after each."""
    with own_server(folder / "home") as server, recorded_jobs(server.url, folder, SIZE) as template:
        run = Soak(server, template, undisturbed(server.url, template, folder), broker_url, seed)
        try:
            run.full_disk_round()
        except NoPrivilegeError as error:
            run.left_out = f"no round with a full disk: {error}"
        else:
            on_round(run)
        while run.kills < kills:
            run.round(kills)
            on_round(run)
    return run
