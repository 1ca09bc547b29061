"""What the client says of how a classifier stands: its monitor, the alarms, and the certified policy."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

import venn_admit
import venn_admit_client as client
from tests.api.test_reading import at_one_time
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, NAME, SCORED_ROWS
from venn_admit_client import Classifier, Connection

pytestmark = pytest.mark.processes

Served = tuple[Program, str, str]


def test_the_monitor_and_its_alarms(served: Served, classifier: Classifier) -> None:
    quiet = classifier.monitor()
    assert (quiet.classifier, quiet.alarm, quiet.alarms, quiet.documents) == (NAME, False, (), 0)
    assert classifier.alarms() == ()

    wrong = (samples.scored()["label"] + 1) % samples.CLASS_COUNT
    classifier.label({f"scored-{row}": int(label) for row, label in enumerate(wrong)})
    told = classifier.monitor()
    assert (told.alarm, told.documents, told.points) == (True, SCORED_ROWS, SCORED_ROWS)
    with venn_admit.connect(served[0].url) as direct:
        assert at_one_time(told.to_dict()) == at_one_time(direct.classifier(NAME).monitor().to_dict())

    assert classifier.alarms() == told.alarms
    assert {one.lamp for one in told.alarms} >= {"promise", "true_classes"}
    for one, document in zip(told.alarms, told.to_dict()["alarms"], strict=True):
        assert (one.id, one.document) == (document["alarm"], document)
        assert one.harmful == (one.lamp in {"promise", "partitions"})
        assert one.label == document["class" if one.lamp.endswith("true_classes") else "predicted_class"]
        assert (one.match_counts is not None) == (one.lamp in {"partitions", "mix"})
        assert one.target == Decimal("0.8")
        assert abs(datetime.now(UTC) - one.since).total_seconds() < 600


@pytest.mark.parametrize(("alpha", "certified"), [("0.2", True), ("0.0001", False)])
def test_the_policy(connection: Connection, alpha: str, certified: bool) -> None:
    made = connection.create(f"policy at {alpha}", list(CLASS_NAMES), logits_only=True)
    with pytest.raises(client.NotReadyError):
        made.policy()
    held_out = samples.held_out()
    made.ingest(logits=held_out["logits"], labels=held_out["label"], ids=held_out["external_id"])
    plain = made.calibrate(method="venn-abers", promise="pointwise", alpha=alpha)
    calibration = made.calibrate(method="venn-abers", alpha=alpha, certify="predicted", confidence="0.9")
    policy = made.policy()
    assert (policy.classifier, policy.calibration) == (made.name, calibration.id)
    assert (policy.is_certified, policy.kinds, policy.confidence) == (certified, ("predicted",), Decimal("0.9"))
    assert policy.test == "finite-sample"
    if certified:
        assert policy.thresholds == dict(zip(CLASS_NAMES, policy.to_dict()["thresholds"], strict=True))
        assert any(threshold is not None for threshold in policy.thresholds.values())
    else:
        assert policy.thresholds is None
    assert calibration.certificate is not None
    assert policy.to_dict().items() >= calibration.certificate.document.items()
    assert made.policy(calibration=calibration.id) == policy
    with pytest.raises(client.InvalidInputError, match="was asked for no certificate"):
        made.policy(calibration=plain.id)


def test_the_average_promise_is_exported_and_is_no_certificate(connection: Connection) -> None:
    made = connection.create("on average", list(CLASS_NAMES), logits_only=True)
    held_out = samples.held_out()
    made.ingest(logits=held_out["logits"], labels=held_out["label"], ids=held_out["external_id"])
    calibration = made.calibrate(promise="average", alpha="0.2")
    assert (calibration.on_average, calibration.certificate) == (True, None)
    assert "promised on average: at most 0.2 wrong" in str(calibration)
    shown = made._transport.get("classifiers", made.name, "policy")
    assert (shown["calibration"], shown["score"]) == (calibration.id, "network")
    assert shown["average"]["class_names"] == list(CLASS_NAMES)
    exported = [None if one is None else float(one) for one in calibration.thresholds]
    assert shown["average"]["thresholds"] == exported
    assert any(one is not None for one in exported)
    with pytest.raises(client.InvalidInputError, match="but for the average promise"):
        made.policy()


def test_a_policy_is_a_certificate() -> None:
    assert issubclass(client.Policy, venn_admit.Certificate)


def test_what_true_classes_lack_is_named_with_the_labels_it_takes(connection: Connection) -> None:
    made = connection.create("lacking", list(CLASS_NAMES), logits_only=True)
    held_out = samples.held_out()
    made.ingest(logits=held_out["logits"], labels=held_out["label"], ids=held_out["external_id"])
    found = made.calibrate(alpha="0.01").certificate
    assert found is not None
    lacking = [one for one in found.classes if not one.is_promised]
    assert {one.name for one in lacking if one.kind == "true"} == set(CLASS_NAMES)
    told = found.document["lacking"]
    assert [(one.kind, one.documents_needed) for one in lacking] == [
        (one["kind"], one["documents_needed"]) for one in told
    ]
    # Every document is one point.
    assert [one.labels_needed for one in lacking] == [one.documents_needed for one in lacking]
    assert any(one.labels_needed is not None and one.labels_needed > found.document["points"] for one in lacking)


def test_a_chain_that_has_just_begun_has_no_evidence(connection: Connection) -> None:
    made = connection.create("chains", list(CLASS_NAMES), logits_only=True)
    held_out = samples.held_out()
    made.ingest(logits=held_out["logits"], labels=held_out["label"], ids=held_out["external_id"])
    for _ in range(2):
        found = made.calibrate(standing=True, alpha="0.3", score="network").certificate
    assert found is not None
    assert (found.is_certified, found.document["points"]) == (False, 0)
    assert {one.admitted for one in found.classes} == {0}
    assert all(one.labels_needed == one.documents_needed is not None for one in found.classes)
