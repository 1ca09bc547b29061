"""A report is computed when it would say something else, and is shown as it was computed otherwise."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.cli.samples import NAME
from tests.web.visitor import OWN, Visitor
from venn_admit.methods.recent import MOST
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction
from venn_admit.web.caches import OLDEST, ReportCache, _Slot

REQUEST = """
INSERT INTO job (classifier_id, kind, state, calibration_id, weighted, require_full_match, row_count, finished_at)
SELECT classifier_id, kind, state, calibration_id, weighted, require_full_match, 0, now()
FROM job WHERE kind = 'score'
"""
BEHIND = "Requests have been decided on since"


def as_of(page: str) -> str:
    found = re.search(r'As of <time datetime="([^"]+)"', page)
    assert found is not None
    return found[1]


@pytest.mark.usefixtures("blank_charts")
def test_a_report_is_kept_while_only_traffic_comes(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    first = own.open(f"{OWN}/report")
    assert BEHIND not in first
    assert own.open(f"{OWN}/report") == first
    with transaction(own.runtime.engine) as connection:
        connection.execute(text(REQUEST))
    later = own.open(f"{OWN}/report")
    assert as_of(later) == as_of(first)
    assert BEHIND in later
    again = own.open(f"{OWN}/report?again=true")
    assert as_of(again) > as_of(first)
    assert BEHIND not in again
    assert as_of(own.open(f"{OWN}/report?calibration=1")) == as_of(again)


@pytest.mark.usefixtures("blank_charts")
def test_a_label_makes_a_report_be_computed_again(own: Visitor) -> None:
    own.sign_in(Scope.WRITE)
    first = own.open(f"{OWN}/report")
    assert own.send(f"{OWN}/labels", external_id="scored-1", label="0").status_code == 303
    assert as_of(own.open(f"{OWN}/report")) > as_of(first)


def test_a_report_that_several_ask_for_is_computed_once(shared: Visitor) -> None:
    kept = ReportCache(shared.runtime)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: kept.get(NAME, None)[0], range(4)))
    assert all(one is found[0] for one in found)


def test_a_report_is_not_shown_for_ever(shared: Visitor) -> None:
    found = ReportCache(shared.runtime).get(NAME, None)[0]
    assert found.serves(found.standing, found.as_of + OLDEST - timedelta(seconds=1))
    assert not found.serves(found.standing, found.as_of + OLDEST)


def test_few_reports_are_kept(shared: Visitor) -> None:
    kept = ReportCache(shared.runtime)
    for number in range(MOST + 3):
        kept._slots.get((NAME, number), _Slot)
    assert len(kept._slots._entries) == MOST
