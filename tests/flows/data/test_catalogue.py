"""What is there is read as of one moment, with the right to read."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Row

from tests.flows.recalibration import EDGE
from tests.running import Bench
from venn_admit.flows.data.catalogue import list_calibrations
from venn_admit.store.calibrations import listing


def test_calibrations_are_of_the_settings_that_are_listed(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one that is calibrated meanwhile is left out altogether."""
    read = listing.summaries

    def after_another(*arguments: Any, **options: Any) -> Sequence[Row[Any]]:
        edge.calibrate("edge", **EDGE.settings | {"delta": 2.0})
        return read(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(listing, "summaries", after_another)
        found = list_calibrations(edge.engine, "edge", limit=20)
    assert [setting.id for setting in found.settings] == [row.setting for row in found.calibrations] == [1]
    assert len(list_calibrations(edge.engine, "edge", limit=20).calibrations) == 2
