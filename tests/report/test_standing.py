"""What is said of certificates that stand while labels arrive."""

from dataclasses import replace

import numpy as np

from tests.core.calibrators.certified.laws import graded_points
from tests.core.standing.test_standing import certificate_of, chain_of
from venn_admit.core.calibrators.certified.certificate import LaterChain, NextChain
from venn_admit.core.standing.chains import standing_chain
from venn_admit.core.standing.state import advance, initial_state
from venn_admit.report.calibration.cells.certified import outcome_text
from venn_admit.report.standing import chain_payload, standing_text


def test_what_was_certified_and_is_withdrawn_is_not_said_to_have_never_passed() -> None:
    chain = chain_of(7, 1)
    state = advance(chain, initial_state(chain), graded_points(np.random.default_rng(8), 1_000))
    before = certificate_of(chain, initial_state(chain), 0)
    assert outcome_text(before, ("a", "b")).startswith("Not certified yet")
    withdrawn = certificate_of(chain, state, 1_000, withdrawn=(0, 1))
    assert outcome_text(withdrawn, ("a", "b")) == "What was certified is withdrawn, so everything is rejected."
    one = certificate_of(chain, state, 1_000, withdrawn=(0,))
    assert (one.is_withdrawn, one.policy is not None) == (False, True)


def test_a_chain_that_has_ended_takes_no_further_labels() -> None:
    chain = chain_of(7, 1)
    state = advance(chain, initial_state(chain), graded_points(np.random.default_rng(8), 1_000))
    found = certificate_of(chain, state, 1_000)
    assert "the next in about" in standing_text(found, ("a", "b"))
    assert chain_payload(found, has_ended=False, later=None)["following"] is None
    assert found.standing is not None
    followed = replace(found, standing=replace(found.standing, following=NextChain(2, 0.1 / 6, 1_000, 0.83, 0.71)))
    assert standing_text(followed, ("a", "b")).endswith(
        ". A new chain, fixed by the labels of today, would admit about .83 instead of .71 after 1,000 further "
        "labels; it would be chain 2, with 0.017 of 1 - confidence."
    )
    assert chain_payload(followed, has_ended=False, later=None)["following"]["share"] == 0.83
    assert chain_payload(followed, has_ended=True, later=None)["following"] is None
    assert "new chain" not in standing_text(followed, ("a", "b"), has_ended=True)
    later = LaterChain(2, 9, is_in_use=False)
    of_both = chain_payload(followed, has_ended=False, later=later)
    assert (of_both["following"], of_both["later"]) == (None, {"chain": 2, "calibration": 9, "is_in_use": False})
    said = standing_text(followed, ("a", "b"), has_ended=True, later=later)
    assert said.endswith("now. Chain 2 was begun since, and its calibration 9 may be put in use instead.")
    assert "new chain" not in standing_text(followed, ("a", "b"), later=later)
    assert chain_payload(found, has_ended=False, later=None)["classes"][0]["documents_needed"]
    said = standing_text(found, ("a", "b"), has_ended=True)
    assert "the next" not in said
    assert said.endswith("thresholds. It has ended, and nothing is promised of what it decides now.")
    assert {one["documents_needed"] for one in chain_payload(found, has_ended=True, later=None)["classes"]} == {None}


def test_a_chain_without_thresholds_says_that_the_next_one_is_to_be_begun() -> None:
    proposing = graded_points(np.random.default_rng(7), 200)
    wrong = replace(proposing, label=1 - proposing.predicted)
    chain = standing_chain(wrong, class_count=2, alpha=0.1, level=0.05)
    found = certificate_of(chain, initial_state(chain), 0)
    assert "no class has thresholds to certify, whatever labels come; they fix the next" in standing_text(found, "ab")
    later = LaterChain(2, 9, is_in_use=True)
    assert standing_text(found, "ab", later=later).endswith(
        ": no class has thresholds to certify, whatever labels come. Chain 2 was begun since, and its calibration 9 is "
        "in use."
    )
    assert "; they fix the next" not in standing_text(found, "ab", later=later)
