"""What is shown of a certificate: certified or not, classes never admitted, many classes, and what is lacking."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from math import inf

import numpy as np
import pytest
from rich.console import Console

from tests.core.calibrators.certified.laws import graded_points, points_of, with_groups
from venn_admit.core.calibrators.arguments import setting_text
from venn_admit.core.calibrators.average.policy import AveragePolicy, ClassSelection
from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.document import from_document
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.strongest import certify_strongest
from venn_admit.core.calibrators.class_shares import ClassShares
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.report.calibration.cells.average import never_text
from venn_admit.report.calibration.cells.certified import (
    certificate_payload,
    certificate_section,
    lacking_texts,
    section_of_tests,
)
from venn_admit.report.calibration.wording import drawn_section
from venn_admit.report.charts.drawn_certificate import caption, certificate_figure
from venn_admit.report.standing import MOST_CLASSES
from venn_admit_client.answers import certificate_of
from venn_admit_client.records import certificates
from venn_admit_client.records.calibrations import _certificate_lines

BOTH = tuple(ClassKind)


def certificate(
    documents: int,
    *,
    size: int = 1,
    class_count: int = 2,
    kinds: tuple[ClassKind, ...] = BOTH,
    alpha: str = "0.1",
    sharpness: float = 8.0,
    proposing: int | None = None,
) -> Certificate:
    rng = np.random.default_rng(0)
    frequencies = (1 / class_count,) * class_count
    knn, evidence = (
        graded_points(rng, count, size=size, frequencies=frequencies, sharpness=sharpness)
        for count in (proposing or documents, documents)
    )
    return certify(knn, evidence, class_count=class_count, alpha=Decimal(alpha), kinds=kinds)


def text(found: Certificate, class_count: int = 2, width: int = 110) -> str:
    names = [f"class {number}" for number in range(class_count)]
    console = Console(width=width)
    with console.capture() as captured:
        console.print(drawn_section(certificate_section(found, names)))
        console.print(drawn_section(section_of_tests(found, names)))
    return " ".join(captured.get().split())


def test_a_certified_policy() -> None:
    found = certificate(1500)
    said = text(found)
    assert (
        "Certified with confidence 0.95: of what is admitted, at least 0.9 is right in every predicted and every"
        in said
    )
    assert found.policy is not None
    assert f"class 0 from {found.policy.thresholds[0]:.4g}" in said
    assert "needed" not in said
    assert "1 one threshold" in said
    assert "passed" in said
    for kind in BOTH:
        for number in range(2):
            assert f"{kind} class {number}" in said


@pytest.mark.parametrize("size", [1, 5])
def test_what_is_lacking(size: int) -> None:
    found = certificate(40, size=size, kinds=BOTH[:1], proposing=2000)
    said = text(found)
    assert "Not certified: no policy passed at confidence 0.95" in said
    assert "where there are 40" in said
    assert ("documents labels" in said) == (size == 5)


def test_that_no_number_of_labels_would_do() -> None:
    wrong: CertificatePoints = points_of(np.full(60, 0.99), np.arange(60) % 2, (np.arange(60) + 1) % 2)
    found = certify(wrong, wrong, class_count=2, alpha=Decimal("0.1"), kinds=BOTH)
    said = text(found)
    assert "At the rates seen, no number of labels would do." in said
    assert "Policies tested None." in said


def test_a_class_that_is_never_admitted() -> None:
    rng = np.random.default_rng(1)

    def draw() -> CertificatePoints:
        predicted = rng.integers(2, size=2000)
        right = rng.random(2000) < np.where(predicted == 0, 0.97, 0.5)
        return points_of(np.full(2000, 0.9), predicted, np.where(right, predicted, 1 - predicted))

    found = certify(draw(), draw(), class_count=2, alpha=Decimal("0.1"), kinds=BOTH[:1])
    said = text(found)
    assert "class 1 never." in said
    assert "not: nothing is promised for this class or group, which is never admitted" in said
    (never,) = lacking_texts(found, ["no", "yes"])
    assert never == "Never admitted, since no threshold passed: predicted yes (no number of labels would do)."
    (lacking,) = found.lacking
    some = replace(found, lacking=(replace(lacking, documents_needed=5100),))
    (never,) = lacking_texts(some, ["no", "yes"])
    assert never.endswith("yes (about 5,100 labels), at the rates seen; there are 2,000 in mc and vp.")
    assert lacking_texts(certificate(1500), ["no", "yes"]) == ()


def test_groups_and_the_shifts_that_a_certificate_survives() -> None:
    rng = np.random.default_rng(1)
    regions = {"region": ({"east": 0.5, "north": 0.4, "west": 0.1}, {"west": 0.3})}
    knn, evidence = (with_groups(rng, graded_points(rng, 3000, sharpness=20.0), regions) for _ in range(2))
    kinds = ("true", "predicted*group:region")
    found = certify(knn, evidence, class_count=2, alpha=Decimal("0.1"), kinds=kinds)
    said = text(found)
    assert "is right in every predicted and every true class, and in every predicted class of every region." in said
    assert "Each group has a threshold of its own" in said
    assert "predicted class 0, region east" in said
    assert "predicted class 1, region west" in said
    assert "The promise for true classes holds whatever the shares of the classes become" in said
    of_groups = "The promise for predicted classes of each region holds whatever the mix of these groups becomes"
    assert of_groups in said
    in_shares = text(replace(found, class_shares=ClassShares((Decimal("0.7"), Decimal("0.3")))))
    assert "The promise for true classes holds whatever" in in_shares
    assert of_groups not in in_shares
    assert "whatever" not in text(certificate(1500, kinds=BOTH[:1]))
    alone = certify(knn, evidence, class_count=2, alpha=Decimal("0.1"), kinds=("group:region",))
    assert all(chain in text(alone) for chain in ("1 region east", "2 region north"))
    drawn = certificate_figure(alone, ["class 0", "class 1"])
    assert {"east", "north"} <= {axes.get_title() for axes in drawn.axes}
    told = certificate_of(
        certificates.Certificate, json.loads(json.dumps(certificate_payload(alone, ["class 0", "class 1"])))
    )
    assert {(one.name, one.group) for one in told.classes} == {(None, of) for of in ("east", "north", "west")}


def test_true_classes_that_the_strongest_promise_does_not_reach() -> None:
    rng = np.random.default_rng(1)
    knn, evidence = (graded_points(rng, 4000, frequencies=(0.97, 0.03), sharpness=30.0) for _ in range(2))
    found = certify_strongest(
        knn, evidence, class_count=2, alpha=Decimal("0.1"), by_softmax=int((evidence.score >= 0.9).sum())
    )
    said = text(found)
    assert "at least 0.9 is right in every predicted class." in said
    assert "Nothing is promised for true classes: class 0, class 1. A policy for them" in said
    assert "A policy for them and for every predicted class passed too, and admits .298: less than half" in said
    assert re.findall(r"true class \d .*?not (\S+)", said) == ["enough", "enough"]
    assert "enough: labels are not what is lacking." in said
    document = certificate_payload(found, ["class 0", "class 1"])
    told = certificate_of(certificates.Certificate, json.loads(json.dumps(document)))
    (_, said) = _certificate_lines(told, on_average=False)
    assert said == "  nothing is promised for true class 0, true class 1 (not for lack of labels)"


@pytest.mark.parametrize(
    ("right", "said"), [(0.6, "no number of labels would do"), (0.92, "it would take about 15,000 labels")]
)
def test_true_classes_take_as_many_labels_as_the_class_that_holds_them_up(right: float, said: str) -> None:
    rng = np.random.default_rng(3)

    def draw() -> CertificatePoints:
        """right: how often predictions of the third class, five in a hundred, are right."""
        predicted = rng.choice(3, 4000, p=(0.6, 0.35, 0.05))
        is_right = rng.random(4000) < np.where(predicted == 2, right, 0.97)
        return points_of(rng.uniform(0.5, 1, 4000), predicted, np.where(is_right, predicted, (predicted + 1) % 2))

    found = certify_strongest(draw(), draw(), class_count=3, alpha=Decimal("0.1"), by_softmax=0)
    assert found.kinds == BOTH[:1]
    closest = {(one.kind, one.number): one.documents_needed for one in found.closest_for_unpromised}
    assert closest.keys() == {(kind, number) for kind in BOTH for number in range(3)}
    others = [one for (kind, number), one in closest.items() if (kind, number) != (ClassKind.PREDICTED, 2)]
    assert all(one is not None and one < (found.needed_for_unpromised or inf) for one in others)
    assert closest[ClassKind.PREDICTED, 2] == found.needed_for_unpromised
    shown = text(found, 3)
    assert "Nothing is promised for true classes: class 0, class 1, class 2. All classes of both kinds must" in shown
    assert f"at the rates seen, {said}" in shown
    assert "because of predicted class 2." in shown


def test_a_policy_that_is_set_aside() -> None:
    found = certificate(1500).without_policy(1400)
    said = text(found)
    assert (
        "Certified and not in use: a policy that passed at confidence 0.95 for predicted class 0, predicted class 1, "
        "true class 0, true class 1 admits "
    ) in said
    assert "less than the softmax at 1 - alpha, which promises nothing and admits .933." in said
    assert said.count("passed") > 4
    assert "labels would do" not in said
    payload = json.loads(json.dumps(certificate_payload(found, ["no", "yes"]), allow_nan=False))
    assert from_document(payload) == found
    told = certificate_of(certificates.Certificate, payload)
    assert (told.is_certified, told.thresholds, told.admitted) == (False, None, None)
    assert told.set_aside is not None
    shares = payload["set_aside"]["admitted"] / 1500, 1400 / 1500
    assert (told.set_aside.admitted, told.set_aside.by_softmax) == shares
    assert [(one.kind, one.name) for one in told.set_aside.classes] == [
        ("predicted", "no"),
        ("predicted", "yes"),
        ("true", "no"),
        ("true", "yes"),
    ]


def test_of_many_classes_those_nearest_to_failing_are_shown() -> None:
    found = certificate(8000, class_count=30, sharpness=30.0)
    said = text(found, 30)
    shown = [f"{kind} class {number} " in said for kind in BOTH for number in range(30)]
    assert sum(shown) == MOST_CLASSES
    assert f"{MOST_CLASSES} of 60 classes shown: those with the largest p-values." in said
    assert "Every predicted class is admitted from some score on." in said


def test_one_of_many_classes_that_is_never_admitted_is_named() -> None:
    found = certificate(8000, class_count=30, sharpness=30.0)
    assert found.policy is not None
    thresholds = (None, *found.policy.thresholds[1:])
    said = text(replace(found, policy=replace(found.policy, thresholds=thresholds)), 30)
    assert "1 of 30 predicted classes is never admitted: class 0." in said


def test_classes_that_lack_labels_for_the_average_promise_are_counted_if_they_are_many() -> None:
    lacking = ClassSelection(labels=3, wrong=0, batch=3, threshold=None, admitted=0, admitted_wrong=0)
    found = AveragePolicy(Decimal("0.1"), documents=90, points=90, traffic=0, admitted=0, classes=(lacking,) * 30)
    said = never_text(found, [f"class {number}" for number in range(30)])
    assert "Never admitted for lack of labels: class 0 (3)" in said
    assert "class 5 (3) and 24 others; it takes at least" in said


def test_of_many_chains_it_is_said_how_many_are_shown() -> None:
    found = certificate(8000, class_count=30, kinds=BOTH[:1], sharpness=30.0)
    assert f"The first {MOST_CLASSES} of 30 chains are shown." in text(found, 30)
    assert caption(found).endswith("6 of 30 chains shown: those that admit least.")
    few = certificate(400)
    assert "chains are shown" not in text(few)
    assert "chains shown" not in caption(few)


def test_the_payload_holds_the_whole() -> None:
    found = certificate(60)
    payload = json.loads(json.dumps(certificate_payload(found, ["no", "yes"]), allow_nan=False))
    assert (payload["certified"], payload["classes"]) == (False, ["no", "yes"])
    assert from_document(payload) == found


@pytest.mark.parametrize(("size", "kinds"), [(1, BOTH[:1]), (1, BOTH), (5, BOTH)])
def test_the_tests_are_drawn_along_the_thresholds(size: int, kinds: tuple[ClassKind, ...]) -> None:
    found = certificate(400, size=size, kinds=kinds, sharpness=4.0)
    chains = [chain for chain in found.chains if chain.steps]
    drawn = certificate_figure(found, ["left", "right"]).axes
    assert len(drawn) == 2 * len(chains)
    assert any(not step.passed for chain in chains for step in chain.steps)
    for chain, shares, p_values in zip(chains, drawn[::2], drawn[1::2], strict=True):
        line, passed, failed, level = p_values.lines
        assert np.asarray(line.get_xdata()).tolist() == [step.admitted for step in chain.steps]
        assert len(np.asarray(passed.get_xdata())) == sum(step.passed for step in chain.steps)
        assert len(np.asarray(failed.get_xdata())) == sum(not step.passed for step in chain.steps)
        assert np.asarray(level.get_ydata())[0] == chain.level
        # Points have a confidence limit, which crosses the target where the p-value crosses the level.
        assert len(shares.collections) == (size == 1)
        if size == 1 and kinds == BOTH[:1]:
            limit = np.asarray(shares.collections[0].get_paths()[0].vertices)[1 : len(chain.steps) + 1, 1].tolist()
            assert [value >= 0.9 for value in limit] == [step.p_value <= chain.level for step in chain.steps]


def test_a_share_right_has_no_limit_where_the_test_is_about_other_shares() -> None:
    rng = np.random.default_rng(0)
    knn, evidence = (graded_points(rng, 900, size=1, frequencies=(0.5, 0.5), sharpness=8.0) for _ in range(2))
    declared = ClassShares((Decimal("0.8"), Decimal("0.2")))
    found = certify(knn, evidence, class_count=2, alpha=Decimal("0.1"), kinds=BOTH[:1], class_shares=declared)
    assert "is tested (in the calibration data, not in the class shares of traffic), and" in caption(found)
    assert not any(axes.collections for axes in certificate_figure(found, ["left", "right"]).axes[::2])


def test_a_confidence_that_is_asymptotic_is_called_so() -> None:
    found = replace(certificate(400, size=5, kinds=BOTH[:1], sharpness=30.0), test=DocumentTest.ASYMPTOTIC)
    assert "Certified with asymptotic confidence 0.95: of what is admitted, at least 0.9 is right in" in text(found)
    assert "is valid only if there are very many of them" in text(found)
    assert "asymptotic" not in text(replace(found, test=DocumentTest.FINITE_SAMPLE))
    settings = make_venn_abers_settings(2, 5, certify=["true"], test="asymptotic")
    assert setting_text(settings).endswith("certify true with asymptotic confidence 0.95")
    said = Promised.TRUE.stated(settings.alpha, settings.confidence, settings.test)
    assert said.startswith("with asymptotic confidence 0.95 over the calibration labels, at least 0.9 are right")


def test_a_mean_loss_is_shown_of_classes_that_are_tested_and_says_how_it_is_weighed() -> None:
    rng = np.random.default_rng(0)
    knn, evidence = (graded_points(rng, 1200, size=1, frequencies=(0.8, 0.2), sharpness=8.0) for _ in range(2))
    loss = tuple(tuple(Decimal(cost) for cost in row) for row in (("0", "2"), ("10", "0")))
    found = certify(
        knn,
        evidence,
        class_count=2,
        alpha=Decimal("0.1"),
        kinds=BOTH[:1],
        loss=loss,
        class_shares=ClassShares((Decimal("0.7"), Decimal("0.3"))),
    )
    assert [one.mean_loss is None for one in found.lacking] == [True, False], "one class has no chance"
    assert "predicted class 0 .000 - - - not" in text(found)
    assert f"predicted class 1 .051 .984 {found.lacking[1].mean_loss:.4g} .128 not" in text(found)
    assert "counts for more in p-values and mean losses" in text(found)
    assert "weighed by the class shares of traffic" in caption(found)


def test_a_mean_loss_is_drawn_against_alpha() -> None:
    rng = np.random.default_rng(0)
    knn, evidence = (graded_points(rng, 1500, frequencies=(0.5, 0.5), sharpness=8.0) for _ in range(2))
    loss = tuple(tuple(Decimal(cost) for cost in row) for row in (("0", "2"), ("0.5", "0")))
    found = certify(knn, evidence, class_count=2, alpha=Decimal("0.1"), kinds=BOTH[:1], loss=loss)
    assert "the largest mean loss of a class that is tested, and the dotted target" in caption(found)
    chains = [chain for chain in found.chains if chain.steps]
    assert chains
    for chain, losses in zip(chains, certificate_figure(found, ["left", "right"]).axes[::2], strict=True):
        expected = []
        for step in chain.steps:
            (number,) = chain.predicted
            (threshold,) = step.thresholds
            assert threshold is not None
            admitted = (evidence.predicted == number) & (evidence.score >= threshold)
            # An error of a predicted class has one cost, as there are two classes.
            wrong = admitted & (evidence.label != number)
            expected.append(float(loss[1 - number][number]) * wrong.sum() / admitted.sum())
        assert np.asarray(losses.lines[0].get_ydata()).tolist() == pytest.approx(expected)
        assert np.asarray(losses.lines[-1].get_ydata()).tolist() == [0.1, 0.1]
        assert not losses.collections, "the limit is one of shares"
    assert "largest mean loss" in {axes.get_ylabel() for axes in certificate_figure(found, ["left", "right"]).axes}
