"""The table of methods names each method once, the calibration's first."""

from collections import Counter

from tests.running import Bench
from venn_admit.flows.reports.methods_table import MethodsTable, methods_table


def table(edge: Bench) -> MethodsTable:
    found = methods_table(edge.workspace(), "edge", None)
    assert set(Counter(one.name for one in found.methods).values()) == {1}
    assert [one.is_own for one in found.methods] == [True] + [False] * (len(found.methods) - 1)
    return found


def test_the_method_of_the_calibration_takes_the_place_of_the_rival_that_it_is(edge: Bench) -> None:
    edge.calibrate("edge", kappa=3)
    by_bands = [one.name for one in table(edge).methods]
    assert by_bands[0] == "Venn-ADMIT weighted"
    assert "Venn-Abers network" in by_bands
    edge.calibrate_abers("edge", score="network")
    found = table(edge)
    assert found.methods[0].name == "Venn-Abers network"
    assert not found.is_certified
    assert {one.name for one in found.methods} == {*by_bands} - {"Venn-ADMIT weighted"}
    edge.calibrate_abers("edge", score="network", q_bins=(0, 1))
    assert table(edge).methods[0].name == "Venn-Abers network, bins of q"
    edge.calibrate_abers("edge", score="network", certify=["predicted"])
    assert table(edge).is_certified
