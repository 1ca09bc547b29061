"""A next chain is named if it would admit clearly more than the one that labels advance."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from tests.core.calibrators.certified.laws import graded_points
from tests.core.standing.test_standing import ALPHA, LEVEL, chain_of
from venn_admit.core.calibrators.certified.certificate import NextChain
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.standing.certificate import standing_certificate
from venn_admit.core.standing.chains import StandingChain, level_of_chain, standing_chain
from venn_admit.core.standing.following import CLEARLY, foretell_following
from venn_admit.core.standing.state import State, advance, certified_counts, initial_state

EPS = 0.1


def of_chain(chain: StandingChain, points: CertificatePoints, withdrawn: tuple[int, ...] = ()) -> NextChain | None:
    documents = len(np.unique(points.document))
    counts = certified_counts(chain, advance(chain, initial_state(chain), points))
    return foretell_following(chain, counts, points, number=2, level=EPS, documents=documents, withdrawn=withdrawn)


def once_bad(seed: int) -> StandingChain:
    """A chain without thresholds for class 0, of which too few were right in what proposed."""
    points = graded_points(np.random.default_rng(seed), 400)
    wrong = (points.predicted == 0) & (np.arange(400) % 2 == 0)
    return standing_chain(
        replace(points, label=np.where(wrong, 1, points.label)), class_count=2, alpha=ALPHA, level=LEVEL
    )


def test_a_chain_that_lacks_a_class_is_followed_by_one_that_has_it() -> None:
    chain, points = once_bad(1), graded_points(np.random.default_rng(2), 3_000)
    assert chain.tested == [1]
    found = of_chain(chain, points)
    assert found is not None
    assert (found.chain, found.level, found.documents) == (2, level_of_chain(EPS, 2), 3_000)
    assert found.share - found.instead_of > 0.15
    later = graded_points(np.random.default_rng(3), 3_000)
    begun = standing_chain(points, class_count=2, alpha=ALPHA, level=found.level)
    counts = certified_counts(begun, advance(begun, initial_state(begun), later))
    least = np.array(
        [of.scores[count - 1] if count else np.inf for of, count in zip(begun.classes, counts, strict=True)]
    )
    assert np.mean(later.score >= least[later.predicted]) == pytest.approx(found.share, abs=0.1)


@pytest.mark.parametrize("size", [1, 5])
def test_a_chain_that_goes_on_well_is_followed_by_none(size: int) -> None:
    assert of_chain(chain_of(7, size), graded_points(np.random.default_rng(8), 2_000, size=size)) is None


def test_a_class_that_an_alarm_withdraws_counts_in_no_chain() -> None:
    chain, points = once_bad(1), graded_points(np.random.default_rng(2), 3_000)
    assert of_chain(chain, points, withdrawn=(0,)) is None


def test_few_labels_foretell_nothing() -> None:
    chain, points = once_bad(1), graded_points(np.random.default_rng(2), 3_000)
    assert of_chain(chain, points.take(points.document < 40)) is None
    assert of_chain(chain, replace(points, document=np.zeros(3_000, dtype=np.int64))) is None


def test_it_is_stored_with_the_certificate() -> None:
    following = NextChain(2, 0.1 / 6, 3_000, 0.8, 0.8 - CLEARLY)
    chain = chain_of(7, 1)
    state: State = initial_state(chain)
    about = {"alpha": Decimal("0.1"), "confidence": Decimal("0.9"), "documents": 0, "points": 0, "proposing": 200}
    found = standing_certificate(chain, state, number=1, following=following, **about)  # type: ignore[arg-type]
    assert from_document(to_document(found)) == found
