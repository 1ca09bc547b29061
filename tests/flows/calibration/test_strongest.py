"""The strongest promise through the flows: what is in use, what is stored beside it, and how it decides."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.flows import logits
from tests.running import Arrays, Bench
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.promises import Promised
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.flows.reports.report import report
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.report.calibration.advice import advice
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.wording import share_text
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.database.engine import connect

CLASSES = 4
BOTH = tuple(ClassKind)


def overconfident(prefix: str, count: int, seed: int, apart: Sequence[float] = (2.6,) * CLASSES) -> Arrays:
    """Four classes, equally frequent and so far apart, and logits that are three times too large."""
    rng = np.random.default_rng(seed)
    label = rng.integers(CLASSES, size=count)
    exact = 2.6 * (np.diag(apart)[label] + rng.normal(size=(count, CLASSES)))
    return {
        "id": np.array([f"{prefix}-{row}" for row in range(count)]),
        "f": (3 * exact).astype(np.float32),
        "y": label,
    }


@pytest.fixture
def network(bench: Bench) -> Bench:
    """An overconfident network with labelled data, not yet calibrated."""
    logits.make(bench, class_count=CLASSES)
    bench.ingest(logits.NAME, bench.write("held-out.npz", overconfident("held-out", 4000, 1)), "held-out")
    return bench


def by_default(bench: Bench, **settings: Any) -> tuple[Calibrated, MadeByAbers]:
    done = logits.calibrated(bench, promise=None, **settings)
    assert isinstance(done.made, MadeByAbers)
    return done, done.made


def test_an_overconfident_network_admits_more_than_its_softmax_would_and_keeps_the_promise(network: Bench) -> None:
    done, made = by_default(network, alpha=Decimal("0.1"))
    assert made.certified == BOTH
    assert made.average is None
    new = overconfident("new", 3000, 2)
    table = network.score(logits.NAME, network.write("new.npz", new), weighted=None).table
    decision = np.array([-1 if one is None else one for one in table.column("decision").to_pylist()])
    # With the temperature known exactly.
    softmax = np.exp(new["f"] / 3 - np.logaddexp.reduce(new["f"] / 3, axis=1, keepdims=True)).max(axis=1)
    assert (decision >= 0).mean() > (softmax >= 0.9).mean() + 0.1
    right = decision == new["y"]
    for classes in (decision, new["y"]):
        of_class = [right[(classes == number) & (decision >= 0)].mean() for number in range(CLASSES)]
        assert min(of_class) > 0.88, "three standard errors of 600 points below .92"
    assert network.rows("SELECT is_certified, certified_kinds FROM report.policy_v3") == [(True, ["predicted", "true"])]
    state = report(network.workspace(), logits.NAME, calibration_id=done.calibration_id)
    assert state.part.promised is Promised.BOTH


def test_with_too_few_labels_the_average_promise_takes_over_and_says_so(network: Bench) -> None:
    done, made = by_default(network, alpha=Decimal("0.003"))
    assert (made.certified, made.certificate and made.certificate.policy) == (None, None)
    assert made.average is not None
    with connect(network.engine) as connection:
        assert venn_abers.certificate_of(connection, done.calibration_id) == made.certificate
        assert venn_abers.average_of(connection, done.calibration_id) == made.average
        assert venn_abers.policy_of(connection, done.calibration_id) == made.average.policy
        assert venn_abers.certified_kinds(connection, done.calibration_id) is None
    assert network.rows("SELECT is_certified, thresholds, certified_kinds FROM report.policy_v3") == [
        (False, None, None)
    ]
    state = report(network.workspace(), logits.NAME, calibration_id=done.calibration_id)
    assert state.part.promised is Promised.AVERAGE
    said = " ".join(advice(state, command))
    assert "no policy passed at confidence 0.95" in said
    assert "so the average promise takes its place" in said
    assert "everything is rejected" not in said


def test_a_certificate_that_admits_less_than_the_softmax_gives_way_to_the_average_promise_with_figures(
    bench: Bench,
) -> None:
    logits.make(bench, class_count=CLASSES)
    rows = overconfident("held-out", 700, 1, apart=(3.5, 1.5, 1.5, 1.5))
    bench.ingest(logits.NAME, bench.write("held-out.npz", rows), "held-out")
    done, made = by_default(bench, alpha=Decimal("0.1"))
    assert made.certificate is not None
    assert made.average is not None
    aside = made.certificate.set_aside
    assert aside is not None
    assert (made.certificate.policy, made.certified, done.is_certified) == (None, None, False)
    assert made.policy == made.average.policy
    assert aside.admitted < aside.by_softmax < made.average.admitted
    with connect(bench.engine) as connection:
        stored = venn_abers.certificate_of(connection, done.calibration_id)
        assert stored == made.certificate
        assert venn_abers.policy_of(connection, done.calibration_id) == made.average.policy
        assert venn_abers.certified_kinds(connection, done.calibration_id) is None
    state = report(bench.workspace(), logits.NAME, calibration_id=done.calibration_id)
    assert state.part.promised is Promised.AVERAGE
    shown = calibration_payload(state, command)["calibration"]
    assert (shown["promise"], shown["asked_promise"]) == ("average", "strongest")
    assert shown["promise_sentence"] == Promised.AVERAGE.stated(Decimal("0.1"), None)
    said = " ".join(advice(state, command))
    points = made.certificate.points
    assert f"admits {share_text(aside.admitted / points)} of the {points:,} points of mc and vp" in said
    assert f"promises nothing and admits {share_text(aside.by_softmax / points)}" in said
    step = f"venn-admit calibrate {logits.NAME} --method venn-abers --score network --certify predicted"
    assert f"To ask for a certificate all the same: `{step}`." in said
    # It is one word away, and the same points decide it at the whole of eps.
    asked = logits.calibrated(bench, alpha=Decimal("0.1"), certify=["predicted"])
    assert isinstance(asked.made, MadeByAbers)
    assert asked.made.certificate is not None
    assert asked.made.certificate.policy is not None
    assert aside.admitted <= asked.made.certificate.admitted
