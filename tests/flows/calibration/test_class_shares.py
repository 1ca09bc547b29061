"""Class shares from calibration to decision: what is promised, what they need, and traffic that has others."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.flows.logits import CLASSES, NAME, calibrated, exemplars, make
from tests.running import Arrays, Bench, certificate_of
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.promises import Promised
from venn_admit.errors import Code, NotReadyError
from venn_admit.flows.decisions.replay import replay_newest
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.reports.report import report
from venn_admit.report.calibration.advice import advice

DECLARED = ClassShares((Decimal("0.6"), Decimal("0.2"), Decimal("0.2")), Decimal("0.05"))
ASKED: dict[str, Any] = {
    "certify": ("predicted",),
    "class_shares": DECLARED.shares,
    "class_shares_within": DECLARED.within,
}


def rows(prefix: str, count: int, seed: int, shares: tuple[float, ...] | None = None) -> Arrays:
    """Points of one document each, of the classes in equal shares or in others."""
    found = exemplars(prefix, 4 * count, seed)
    weights = np.array(shares or (1 / CLASSES,) * CLASSES)[found["y"]]
    taken = np.random.default_rng(seed).choice(4 * count, count, replace=False, p=weights / weights.sum())
    return {name: values[taken] for name, values in found.items() if name != "doc"}


@pytest.fixture
def held_out(bench: Bench) -> Bench:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", rows("held-out", 2000, 1)), "held-out")
    return bench


def test_they_are_in_settings_certificate_promise_and_decisions(held_out: Bench) -> None:
    found = calibrated(held_out, **ASKED)
    certificate = certificate_of(found)
    assert (certificate.class_shares, certificate.kinds) == (DECLARED, ("predicted",))
    without = certificate_of(calibrated(held_out, certify=("predicted",)))
    assert certificate.policy is not None
    assert without.policy is not None
    # There is more of class 0, so that errors among what is predicted as another class are more.
    under, other = (
        sum(2.0 if one is None else one for one in policy.thresholds[1:])
        for policy in (certificate.policy, without.policy)
    )
    assert under > other
    calibrated(held_out, **ASKED)
    held_out.score(NAME, held_out.write("new.npz", rows("new", 50, 2)), weighted=None)
    replayed = replay_newest(held_out.workspace(), NAME, str(rows("new", 50, 2)["id"][0]))
    assert replayed.policy is not None
    assert (replayed.differing, replayed.policy.promise) == ((), Promised.SHARES)
    (row,) = held_out.rows("SELECT class_shares, class_shares_within FROM calibrator WHERE class_shares IS NOT NULL")
    assert tuple(row) == (list(DECLARED.shares), DECLARED.within)


def test_with_a_loss_they_promise_the_mean_loss(held_out: Bench) -> None:
    loss = tuple(tuple(map(Decimal, row)) for row in (("0", "1", "0.05"), ("2", "0", "1"), ("0.5", "1", "0")))
    found = calibrated(held_out, **ASKED, loss=loss)
    certificate = certificate_of(found)
    assert (certificate.class_shares, certificate.loss) == (DECLARED, loss)
    assert certificate.policy is not None
    assert certificate.policy != certificate_of(calibrated(held_out, certify=("predicted",), loss=loss)).policy
    calibrated(held_out, **ASKED, loss=loss)
    decided = PointScorer(held_out.workspace()).score(NAME, None, logits=np.zeros(CLASSES, np.float32))
    assert decided.policy is not None
    assert decided.policy.promise is Promised.LOSS_IN_SHARES
    said = decided.policy.promise_sentence
    assert "the mean loss is at most 0.2 among the admitted of each predicted class, in traffic that has" in said


def refused(bench: Bench, message: str, asked: dict[str, Any] = ASKED) -> None:
    with pytest.raises(NotReadyError, match=message) as refusal:
        calibrated(bench, **asked)
    assert refusal.value.code is Code.NOT_CERTIFIABLE


def documents(prefix: str, count: int, seed: int, shares: tuple[float, ...] | None = None) -> Arrays:
    """The same in documents of one to four points, most of them of one class."""
    found = rows(prefix, count, seed, shares)
    order = np.argsort(found["y"] + 0.5 * np.random.default_rng(seed).random(count), kind="stable")
    sizes = np.random.default_rng(seed).integers(1, 5, count)
    document = np.repeat(np.arange(count), sizes)[:count]
    return {name: of[order] for name, of in found.items()} | {"doc": np.char.add(prefix, document.astype(str))}


def test_documents_of_several_points_are_certified_as_points_are(bench: Bench) -> None:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", documents("held-out", 2000, 1)), "held-out")
    certificate = certificate_of(calibrated(bench, **ASKED))
    without = certificate_of(calibrated(bench, certify=("predicted",)))
    assert certificate.documents < certificate.points / 2
    assert certificate.policy is not None
    assert without.policy is not None
    assert 0.2 < certificate.admitted / certificate.points < without.admitted / without.points
    bench.score(NAME, bench.write("new.npz", documents("new", 6000, 3, (0.6, 0.2, 0.2))), weighted=None)
    found = certificate_of(calibrated(bench, **ESTIMATED)).class_shares
    assert isinstance(found, EstimatedShares)
    assert found.points == 6000
    assert all(
        least < share < most for least, share, most in zip(found.least, (0.6, 0.2, 0.2), found.most, strict=True)
    )
    assert certificate_of(calibrated(bench, **ASKED)).class_shares == DECLARED
    refused(bench, "does not have the declared class shares", ASKED | {"class_shares": DECLARED.shares[::-1]})


def test_a_class_without_labels_is_refused(bench: Bench) -> None:
    make(bench)
    some = rows("held-out", 400, 1)
    bench.ingest(NAME, bench.write("held-out.npz", {name: of[some["y"] < 2] for name, of in some.items()}), "held-out")
    refused(bench, "hold no exemplar of class 'class 2', so that nothing is known of its share")


@pytest.mark.parametrize(
    ("shares", "leaves"), [((0.6, 0.2, 0.2), False), ((0.57, 0.19, 0.24), False), ((0.2, 0.2, 0.6), True)]
)
def test_traffic_that_has_other_shares_is_refused(held_out: Bench, shares: tuple[float, ...], leaves: bool) -> None:
    calibrated(held_out, certify=("predicted",))
    held_out.score(NAME, held_out.write("new.npz", rows("new", 600, 3, shares)), weighted=None)
    if leaves:
        refused(held_out, r"of 600 points, 0\.\d+ are predicted 'class \d' \(.*\), and with these shares .* would be")
    else:
        assert certificate_of(calibrated(held_out, **ASKED)).class_shares == DECLARED


ESTIMATED: dict[str, Any] = {"certify": ("predicted",), "class_shares_estimated": True}


def test_shares_are_estimated_from_traffic_at_every_calibration(held_out: Bench) -> None:
    calibrated(held_out, certify=("predicted",))
    refused(held_out, "estimated from recent traffic of .*, and there is none", ESTIMATED)
    held_out.score(NAME, held_out.write("new.npz", rows("new", 3000, 3, (0.6, 0.2, 0.2))), weighted=None)
    found = calibrated(held_out, **ESTIMATED)
    shares = certificate_of(found).class_shares
    assert isinstance(shares, EstimatedShares)
    assert shares.points == 3000
    assert all(
        least < share < most for least, share, most in zip(shares.least, (0.6, 0.2, 0.2), shares.most, strict=True)
    )
    (row,) = held_out.rows("SELECT class_shares, certify FROM calibrator WHERE class_shares_estimated")
    assert tuple(row) == (None, ["predicted"])


def test_traffic_that_tells_too_little_of_a_class_is_refused(held_out: Bench) -> None:
    calibrated(held_out, certify=("predicted",))
    held_out.score(NAME, held_out.write("new.npz", rows("new", 30, 3)), weighted=None)
    refused(held_out, r"may be anything from 0 to 0\.\d+, by 30 points and \d+ labels of the class", ESTIMATED)


def advised(bench: Bench) -> str:
    return " ".join(advice(report(bench.workspace(), NAME, calibration_id=None), command))


@pytest.mark.parametrize("asked", [ASKED, ESTIMATED], ids=["declared", "estimated"])
def test_a_report_says_that_traffic_has_left_them(held_out: Bench, asked: dict[str, Any]) -> None:
    calibrated(held_out, certify=("predicted",))
    held_out.score(NAME, held_out.write("new.npz", rows("new", 3000, 3, (0.6, 0.2, 0.2))), weighted=None)
    calibrated(held_out, **asked)
    assert "class shares" not in advised(held_out)
    held_out.score(NAME, held_out.write("newer.npz", rows("newer", 3000, 4, (0.2, 0.2, 0.6))), weighted=None)
    said = advised(held_out)
    assert "does not have the class shares that the certificate is for, so that nothing is promised: of 6,000" in said
    assert ("` estimates them again" in said) == (asked is ESTIMATED)


def test_a_report_says_so_of_documents_of_several_points(bench: Bench) -> None:
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", documents("held-out", 2000, 1)), "held-out")
    calibrated(bench, **ASKED)
    bench.score(NAME, bench.write("new.npz", documents("new", 3000, 3, (0.6, 0.2, 0.2))), weighted=None)
    assert "class shares" not in advised(bench)
    bench.score(NAME, bench.write("newer.npz", documents("newer", 6000, 4, (0.2, 0.2, 0.6))), weighted=None)
    assert "does not have the class shares" in advised(bench)
