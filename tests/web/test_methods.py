"""The table of methods: each is judged on points of mc that it was not calibrated on, and no label of vp is read."""

import re
from dataclasses import replace

import pytest
from sqlalchemy import text

from tests.cli.samples import NAME
from tests.web.visitor import OWN, Visitor
from venn_admit.errors import NotReadyError
from venn_admit.flows.reports import methods_table as flow
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import transaction
from venn_admit.store.workspace import Workspace

SIZE = 2**28
METHODS = (
    "Conf_BASE",
    "RAPS adaptiveness",
    "RAPS size",
    "APS",
    "LocalConf_BASE",
    "LocalConf corrected",
    "softmax &gt;= 1 - alpha",
    "SGR",
    "Venn-Abers network",
    "Venn-Abers reliability",
)


def within(visitor: Visitor, memory_budget: int) -> Workspace:
    """What the service works with, within other limits."""
    return replace(visitor.runtime, memory_budget=memory_budget)


def table(visitor: Visitor) -> flow.MethodsTable:
    return flow.methods_table(
        within(visitor, SIZE),
        NAME,
        None,
    )


def test_every_method_has_a_row(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    page = shared.open(f"{OWN}/methods")
    for name in METHODS:
        assert f'<th scope="row">{name}</th>' in page, name
    assert "this calibration" in page
    assert page == shared.open(f"{OWN}/methods")
    first, _, others = page.partition('<details class="more">')
    for name, is_first in (("APS", True), ("SGR", True), ("RAPS size", False), ("Conf_BASE", False)):
        assert (f">{name}</th>" in first, f">{name}</th>" in others) == (is_first, not is_first)
    assert f'<a href="{OWN}/methods" aria-current="page">Methods</a>' in page
    overview = shared.open(OWN)
    assert f'<a href="{OWN}/methods">Methods</a>' in overview
    assert 'hx-select="#methods"' not in overview
    assert shared.client.get(f"{OWN}/methods?calibration=99").status_code == 404


def test_the_labels_of_vp_change_nothing(own: Visitor) -> None:
    before = table(own)
    with transaction(own.runtime.engine) as connection:
        changed = connection.execute(text("UPDATE exemplar SET label = (label + 1) % 3 WHERE split = 'vp'"))
        assert changed.rowcount > 100
        connection.execute(text("UPDATE calibration_point SET label = (label + 1) % 3 WHERE split = 'vp'"))
    after = table(own)
    for one, other in zip(before.methods, after.methods, strict=True):
        assert (one.name, one.admission.admitted, one.admission.right) == (
            other.name,
            other.admission.admitted,
            other.admission.right,
        )


def test_the_shares_are_those_of_methods_that_work(own: Visitor) -> None:
    found = table(own)
    assert found.mc_count == found.judged > 500
    shares = {one.name: one.admission.right.overall.share for one in found.methods if one.admission.admitted.correct}
    assert len(shares) > 5
    assert shares["Conf_BASE"] == pytest.approx(0.95, abs=0.06)


def test_as_many_points_are_judged_as_take_seconds(shared: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MOST_JUDGED", 50)
    found = table(shared)
    assert 20 < found.judged < 90
    assert {one.admission.admitted.count for one in found.methods} == {found.judged}


def test_vectors_that_take_too_much_memory_are_refused(shared: Visitor) -> None:
    with pytest.raises(NotReadyError, match="MiB"):
        flow.methods_table(
            within(shared, 1000),
            NAME,
            None,
        )


def test_a_page_of_methods_is_a_page_of_its_own(shared: Visitor) -> None:
    shared.sign_in(Scope.READ)
    assert re.search(r'<section id="methods"', shared.open(f"{OWN}/methods?calibration=1"))
