"""Settings of a classifier with logits only, compared and varied on mc: what they admit with vectors too."""

from decimal import Decimal

import pytest

from tests.cli.program import versions
from tests.flows.logits import ALPHA, NAME, WITH_VECTORS, exemplars, make
from tests.running import Bench
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.flows.calibration.compare import compare_on_stored, request_mc
from venn_admit.flows.reports.what_if_settings import what_if_settings


def test_its_one_setting_admits_what_it_does_with_vectors(both: Bench) -> None:
    url = both.engine.url.render_as_string(hide_password=False)
    before = versions(url)
    assert request_mc(both.workspace(chunk_rows=100), NAME, ALPHA) is None
    bare = compare_on_stored(both.workspace(), NAME, ALPHA)
    assert versions(url) == before
    seen = compare_on_stored(both.workspace(), WITH_VECTORS, ALPHA)
    (one,) = bare.pointwise
    assert isinstance(one.settings, VennAbersSettings)
    assert (one.settings.score, one.settings.q_bins) == (ScoreKind.NETWORK, (0,))
    (same,) = (other for other in seen.compared if other.settings == one.settings)
    assert repr(one.admission) == repr(same.admission)
    assert one.admission.admitted.correct > 0
    assert (bare.point_count, bare.document_count) == (seen.point_count, seen.document_count) == (800, 400)
    assert [what for what, _ in bare.left_out] == ["Venn-ADMIT", "Venn-Abers, score reliability", "bins of q"]
    assert bare.proposal() is one


@pytest.mark.parametrize(
    ("varied", "values"), [("alpha", [Decimal("0.1"), Decimal("0.3")]), ("thresholds", [Decimal("0.95")])]
)
def test_a_part_of_the_setting_is_varied(both: Bench, varied: str, values: list[Decimal]) -> None:
    bare = what_if_settings(both.workspace(), NAME, varied, values)
    seen = what_if_settings(both.workspace(), WITH_VECTORS, varied, values)
    assert repr(bare.tried) == repr(seen.tried)
    assert len(bare.tried) == len(values) + 1
    assert len({one.admission.admitted.correct for one in bare.tried}) == len(bare.tried)


def test_what_there_is_no_setting_of_is_refused(both: Bench) -> None:
    for varied in ("kappa", "delta"):
        with pytest.raises(InvalidInputError, match=f"{varied}: the method venn-abers has no such setting"):
            what_if_settings(both.workspace(), NAME, varied, [5])
    with pytest.raises(InvalidInputError, match="more than one bin of q needs vectors"):
        what_if_settings(both.workspace(), NAME, "q_bins", [(0, 1)])


def test_too_little_to_compare_on(bench: Bench) -> None:
    make(bench)
    with pytest.raises(NotReadyError, match="split mc of 'logits' holds no labelled exemplar"):
        request_mc(bench.workspace(chunk_rows=100), NAME, ALPHA)
    bench.ingest(NAME, bench.write("mc.npz", exemplars("mc", 60, seed=1)), "mc")
    assert request_mc(bench.workspace(chunk_rows=100), NAME, ALPHA) is None
    assert compare_on_stored(bench.workspace(), NAME, ALPHA).point_count == 60
