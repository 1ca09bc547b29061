"""A whole year, undisturbed, or with the power cut in the middle."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from sqlalchemy import text

from tests.conftest import fresh_database
from tests.faults.server import Server
from tests.patience import wait_until
from tests.year.begun import keys_of
from tests.year.parts import Parts, running_parts
from tests.year.stored import stored
from tests.year.stream import Calendar, Day, Year
from venn_admit.store.database.engine import connect, create_engine, transaction

DOWN_SECONDS = 1.0


def run(
    server: Server,
    template: str,
    folder: Path,
    calendar: Calendar,
    seed: int,
    *,
    cuts: Collection[int] = (),
    on_day: Callable[[Day], object] = lambda _: None,
) -> tuple[list[Day], Counter[tuple[str, str]]]:
    """Return how the days went, and what is stored in the end.

    cuts: days on which all processes are killed, Postgres included, while their points are being scored.
    """
    folder.mkdir()
    with fresh_database(server.url, template) as url:
        keys = keys_of(url)
        with running_parts(server, url, folder) as parts:
            year = Year(parts, keys, calendar, seed)
            try:
                for day in range(calendar.days):
                    on_day(year.live(day, meanwhile=partial(_cut_power, parts) if day in cuts else None))
                year.settle()
            finally:
                year.close()
        return year.days, stored(url)


def _cut_power(parts: Parts) -> None:
    """Cut the power as soon as a job is under way, and put it on again a second later."""
    engine = create_engine(parts.database_url)

    def is_under_way() -> bool:
        with connect(engine) as connection:
            return bool(connection.execute(text("SELECT EXISTS (SELECT FROM job WHERE state = 'running')")).scalar())

    wait_until(is_under_way, "a job is under way")
    parts.cut_power()
    time.sleep(DOWN_SECONDS)
    parts.start_again()
    with transaction(engine) as connection:
        # A server that crashed leaves out numbers that it had reserved, and by these the queue for reviewers is mixed.
        connection.execute(
            text("SELECT setval(pg_get_serial_sequence('exemplar', 'id'), (SELECT max(id) FROM exemplar))")
        )
    engine.dispose()
