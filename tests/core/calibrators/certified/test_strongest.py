"""The strongest certificate: which attempt is in use, what each may use up, and what is said of the other."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest

import venn_admit
from tests.core.calibrators.certified.laws import graded_points, network_points
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certificate import Certificate, SetAside
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.certified.strongest import LEAST_PART, certify_strongest
from venn_admit.core.calibrators.venn_abers.scores import network_score
from venn_admit.core.comparison.confidence import fit_temperature, scaled_confidence
from venn_admit.core.types import BoolArray, Float32Array, IntArray

TENTH = Decimal("0.1")
BOTH, PREDICTED = tuple(ClassKind), (ClassKind.PREDICTED,)
Points = tuple[CertificatePoints, CertificatePoints]


def draws(documents: int, frequencies: tuple[float, ...], sharpness: float) -> Points:
    rng = np.random.default_rng(1)
    proposing, evidence = (
        graded_points(rng, documents, frequencies=frequencies, sharpness=sharpness) for _ in range(2)
    )
    return proposing, evidence


def attempt(points: Points, kinds: tuple[ClassKind, ...], class_count: int = 2) -> Certificate:
    return certify(*points, class_count=class_count, alpha=TENTH, kinds=kinds, confidence=Decimal("0.975"))


def strongest(points: Points) -> Certificate:
    """The certificate of points whose score is how likely they are right, so that the softmax admits from .9 on."""
    by_softmax = int((points[1].score >= 0.9).sum())
    return certify_strongest(*points, class_count=2, alpha=TENTH, by_softmax=by_softmax)


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
    found = strongest(points)
    both, predicted = attempt(points, BOTH), attempt(points, PREDICTED)
    assert found.chains == (*both.chains, *predicted.chains)
    assert sum(chain.level for chain in both.chains) <= 0.025 + 1e-12
    chosen = both if kinds == BOTH else predicted
    assert (found.kinds, found.policy, found.classes) == (kinds, chosen.policy, chosen.classes)
    assert found.confidence == Decimal("0.95")
    assert from_document(to_document(found)) == found


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The logits, labels and documents that propose, of the evidence, and of a test."""

    parts: tuple[tuple[Float32Array, IntArray, IntArray], ...]

    @property
    def points(self) -> list[CertificatePoints]:
        return [
            CertificatePoints(network_score(logits), logits.argmax(axis=1), label, document)
            for logits, label, document in self.parts
        ]

    def by_softmax(self) -> list[BoolArray]:
        temperature = fit_temperature(*self.parts[0][:2])
        return [scaled_confidence(logits, temperature) >= 0.9 for logits, _, _ in self.parts]


