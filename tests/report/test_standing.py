"""What is said of certificates that stand while labels arrive."""

from decimal import Decimal

import numpy as np

from tests.core.calibrators.certified.laws import graded_points
from tests.core.standing.test_standing import chain_of
from venn_admit.core.standing.certificate import standing_certificate
from venn_admit.core.standing.state import advance, initial_state
from venn_admit.report.standing import chain_payload, standing_text


def test_a_chain_that_has_ended_takes_no_further_labels() -> None:
    chain = chain_of(7, 1)
    found = standing_certificate(
        chain,
        advance(chain, initial_state(chain), graded_points(np.random.default_rng(8), 1_000)),
        number=1,
        alpha=Decimal("0.1"),
        confidence=Decimal("0.95"),
        documents=1_000,
        points=1_000,
        proposing=200,
    )
    assert "the next in about" in standing_text(found, ("a", "b"))
    assert chain_payload(found, has_ended=False)["classes"][0]["documents_needed"]
    said = standing_text(found, ("a", "b"), has_ended=True)
    assert "the next" not in said
    assert said.endswith("thresholds. It has ended, and nothing is promised of what it decides now.")
    assert {one["documents_needed"] for one in chain_payload(found, has_ended=True)["classes"]} == {None}
