"""What is foretold of certificates comes true, and rests on the points that propose alone."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from tests.core.calibrators.certified.test_strongest import BOTH, LAWS, PREDICTED, TENTH, drawn
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.certified.strongest import foretell, foretell_strongest


@pytest.mark.parametrize("law", ["reviews", "one in ten", "four, overconfident", "ten classes", "tokens"])
def test_about_as_much_is_certified_as_is_foretold(law: str) -> None:
    network = LAWS[law][0]()
    proposing, evidence, test = network.points
    class_count = network.parts[0][0].shape[1]
    for kinds in (BOTH, PREDICTED):
        found = certify(proposing, evidence, class_count=class_count, alpha=TENTH, kinds=kinds)
        foretold = foretell(
            proposing,
            documents=len(np.unique(evidence.document)),
            points=len(evidence.score),
            class_count=class_count,
            alpha=TENTH,
            kinds=kinds,
        )
        assert found.policy is not None
        assert foretold.policy is not None
        shares = [admit(test.score, test.predicted, of).mean() for of in (found.policy, foretold.policy)]
        assert shares[1] == pytest.approx(shares[0], abs=0.15)
        assert foretold.admitted.mean() == pytest.approx(shares[1], abs=0.06)


@pytest.mark.parametrize(("by_softmax", "kinds"), [(0, BOTH), (590, PREDICTED), (620, BOTH)])
def test_the_strongest_promise_is_foretold_by_its_own_rule(by_softmax: int, kinds: tuple[str, ...]) -> None:
    """Both kinds admit 581 of 625 points, and predicted classes 607."""
    proposing, *_ = drawn(5000, (0.25,) * 4, (2.5,) * 4, 4.0).points
    found = foretell_strongest(
        proposing, documents=5000, points=5000, class_count=4, alpha=TENTH, by_softmax=by_softmax
    )
    assert (found.kinds, found.policy is not None) == (kinds, True)


def test_the_fewer_labels_there_will_be_the_less_is_foretold() -> None:
    proposing, *_ = drawn(5000, (0.5, 0.5), (1.6, 1.6)).points
    shares = [
        foretell(proposing, documents=n, points=n, class_count=2, alpha=TENTH, kinds=BOTH).admitted.mean()
        for n in (20, 500, 5000, 100_000)
    ]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    order = np.random.default_rng(0).permutation(len(proposing.score))
    shuffled = proposing.take(order)
    found = foretell(shuffled, documents=500, points=500, class_count=2, alpha=Decimal("0.1"), kinds=BOTH)
    again = foretell(
        replace(proposing, document=proposing.document + 7),
        documents=500,
        points=500,
        class_count=2,
        alpha=TENTH,
        kinds=BOTH,
    )
    assert found.policy == again.policy
    assert (found.admitted == again.admitted[order]).all()
