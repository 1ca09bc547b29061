"""Simulated: a standing certificate, looked at after every label, ever falls short in at most eps of the streams.

What is certified stays so, and the largest wealth so far decides: what is certified after the last label of a stream
is all that ever was. The laws are those of points with six scores whose share right is known at each.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.guarantees.draws import Draws
from venn_admit.core.calibrators.certified.forecast import chance_of_points
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.standing.chains import ClassChain, StandingChain, level_of_chain, standing_chain
from venn_admit.core.standing.state import admitting, advance, certified_counts, initial_state, start
from venn_admit.core.types import BoolArray, FloatArray

ALPHA, EPS, FIXED = 0.1, 0.1, 1_000
"""Streams are drawn until they have shown as much as a thousand of them."""
LEVELS = np.array([0.95, 0.9, 0.85, 0.8, 0.7, 0.6])
WEIGHT = np.array([0.3, 0.2, 0.15, 0.15, 0.1, 0.1])
GRADED = np.array([0.99, 0.95, 0.9, 0.85, 0.7, 0.6])
BELOW = np.full(6, 0.8999)
OF_TRUE = np.stack([np.full(6, 0.999), np.full(6, 0.9523)])
"""With frequencies of .3 and .7, .8997 is right of what is truly of class 0, and more of every other class."""
STAKES = np.array([0.9, 0.5, 0.25, 0.1, 0.05, -1.0])


@dataclass(frozen=True)
class Law:
    """Documents of points of C predicted classes; a wrong one is truly of the next class.

    right: (C, 6), the probability that a point of a score is right.
    size, documents: The points of a document, and the documents of a stream.
    largest: M.
    dependence: The probability that a point takes the uniform number of its document instead of its own.
    chains: How many chains are begun, one after the other, each with the documents from then on as evidence. A third of
        the documents are there when the first begins.
    frequencies: (C,) of the predicted classes; None: all alike.
    is_path: Whether true classes are promised too, by policies that must hold for all classes.
    """

    right: FloatArray
    documents: int
    size: int = 1
    largest: int = 1
    dependence: float = 0.0
    chains: int = 1
    frequencies: tuple[float, ...] | None = None
    is_path: bool = False

    def draw(self, rng: np.random.Generator) -> CertificatePoints:
        count = self.documents * self.size
        predicted, level = rng.choice(len(self.right), count, p=self.frequencies), rng.choice(6, count, p=WEIGHT)
        document = np.arange(count) // self.size
        shared = np.repeat(rng.random(self.documents), self.size)
        uniform = np.where(rng.random(count) < self.dependence, shared, rng.random(count))
        label = np.where(uniform < self.right[predicted, level], predicted, (predicted + 1) % len(self.right))
        return CertificatePoints(LEVELS[level], predicted, label, document)

    def chain(self, number: int) -> StandingChain:
        of_class = ClassChain(LEVELS, LEVELS, np.full(6, self.largest), 0, STAKES)
        at_start = self.documents // 3 if number == 1 else 0
        classes = (of_class,) * (len(self.right) * (2 if self.is_path else 1))
        return StandingChain(ALPHA, level_of_chain(EPS, number), classes, at_start, self.is_path)

    def share_right(self, predicted: int, least: float) -> float:
        """The share right of what is admitted of a class from a score on."""
        weight = WEIGHT * (least <= LEVELS)
        return float((weight * self.right[predicted]).sum() / weight.sum())

    @property
    def short(self) -> BoolArray:
        """(C, 6) whether a threshold admits fewer than 1 - alpha right; of a path, (2 C, 6) whether a policy does."""
        shares = (WEIGHT * self.right).cumsum(axis=1) / WEIGHT.cumsum()
        short: BoolArray = shares < 1 - ALPHA - 1e-12
        if not self.is_path:
            return short
        frequency = np.array(self.frequencies or (1 / len(self.right),) * len(self.right))[:, np.newaxis]
        right, wrong = ((frequency * WEIGHT * of).cumsum(axis=1) for of in (self.right, 1 - self.right))
        of_true: BoolArray = right / (right + np.roll(wrong, 1, axis=0)) < 1 - ALPHA - 1e-12
        any_class = np.concatenate([short, of_true]).any(axis=0)
        return np.broadcast_to(any_class, (2 * len(self.right), 6))


LAWS = {
    "points, two classes": Law(np.array([BELOW, GRADED]), 1_500),
    "points, ten classes": Law(np.array([BELOW] * 5 + [GRADED] * 5), 4_000),
    "documents, two classes": Law(np.array([BELOW, GRADED]), 800, size=8, largest=4, dependence=0.5),
    "documents, ten classes": Law(np.array([BELOW] * 5 + [GRADED] * 5), 1_500, size=4, largest=2, dependence=0.5),
    "new chains": Law(np.array([BELOW, GRADED]), 1_500, chains=5),
    "a true class": Law(OF_TRUE, 1_500, frequencies=(0.3, 0.7), is_path=True),
    "policies": Law(
        np.array([np.full(6, 0.999), [0.99, 0.97, 0.93, 0.93, 0.9, 0.9]]), 3_000, frequencies=(0.3, 0.7), is_path=True
    ),
    "a true class in documents": Law(
        OF_TRUE, 800, size=8, largest=5, dependence=0.3, frequencies=(0.3, 0.7), is_path=True
    ),
}
SHORT_EVERYWHERE = {"a true class", "a true class in documents"}
"""Every policy falls short, so that nothing should be certified."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_standing_certificate_seldom_ever_falls_short(name: str) -> None:
    law = LAWS[name]
    short = law.short
    draws, certified = Draws.as_sharp_as(FIXED, EPS), 0
    for stream in draws:
        points = law.draw(np.random.default_rng(stream))
        counts = []
        for number in range(1, law.chains + 1):
            chain = law.chain(number)
            begun = points.take(points.document >= law.documents * (number - 1) // law.chains)
            counts.append(certified_counts(chain, start(chain, initial_state(chain), begun)))
        draws.add(any(short[place, :count].any() for of in counts for place, count in enumerate(of)))
        certified += any(any(of) for of in counts)
    assert draws.seldom
    assert certified / draws.count > 0.5 or name in SHORT_EVERYWHERE


@pytest.mark.slow
@pytest.mark.parametrize(("name", "documents"), [("points, two classes", 1_000), ("documents, two classes", 500)])
def test_the_stream_of_a_classifier_seldom_ever_falls_short(name: str, documents: int) -> None:
    """Chains as a calibration begins them: one fixed by `knn`, for which all other labels count, those there at first.

    The next, which begins after half of the stream, is fixed by all labels before it, and later ones count.
    """
    law = replace(LAWS[name], documents=documents)
    draws, certified = Draws.as_sharp_as(FIXED, EPS), 0
    for stream in draws:
        points, failed = law.draw(np.random.default_rng(stream)), False
        of_knn, later = points.document < law.documents // 8, points.document >= law.documents // 2
        for number, proposing, evidence in ((1, of_knn, ~of_knn), (2, ~later, later)):
            chain = standing_chain(
                points.take(proposing), class_count=2, alpha=ALPHA, level=level_of_chain(EPS, number)
            )
            counting = points.take(evidence)
            counting = replace(counting, document=counting.document - counting.document.min())
            chain = replace(chain, at_start=law.documents // 8 if number == 1 else 0)
            counts = certified_counts(chain, start(chain, initial_state(chain), counting))
            least = admitting(chain, counts)
            is_short = [
                one is not None and law.share_right(place, one) < 1 - ALPHA - 1e-12 for place, one in enumerate(least)
            ]
            certified += any(counts)
            failed |= any(is_short)
        draws.add(failed)
    assert draws.seldom
    assert certified / draws.count > 0.5


DELAYS = [(20, 200, 0.6, 0.95), (20, 60, 0.0, 0.15), (50, 50, 0.0, 0.06)]
"""Mean delays of labels of right points and of errors, in documents; shares between which streams are certified."""


@pytest.mark.parametrize(("of_right", "of_wrong", "least", "most"), DELAYS)
def test_errors_that_are_labelled_later_let_a_chain_certify_what_falls_short(
    of_right: int, of_wrong: int, least: float, most: float
) -> None:
    """The promise takes labels that come at times which do not depend on what they say."""
    one = ClassChain(np.zeros(1), np.zeros(1), np.ones(1, dtype=np.int64), 0)
    none = ClassChain(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 0)
    chain, count, failed = StandingChain(ALPHA, 0.05, (one, none)), 3_000, 0
    for stream in range(200):
        rng = np.random.default_rng(stream)
        label = (rng.random(count) >= 0.899).astype(np.int64)
        order = np.argsort(np.arange(count) + rng.exponential(np.where(label, of_wrong, of_right)))
        points = CertificatePoints(np.ones(count), np.zeros(count, dtype=np.int64), label[order], np.arange(count))
        failed += certified_counts(chain, advance(chain, initial_state(chain), points))[0] > 0
    assert least <= failed / 200 <= most


def test_hard_points_that_are_labelled_later_let_a_chain_certify_what_falls_short() -> None:
    """Their time must not depend on what a point holds either, by which labels are foretold."""
    one = ClassChain(np.zeros(1), np.zeros(1), np.ones(1, dtype=np.int64), 0)
    none = ClassChain(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 0)
    chain, count, failed = StandingChain(ALPHA, 0.05, (one, none)), 3_000, 0
    for stream in range(200):
        rng = np.random.default_rng(stream)
        is_sure = rng.random(count) < 0.5
        label = (rng.random(count) >= np.where(is_sure, 0.97, 0.828)).astype(np.int64)
        order = np.argsort(np.arange(count) + rng.exponential(np.where(is_sure, 20, 600)))
        points = CertificatePoints(np.ones(count), np.zeros(count, dtype=np.int64), label[order], np.arange(count))
        failed += certified_counts(chain, advance(chain, initial_state(chain), points))[0] > 0
    assert 0.4 < failed / 200 < 0.7


AUDITED = 0.1


@pytest.mark.parametrize("size", [1, 4])
def test_labels_of_drawn_points_seldom_certify_what_falls_short(size: int) -> None:
    """The policy changes as the chain advances: what it rejects is reviewed, and of what it admits one in ten.

    One class is .8999 right at every score, the other is right until the third threshold.
    """
    law = Law(np.array([BELOW, GRADED]), 6_000 // size, size=size, largest=size, dependence=0.5)
    chain, short, passed = replace(law.chain(1), at_start=0), law.short, 0
    draws = Draws.as_sharp_as(FIXED, EPS)
    for stream in draws:
        rng = np.random.default_rng(stream)
        points, state = law.draw(rng), initial_state(chain)
        for first in range(0, law.documents, 300):
            counts = certified_counts(chain, state)
            least = np.array([np.inf if one is None else one for one in admitting(chain, counts)])
            part = points.take((points.document >= first) & (points.document < first + 300))
            of_class = np.where(np.isinf(least), 1.0, AUDITED)  # the smallest probability under the policy in force
            probability = np.where(part.score >= least[part.predicted], AUDITED, 1.0)
            weighted = replace(part, weight=of_class[part.predicted] / probability)
            state = advance(chain, state, weighted.take(rng.random(len(probability)) < probability))
        counts = certified_counts(chain, state)
        draws.add(any(short[place, :count].any() for place, count in enumerate(counts)))
        passed += any(counts)
    assert draws.seldom
    assert passed > draws.count / 2


@pytest.mark.parametrize("right", [0.93, 0.94, 0.95, 0.96])
def test_waiting_takes_at_most_half_as_many_labels_again_as_one_test_of_a_fixed_number(right: float) -> None:
    """The median of labels until one threshold is certified, against one binomial test that has a power of .8."""
    fixed = next(n for n in range(40, 2_000) if chance_of_points(n, 1 - right, 1.0, ALPHA, EPS / 2) >= 0.8)
    limit, streams, half = fixed * 3 // 2, 400, 0
    chain = StandingChain(ALPHA, EPS / 2, (ClassChain(np.zeros(1), np.zeros(1), np.ones(1, dtype=np.int64), 0),) * 2)
    for stream in range(streams):
        label = (np.random.default_rng(stream).random(limit) >= right).astype(np.int64)
        zeros = np.zeros(limit, dtype=np.int64)
        state = advance(chain, initial_state(chain), CertificatePoints(np.ones(limit), zeros, label, np.arange(limit)))
        half += float(state[0].most[0]) >= 2 / EPS
    assert half / streams >= 0.5
