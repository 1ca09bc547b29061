"""A certificate for true classes that stands: policies that hold for all classes, which labels advance together."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.flows.calibration.test_standing import (
    NEW,
    STANDING,
    advance,
    certificate,
    everything,
    give,
)
from tests.flows.logits import CLASSES, NAME, calibrated, exemplars, make
from tests.flows.recalibration import REQUEST
from tests.running import Bench
from tests.templates import CopyOf, Filled
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.monitoring.anytime.plan import Lamp
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.audits import set_audits
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.notify import update_behind
from venn_admit.flows.reports.report import report
from venn_admit.report.calibration.advice import advice
from venn_admit.report.monitoring.tables import chain_lines
from venn_admit.report.standing import standing_text

PATH: dict[str, Any] = {**STANDING, "alpha": "0.1", "certify": "predicted,true"}
NAMES = [f"class {number}" for number in range(CLASSES)]


def begin(bench: Bench) -> None:
    """Held-out data, a chain, and points that were scored and wait for their labels."""
    make(bench)
    bench.ingest(NAME, bench.write("held-out.npz", exemplars("held-out", 1500, seed=1)), "held-out")
    calibrated(bench, **PATH)
    unlabelled = {column: values for column, values in NEW.items() if column != "y"}
    bench.score(NAME, bench.write("new.npz", unlabelled), weighted=None)


@pytest.fixture(scope="module")
def begun_template(filled: Filled) -> str:
    return filled(begin)


@pytest.fixture
def begun(copy_of: CopyOf, begun_template: str) -> Bench:
    return copy_of(begun_template)


def certified(bench: Bench) -> int:
    """How many policies are; each class says the same."""
    found = certificate(bench).standing
    assert found is not None
    (same,) = {of.certified for of in found.classes}
    return same


def test_labels_advance_all_classes_together(begun: Bench) -> None:
    assert (certified(begun), certificate(begun).policy) == (0, None)
    give(begun, 0, 600)
    (made,) = advance(begun)
    assert made == begun.value("SELECT calibration_id FROM calibration_in_use_v1")
    found = certificate(begun)
    assert certified(begun) > 0
    assert found.policy is not None
    assert {(result.kind, result.number) for result in found.classes} == {
        (kind, number) for kind in ClassKind for number in range(CLASSES)
    }
    assert f"{certified(begun)} of " in standing_text(found, NAMES)
    assert " policies, the next in about " in standing_text(found, NAMES)
    assert found.standing is not None
    *others, last = found.standing.classes
    hopeless = replace(found.standing, classes=(*others, replace(last, documents=None)))
    said = standing_text(replace(found, standing=hopeless), NAMES)
    assert " policies, the next by no number of labels at the rates seen, because of true class 2." in said
    history = report(begun.workspace(), NAME, calibration_id=None).chains
    assert history is not None
    assert [list(one.evidence) for one in history.advances] == [[None]] * 2
    assert 0 < history.advances[0].evidence[None] < 1


def test_a_correction_is_counted_again_and_its_correction_too(begun: Bench) -> None:
    give(begun, 0, 600)
    advance(begun)
    before = everything(begun)
    rows: dict[str, Any] = {f"row{row}": (int(NEW["y"][row]) + 1) % CLASSES for row in range(0, 600, 3)}
    give(begun, 0, 0, **rows)
    advance(begun)
    assert certificate(begun).policy is None
    right: dict[str, Any] = {row: int(NEW["y"][int(row.removeprefix("row"))]) for row in rows}
    give(begun, 0, 0, **right)
    advance(begun)
    update_behind(begun.engine, None)
    advance(begun)
    assert everything(begun) == before


def test_decisions_are_replayed_by_the_policy_as_it_stood(begun: Bench) -> None:
    give(begun, 0, 600)
    advance(begun)
    again = {"id": np.array([f"again-{row}" for row in range(len(NEW["y"]))]), "f": NEW["f"]}
    begun.score(NAME, begun.write("again.npz", again), weighted=None)
    decided = [row.id for row in begun.rows("SELECT id FROM decision ORDER BY id DESC")][::60]
    stored = [replay(begun.workspace(), one) for one in decided]
    assert len({one.computed["reason"] for one in stored}) > 1
    assert stored[0].policy is not None
    assert stored[0].policy.promise_sentence.endswith(" of each predicted and of each true class")
    give(begun, 600, 1200)
    advance(begun)
    for one, before in zip(decided, stored, strict=True):
        found = replay(begun.workspace(), one)
        assert found.differing == ()
        assert (found.computed, found.policy) == (before.computed, before.policy)


@pytest.mark.parametrize(("kind", "lamp"), [(ClassKind.TRUE, Lamp.TRUE_CLASSES), (ClassKind.PREDICTED, Lamp.PROMISE)])
def test_an_alarm_for_any_class_withdraws_every_policy(begun: Bench, kind: ClassKind, lamp: Lamp) -> None:
    """Labels of decided points raise it; to end it by hand gives the policies back."""
    give(begun, 0, 600)
    advance(begun)
    later = exemplars("later", 1500, seed=9)
    begun.score(NAME, begun.write("later.npz", {one: later[one] for one in ("id", "doc", "f")}), weighted=None)
    predicted, turned = later["f"].argmax(axis=1), np.random.default_rng(3).random(1500) < 0.5
    of_others, other = (predicted != 2, 2) if kind is ClassKind.TRUE else (predicted == 2, 0)
    labels = np.where(turned & of_others, other, later["y"])
    path = begun.folder / "later.csv"
    path.write_text("\n".join(["external_id,label", *map("{},{}".format, later["id"], labels)]))
    label(begun.engine, NAME, LabelFile(path), selection="random", retract=False)
    said = update_monitor(begun.engine, NAME)
    assert (lamp, 2) in {(one.about.lamp, one.about.number) for one in said.harmful}
    assert chain_lines(said)[1].startswith(
        "The next recalibration withdraws what is certified, as an alarm stands for "
    )
    assert begun.rows(REQUEST)
    advance(begun)
    found = certificate(begun)
    assert (kind, 2) in found.withdrawn
    assert (found.policy, found.is_withdrawn) == (None, True)
    assert f"{kind} class 2" in standing_text(found, NAMES)
    assert len(chain_lines(update_monitor(begun.engine, NAME))) == 1
    assert not begun.rows(REQUEST)
    update_monitor(begun.engine, NAME, restart=True)
    advance(begun)
    assert certificate(begun).policy is not None
    assert not certificate(begun).withdrawn


@pytest.mark.parametrize("kinds", ["predicted", "predicted,true"])
def test_many_certificates_that_are_made_once_are_followed_by_advice_to_let_one_stand(begun: Bench, kinds: str) -> None:
    def advised() -> list[str]:
        found = report(begun.workspace(), NAME, calibration_id=None)
        return [said for said in advice(found, command) if "for all times" in said]

    for looks, alpha in enumerate(("0.2", "0.21", "0.22", "0.23"), start=2):
        assert advised() == []
        calibrated(begun, certify=kinds, alpha=alpha, score="network")
        assert report(begun.workspace(), NAME, calibration_id=None).looks[0].looks == looks
    (said,) = advised()
    asked = f"venn-admit calibrate {NAME} --method venn-abers --alpha 0.23 --score network --standing --certify {kinds}"
    assert said == (
        f"5 certificates looked at the labels of mc and vp; all hold together with confidence 0.775. `{asked}` begins "
        "one that makes a single statement for all times, while labels arrive."
    )
    calibrated(begun, certify=kinds, alpha="0.23", score="network", standing=True)
    assert advised() == []


def test_drawn_points_weigh_among_all_points(begun: Bench) -> None:
    """Points of a true class are predicted as any class, so the smallest probability is that of all of them."""
    give(begun, 0, 600)
    advance(begun)
    set_audits(begun.engine, NAME, rate=0.8, classes={"class 0": 0.4}, rejected=1.0)
    later = exemplars("later", 400, seed=9)
    begun.score(NAME, begun.write("later.npz", {one: later[one] for one in ("id", "f")}), weighted=None)
    drawn = begun.rows("SELECT external_id, probability FROM report.audit_draw_v1 WHERE is_drawn")
    truth = dict(zip(later["id"].tolist(), later["y"].tolist(), strict=True))
    path = begun.folder / "reviewed.csv"
    path.write_text("\n".join(["external_id,label", *(f"{row.external_id},{truth[row.external_id]}" for row in drawn)]))
    label(begun.engine, NAME, LabelFile(path), selection="review", retract=False)
    advance(begun)
    query = "SELECT external_id, weight FROM standing_evidence JOIN exemplar ON exemplar.id = exemplar_id"
    weights = {row.external_id: row.weight for row in begun.rows(query)}
    assert {row.probability for row in drawn} == {0.4, 0.8, 1.0}
    for row in drawn:
        assert (weights[row.external_id] or 1.0) == pytest.approx(0.4 / row.probability)