def drawn(
    documents: int,
    frequencies: tuple[float, ...],
    apart: tuple[float, ...],
    overconfidence: float = 1.0,
    *,
    size: int = 1,
    seed: int = 0,
) -> Network:
    rng = np.random.default_rng(seed)
    return Network(
        tuple(
            network_points(rng, number, frequencies=frequencies, apart=apart, overconfidence=overconfidence, size=size)
            for number in (documents // 8, documents, 40_000 // size)
        )
    )


def reviews() -> Network:
    parts = []
    with (
        np.load(venn_admit.example_data() / "valid.npz") as held_out,
        np.load(venn_admit.example_data() / "test.npz") as test,
    ):
        for arrays, rows in ((held_out, slice(0, 1600)), (held_out, slice(1600, None)), (test, slice(None))):
            label = arrays["y"][rows].astype(np.int64)
            parts.append((arrays["f"][rows].astype(np.float32), label, np.arange(len(label))))
    return Network(tuple(parts))


EQUAL, TENTHS, UNEQUAL = (0.25,) * 4, (0.1,) * 10, tuple(np.linspace(2, 4, 10).tolist())
LAWS: dict[str, tuple[Callable[[], Network], tuple[ClassKind, ...], tuple[float, float, float]]] = {
    # What is taken, and what of the evidence both kinds, predicted classes alone and the softmax admit.
    "reviews": (reviews, BOTH, (0.835, 0.857, 0.576)),
    "two classes": (lambda: drawn(2000, (0.5, 0.5), (1.6, 1.6)), PREDICTED, (0.564, 0.771, 0.587)),
    "two, other labels": (lambda: drawn(2000, (0.5, 0.5), (1.6, 1.6), seed=1), BOTH, (0.759, 0.779, 0.601)),
    "two, overconfident": (lambda: drawn(2000, (0.5, 0.5), (1.6, 1.6), 4.0), PREDICTED, (0.547, 0.768, 0.587)),
    "one in ten": (lambda: drawn(4000, (0.9, 0.1), (2.2, 2.2)), PREDICTED, (0.850, 0.985, 0.914)),
    "one in thirty": (lambda: drawn(4000, (0.97, 0.03), (2.2, 2.2)), PREDICTED, (0.0, 0.976, 0.960)),
    "four, overconfident": (lambda: drawn(4000, EQUAL, (2.5,) * 4, 4.0), BOTH, (0.926, 0.965, 0.753)),
    "four, one of them hard": (lambda: drawn(4000, EQUAL, (3, 3, 3, 1)), BOTH, (0.873, 0.943, 0.758)),
    "four of unequal difficulty": (
        lambda: drawn(8000, EQUAL, (3, 1.8, 1.8, 1.4), 3.0, seed=1),
        PREDICTED,
        (0.463, 0.689, 0.492),
    ),
    "ten classes": (lambda: drawn(10_000, TENTHS, (3,) * 10), BOTH, (0.853, 0.934, 0.736)),
    "ten, overconfident": (lambda: drawn(5000, TENTHS, UNEQUAL, 3.0), PREDICTED, (0.0, 0.822, 0.699)),
    "tokens": (lambda: drawn(800, (0.4, 0.3, 0.3), (2, 2, 2), size=8), BOTH, (0.691, 0.830, 0.551)),
    "tokens, one in ten": (lambda: drawn(800, (0.9, 0.1), (2.2, 2.2), 2.0, size=8), BOTH, (0.912, 0.983, 0.909)),
}


@pytest.mark.parametrize("law", LAWS)
def test_no_less_is_admitted_than_by_the_softmax_if_a_certificate_admits_as_much(law: str) -> None:
    make, kinds, figures = LAWS[law]
    network = make()
    proposing, evidence, test = network.points
    _, of_evidence, of_test = network.by_softmax()
    class_count = network.parts[0][0].shape[1]
    both, predicted = (attempt((proposing, evidence), of, class_count) for of in (BOTH, PREDICTED))
    found = certify_strongest(
        proposing, evidence, class_count=class_count, alpha=TENTH, by_softmax=int(of_evidence.sum())
    )
    assert found.kinds == kinds
    seen = both.share or 0.0, predicted.share or 0.0, float(of_evidence.mean())
    assert seen == pytest.approx(figures, abs=0.001)
    assert found.policy is not None
    assert admit(test.score, test.predicted, found.policy).mean() >= of_test.mean() - 0.002


def test_without_a_certificate_that_admits_as_much_as_the_softmax_both_kinds_are_kept() -> None:
    proposing, evidence, _ = LAWS["two, other labels"][0]().points
    most = attempt((proposing, evidence), PREDICTED).admitted
    for by_softmax, kinds in ((most, PREDICTED), (most + 1, BOTH)):
        found = certify_strongest(proposing, evidence, class_count=2, alpha=TENTH, by_softmax=by_softmax)
        assert found.kinds == kinds


def test_both_kinds_are_given_up_for_more_than_twice_as_much() -> None:
    points = draws(4000, (0.97, 0.03), 30.0)
    both, predicted = attempt(points, BOTH), attempt(points, PREDICTED)
    assert both.policy is not None
    assert both.admitted < LEAST_PART * predicted.admitted
    found = strongest(points)
    assert found.policy == predicted.policy
    assert [(one.kind, one.number) for one in found.unpromised] == [(ClassKind.TRUE, 0), (ClassKind.TRUE, 1)]


def test_a_policy_that_is_set_aside_keeps_its_tests_and_needs_no_more_labels() -> None:
    found = strongest(draws(2000, (0.5, 0.5), 8.0))
    assert found.policy is not None
    aside = found.without_policy(1500)
    assert (aside.policy, aside.share, aside.p_value, aside.documents_needed) == (None,) * 4
    assert aside.classes == ()
    assert aside.set_aside == SetAside(found.policy, found.admitted, 1500, found.classes)
    assert (aside.chains, aside.lacking, aside.kinds) == (found.chains, found.lacking, found.kinds)
    assert from_document(to_document(aside)) == aside
    assert "set_aside" not in to_document(found)


def test_what_is_lacking_is_named_with_the_labels_that_it_takes() -> None:
    found = strongest(draws(100, (0.5, 0.5), 8.0))
    assert found.policy is None
    named = {(one.kind, one.number): one.documents_needed for one in found.lacking}
    assert named.keys() == {(kind, number) for kind in ClassKind for number in (0, 1)}
    assert all(needed is not None and needed > 100 for needed in named.values())
    # The least that certifies anything: a predicted class alone.
    assert found.documents_needed == min(named[ClassKind.PREDICTED, number] or 0 for number in (0, 1))


def test_a_true_class_without_evidence_leaves_predicted_classes() -> None:
    proposing, evidence = draws(3000, (0.5, 0.5), 20.0)
    found = strongest((proposing, evidence.take(evidence.label != 1)))
    assert found.kinds == PREDICTED
    assert found.policy is not None
    assert found.policy.thresholds[1] is None, "no prediction of it is right"
    assert [one.number for one in found.unpromised] == [0, 1]
