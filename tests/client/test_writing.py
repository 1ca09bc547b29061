"""What the client stores, and the errors that it raises; the service is changed."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import venn_admit_client as client
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, NAME
from tests.holding import hold_training
from venn_admit.flows.data.create import create as create_classifier
from venn_admit.store.database.engine import create_engine
from venn_admit_client import Connection

pytestmark = pytest.mark.processes

Served = tuple[Program, str, str]


def test_a_classifier_from_the_first_row_to_the_first_label(connection: Connection) -> None:
    made = connection.create("made", list(CLASS_NAMES), logits_only=True)
    held_out, steps = samples.held_out(), []
    given: dict[str, Any] = {
        "logits": held_out["logits"],
        "labels": [CLASS_NAMES[label] for label in held_out["label"]],
        "ids": held_out["external_id"],
        "attributes": {"row": np.arange(len(held_out["label"]))},
        "progress": lambda done, rows: steps.append((done, rows)),
    }
    stored = made.ingest(**given)
    assert steps == [(1000, 1500), (1500, 1500)]
    assert (stored.rows, stored.new) == (1500, sum(stored.new_per_split.values())) == (1500, 1500)
    assert set(stored.new_per_split) == {"knn", "mc", "vp"} or set(stored.new_per_split) == {"mc", "vp"}
    assert made.ingest(**given).new == 0

    calibration = made.calibrate(method="venn-abers", promise="pointwise", alpha=0.2)
    assert (calibration.method, calibration.alpha, calibration.score) == ("venn-abers", Decimal("0.2"), "network")
    assert calibration.thresholds == (Decimal("0.8"),) * 3
    assert (calibration.kappa, calibration.usable_share, calibration.certificate) == (None, None, None)
    assert calibration.mc_points == stored.new_per_split["mc"]
    assert made.decide(logits=[9.0, 0.0, 0.0]).predicted == CLASS_NAMES[0]

    other = CLASS_NAMES[(held_out["label"][0] + 1) % 3]
    labelled = made.label({"held-out-0": other, "held-out-1": int(held_out["label"][1])})
    assert (labelled.rows, labelled.corrected, labelled.unchanged) == (2, 1, 1)


def test_a_calibration_by_venn_admit(connection: Connection) -> None:
    made = connection.classifier(NAME).calibrate(
        method="venn-admit", alpha="0.2", kappa=10, q_bins=[0, 1], delta=float("inf")
    )
    assert (made.method, made.kappa, made.q_bins, made.delta) == ("venn-admit", 10, (0, 1), float("inf"))
    assert made.usable_share is not None
    assert made.singleton_share is not None
    assert 0 < made.singleton_share <= made.usable_share <= 1


def test_a_calibration_that_admits_nothing_is_put_in_use_only_if_it_is_asked_for(connection: Connection) -> None:
    reviews = connection.classifier(NAME)
    before = reviews.uses()[0]
    looked = reviews.calibrate(method="venn-abers", alpha="0.001", certify="predicted", dry_run=True)
    assert (looked.id, reviews.uses()[0]) == (None, before)
    made = reviews.calibrate(method="venn-abers", alpha="0.001", certify="predicted")
    assert made.id is not None
    assert made.withheld is not None
    assert made.withheld == looked.withheld
    assert (made.withheld.in_use, made.withheld.share) == (before.calibration, 0.0)
    assert next(reviews.calibrations()).state == "withheld"
    done = reviews.use(made.id, reason="to see it")
    assert (done.before, done.is_changed, done.admits_nothing) == (before.calibration, True, True)
    newest = reviews.uses()[0]
    assert (newest.calibration, newest.reason, newest.origin) == (made.id, "to see it", "http")
    assert reviews.certificates()[0].calibration == made.id
    back = reviews.use(before.calibration)
    assert (back.before, back.admits_nothing) == (made.id, False)


def test_classifiers_are_listed_over_pages(served: Served, connection: Connection) -> None:
    names = {f"one of many {number}" for number in range(101)}
    engine = create_engine(served[0].url)
    for name in names:
        create_classifier(engine, name, ("a", "b"), seed=0, logits_only=True)
    engine.dispose()
    listed = [one.name for one in connection.classifiers()]
    assert names | {NAME} <= set(listed)
    assert len(listed) == len(set(listed))


def test_training_exemplars_that_wait_are_counted(served: Served, connection: Connection) -> None:
    classifier = connection.classifier(NAME)
    assert classifier.training_waiting() == 0
    hold_training(served[0].url)
    two = samples.exemplars("two", 2, seed=7)
    done = classifier.ingest(
        vectors=two["vector"], logits=two["logits"], labels=two["label"], ids=two["external_id"], split="train"
    )
    assert (done.new, done.training_waiting, done.recalibrations_due) == (2, 2, 0)
    assert classifier.training_waiting() == 2
    assert classifier.report().to_dict()["stored"]["training_waiting"] == 2


def test_errors_have_the_families_of_the_python_interface(served: Served, connection: Connection) -> None:
    with pytest.raises(client.NotFoundError, match="no classifier is named 'none'") as unknown:
        connection.classifier("none")
    assert (unknown.value.code, unknown.value.status) == ("unknown-classifier", 404)
    assert unknown.value.parameters == {"classifier": "none"}
    assert unknown.value.request_id
    with pytest.raises(client.ConflictError) as taken:
        connection.create(NAME, ["a", "b"], dimension=2)
    assert taken.value.code == "name-taken"
    made = connection.create("bare", ["a", "b"], dimension=2)
    with pytest.raises(client.NotReadyError) as bare:
        made.decide([0.0, 1.0])
    assert bare.value.code == "not-calibrated"
    with pytest.raises(client.NotFoundError):
        next(iter(made.decisions(calibration=99)))
    with client.connect(served[1], "va_1_" + "0" * 64) as stranger, pytest.raises(client.AccessError) as refused:
        stranger.classifiers()
    assert refused.value.code == "unauthenticated"
