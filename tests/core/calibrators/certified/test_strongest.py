"""The strongest certificate: which attempt is in use, what each may use up, and what is said of the other."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from tests.core.calibrators.certified.laws import graded_points
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certificate import Certificate, from_document, to_document
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.strongest import MOST_GIVEN_UP, certify_strongest

TENTH = Decimal("0.1")
BOTH, PREDICTED = tuple(ClassKind), (ClassKind.PREDICTED,)


def draws(documents: int, frequencies: tuple[float, ...], sharpness: float) -> tuple[CertificatePoints, ...]:
    rng = np.random.default_rng(1)
    return tuple(graded_points(rng, documents, frequencies=frequencies, sharpness=sharpness) for _ in range(2))


def attempt(points: tuple[CertificatePoints, ...], kinds: tuple[ClassKind, ...], class_count: int = 2) -> Certificate:
    return certify(*points, class_count=class_count, alpha=TENTH, kinds=kinds, confidence=Decimal("0.975"))


CASES = {
    "both are certified": ((2000, (0.5, 0.5), 8.0), BOTH),
    "true classes cost too much": ((4000, (0.97, 0.03), 30.0), PREDICTED),
    "nothing is certified": ((100, (0.5, 0.5), 8.0), PREDICTED),
}


@pytest.mark.parametrize("case", CASES)
def test_each_attempt_is_a_certificate_at_half_the_level_and_one_of_them_decides(case: str) -> None:
    """So that all policies which passed in either hold together, whichever is chosen afterwards."""
    law, kinds = CASES[case]
    points = draws(*law)
    found = certify_strongest(*points, class_count=2, alpha=TENTH)
    both, predicted = attempt(points, BOTH), attempt(points, PREDICTED)
    assert found.chains == (*both.chains, *predicted.chains)
    assert sum(chain.level for chain in both.chains) <= 0.025 + 1e-12
    chosen = both if kinds == BOTH else predicted
    assert (found.kinds, found.policy, found.classes) == (kinds, chosen.policy, chosen.classes)
    assert found.confidence == Decimal("0.95")
    assert from_document(to_document(found)) == found


def test_both_kinds_are_given_up_for_more_than_twice_as_much() -> None:
    points = draws(4000, (0.97, 0.03), 30.0)
    both, predicted = attempt(points, BOTH), attempt(points, PREDICTED)
    assert both.policy is not None
    assert predicted.admitted > MOST_GIVEN_UP * both.admitted
    found = certify_strongest(*points, class_count=2, alpha=TENTH)
    assert found.policy == predicted.policy
    assert [(one.kind, one.number) for one in found.unpromised] == [(ClassKind.TRUE, 0), (ClassKind.TRUE, 1)]


def test_what_is_lacking_is_named_with_the_labels_that_it_takes() -> None:
    found = certify_strongest(*draws(100, (0.5, 0.5), 8.0), class_count=2, alpha=TENTH)
    assert found.policy is None
    named = {(one.kind, one.number): one.documents_needed for one in found.lacking}
    assert named.keys() == {(kind, number) for kind in ClassKind for number in (0, 1)}
    assert all(needed is not None and needed > 100 for needed in named.values())
    # The least that certifies anything: a predicted class alone.
    assert found.documents_needed == min(named[ClassKind.PREDICTED, number] or 0 for number in (0, 1))


def test_a_true_class_without_evidence_leaves_predicted_classes() -> None:
    mc, vp = draws(3000, (0.5, 0.5), 20.0)
    without = np.flatnonzero(vp.label != 1)
    vp = replace(vp, **{name: getattr(vp, name)[without] for name in ("score", "predicted", "label", "document")})
    found = certify_strongest(mc, vp, class_count=2, alpha=TENTH)
    assert found.kinds == PREDICTED
    assert found.policy is not None
    assert found.policy.thresholds[1] is None, "no prediction of it is right"
    assert [one.number for one in found.unpromised] == [0, 1]
