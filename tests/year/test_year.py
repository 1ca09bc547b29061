"""A short year: promises are true, the drift is seen, and the next chain and the next network take over.

A power cut in the middle leaves the state of a calm year. `python -m tests.year` is the long one.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import open_folder
from tests.faults.server import Server, own_server
from tests.year.begun import begun
from tests.year.law import CLASS_NAMES
from tests.year.run import run
from tests.year.stream import ALARM, ALPHA, BEGUN, IN_USE, NEW_NETWORK, SHORT, Day

pytestmark = pytest.mark.processes

CUT = SHORT.days // 2


@pytest.fixture(scope="module")
def year_server() -> Iterator[Server]:
    with open_folder() as folder, own_server(folder / "home") as server:
        yield server


def test_a_short_year(year_server: Server, tmp_path: Path) -> None:
    with begun(year_server, tmp_path, SHORT, seed=0) as template:
        days, left = run(year_server, template, tmp_path / "cut", SHORT, seed=0, cuts={CUT})
        calm, calm_left = run(year_server, template, tmp_path / "calm", SHORT, seed=0)
    assert days == calm
    assert left - calm_left == calm_left - left == {}
    _check(days)


def _check(days: list[Day]) -> None:
    happened = {event: day.day for day in days for event in day.events}
    assert SHORT.drift < happened[ALARM] < happened[BEGUN] <= happened[IN_USE] < happened[NEW_NETWORK] == SHORT.renewal
    before, after = days[: SHORT.drift], days[SHORT.renewal :]
    assert not any(day.alarms for day in [*before, *after])
    for day in before:
        assert (day.generation, day.chain) == (1, 1)
        assert None not in day.thresholds
    assert all(a.labels < b.labels for a, b in pairwise(before))
    for day in days[SHORT.drift : happened[ALARM]]:
        assert max(share for share in day.shares if share is not None) < 1 - ALPHA, "the promise is broken by the drift"
    for day in days[happened[ALARM] : happened[IN_USE]]:
        withdrawn = [least is None for least in day.thresholds]
        assert withdrawn == [name in day.alarms for name in CLASS_NAMES]
    assert days[happened[IN_USE]].chain == 2
    assert after[-1].admitted > before[-1].admitted
    for day in after:
        assert (day.generation, day.chain) == (2, 3)
    for day in days:
        if day.day < SHORT.drift or day.chain > 1:
            assert all(share is None or share >= 1 - ALPHA for share in day.shares), "what is promised is true"
