"""The certified policy in use under other class shares: by its evidence, and nothing is stored."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.cli.program import versions
from tests.flows.calibration.test_class_shares import ASKED, DECLARED, rows
from tests.flows.logits import NAME, calibrated, exemplars, make
from tests.running import Bench, certificate_of
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.flows.reports.what_if_settings import MOST_VALUES
from venn_admit.flows.reports.what_if_shares import what_if_shares
from venn_admit.report.what_if.shares import SharesTried, shares_payload

ONE_CLASS = [tuple(Decimal(int(y == of)) for y in range(3)) for of in range(3)]
OUTSIDE = (Decimal("0.1"), Decimal("0.1"), Decimal("0.8"))


@pytest.fixture
def held_out(bench: Bench) -> Bench:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", rows("held-out", 2000, 1)), "held-out")
    return bench


def what_if(bench: Bench, shares: list[tuple[Decimal, ...]]) -> SharesTried:
    return what_if_shares(bench.workspace(), NAME, shares)


@pytest.mark.parametrize("asked", [{"certify": ("predicted",)}, {"certify": ("true", "predicted")}, ASKED])
def test_it_rests_on_the_evidence_of_the_certificate(held_out: Bench, asked: dict[str, Any]) -> None:
    certificate = certificate_of(calibrated(held_out, **asked))
    url = held_out.engine.url.render_as_string(hide_password=False)
    before = versions(url)
    found = what_if(held_out, [*ONE_CLASS, DECLARED.shares, OUTSIDE])
    assert versions(url) == before
    assert found.points == certificate.points < 2000
    counts = held_out.rows("SELECT label, count(*) FROM exemplar WHERE split IN ('mc', 'vp') GROUP BY label")
    labelled = np.array([count for _, count in sorted(map(tuple, counts))])
    # Shares of a class alone say how much of it is admitted. One document in ten proposes, whatever its class.
    admitted = np.array([one.admitted for one in found.tried[:3]])
    assert admitted @ labelled / labelled.sum() == pytest.approx(certificate.admitted / certificate.points, abs=0.01)
    declared, outside = found.tried[3:]
    box = (True, False) if asked is ASKED else (None, None)
    assert (found.in_box(declared), found.in_box(outside)) == box
    assert certificate.policy is not None
    never = [one is None for one in certificate.policy.thresholds]
    assert np.isnan(declared.most_wrong).tolist() == never
    assert (declared.wrong < declared.most_wrong)[~np.array(never)].all()
    assert outside.wrong[0] > declared.wrong[0]
    assert outside.most_wrong[0] > declared.most_wrong[0]
    said = shares_payload(found)["tried"][4]
    assert said["class_shares"] == ["0.1", "0.1", "0.8"]
    assert [one["holds"] for one in said["per_predicted_class"]] == [
        None if nothing else bound <= 0.2 for bound, nothing in zip(outside.most_wrong.tolist(), never, strict=True)
    ]


def test_refused_without_a_policy_of_this_kind(bench: Bench) -> None:
    make(bench)
    with pytest.raises(NotReadyError, match="has no calibration yet"):
        what_if(bench, [OUTSIDE])
    with pytest.raises(InvalidInputError, match="class_shares: expected 1 to 50 values to try, got 0"):
        what_if(bench, [])
    with pytest.raises(InvalidInputError, match="class_shares: expected 1 to 50 values to try, got 51"):
        what_if(bench, [OUTSIDE] * (MOST_VALUES + 1))
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 2000, seed=1)), "held-out")
    assert certificate_of(calibrated(bench, certify=("predicted",))).policy is not None
    with pytest.raises(InvalidInputError, match=r"has no certified policy .* documents of one point each"):
        what_if(bench, [OUTSIDE])
    calibrated(bench)
    with pytest.raises(InvalidInputError, match="has no certified policy"):
        what_if(bench, [OUTSIDE])
