"""A standing certificate: advanced by new labels only, it is what all labels at once give."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.core.calibrators.certified.laws import graded_points
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.monitoring.anytime.plan import LEVEL as LEVEL_OF_LAMPS
from venn_admit.core.standing.against import from_document, to_document
from venn_admit.core.standing.certificate import standing_certificate
from venn_admit.core.standing.chains import ClassChain, StandingChain, level_of_chain, standing_chain
from venn_admit.core.standing.state import (
    ClassState,
    State,
    admitting,
    advance,
    certified_counts,
    initial_state,
    refuted,
    restarted,
    start,
)
from venn_admit.errors import InvalidInputError

ALPHA, LEVEL = 0.1, 0.05


def chain_of(seed: int, size: int) -> StandingChain:
    proposing = graded_points(np.random.default_rng(seed), 200, size=size)
    return standing_chain(proposing, class_count=2, alpha=ALPHA, level=LEVEL)


def certificate_of(chain: StandingChain, state: State, documents: int, **other: Any) -> Certificate:
    """What a first chain says after some documents of one point."""
    return standing_certificate(
        chain,
        state,
        number=1,
        alpha=Decimal("0.1"),
        confidence=Decimal("0.95"),
        documents=documents,
        points=documents,
        proposing=200,
        **other,
    )


def numbered(points: CertificatePoints, first: int, end: int) -> CertificatePoints:
    return points.take((points.document >= first) & (points.document < end))


def same(one: State, other: State) -> bool:
    pairs = zip(one, other, strict=True)
    return all(
        a.wealth.tobytes() == b.wealth.tobytes() and a.most.tobytes() == b.most.tobytes() and written(a) == written(b)
        for a, b in pairs
    )


def written(state: ClassState) -> Any:
    """The game against what is certified, to the last bit."""
    return None if state.against is None else to_document(state.against)


@pytest.mark.parametrize("size", [1, 5])
def test_label_by_label_and_all_at_once_give_the_same_bits(size: int) -> None:
    chain = chain_of(1, size)
    stream = graded_points(np.random.default_rng(2), 300, size=size, dependence=0.3)
    at_once = advance(chain, initial_state(chain), stream)
    state = initial_state(chain)
    before = certified_counts(chain, state)
    for number in range(300):
        state = advance(chain, state, numbered(stream, number, number + 1))
        now = certified_counts(chain, state)
        assert all(new >= old for new, old in zip(now, before, strict=True))
        before = now
    assert same(state, at_once)


@pytest.mark.parametrize("size", [1, 5])
def test_wealth_is_that_of_a_plain_loop(size: int) -> None:
    chain = chain_of(3, size)
    stream = graded_points(np.random.default_rng(4), 60, size=size + 1)
    begun = initial_state(chain)
    state = advance(chain, begun, stream)
    for number, of_class in enumerate(chain.classes):
        assert len(of_class.scores)
        for place in (0, len(of_class.scores) - 1):
            wealth, most, largest = begun[number].wealth[place].tolist(), 1.0, int(of_class.largest[place])
            for document in range(60):
                rows = np.flatnonzero((stream.document == document) & (stream.predicted == number))
                admitted = [row for row in rows if stream.score[row] >= of_class.scores[place]]
                errors = sum(stream.label[row] != number for row in admitted)
                excess = errors - ALPHA * len(admitted)
                if len(admitted) > largest:
                    excess *= largest / len(admitted)
                bets = [0.8 / 2**halvings / ((1 - ALPHA) * largest) for halvings in range(7)]
                wealth = [one * (1 - bet * excess) for one, bet in zip(wealth, bets, strict=True)]
                most = max(most, sum(wealth) / 7)
            assert state[number].wealth[place] == pytest.approx(wealth, rel=1e-12)
            assert state[number].most[place] == pytest.approx(most, rel=1e-12)


def drawn_stream(seed: int, documents: int, size: int) -> CertificatePoints:
    """Points of a stream that were drawn with probabilities that follow their scores, in any order of rows."""
    rng = np.random.default_rng(seed)
    stream = graded_points(rng, documents, size=size)
    probability = np.where(stream.score > np.median(stream.score), 0.2, 0.7)
    stream = replace(stream, weight=0.2 / probability).take(rng.random(len(probability)) < probability)
    return stream.take(rng.permutation(len(stream.score)))


@pytest.mark.parametrize("size", [1, 5])
def test_weights_of_drawn_points_are_those_of_a_plain_loop_and_no_order_shows(size: int) -> None:
    chain, stream = chain_of(9, size), drawn_stream(10, 200, size)
    begun = initial_state(chain)
    state = advance(chain, begun, stream)
    assert stream.weight is not None
    for number, of_class in enumerate(chain.classes):
        largest, wealth, most = int(of_class.largest[0]), begun[number].wealth[0].tolist(), 1.0
        for document in np.unique(stream.document):
            rows = np.flatnonzero((stream.document == document) & (stream.predicted == number))
            admitted = [row for row in rows if stream.score[row] >= of_class.scores[0]]
            assert len(admitted) <= largest or size > 1
            part = min(1.0, largest / max(len(admitted), 1))
            excess = part * sum(stream.weight[row] * ((stream.label[row] != number) - ALPHA) for row in admitted)
            bets = [0.8 / 2**halvings / ((1 - ALPHA) * largest) for halvings in range(7)]
            wealth = [one * (1 - bet * excess) for one, bet in zip(wealth, bets, strict=True)]
            most = max(most, sum(wealth) / 7)
        assert state[number].wealth[0] == pytest.approx(wealth, rel=1e-12)
        assert state[number].most[0] == pytest.approx(most, rel=1e-12)
    later = initial_state(chain)
    for number in range(0, 200, 7):
        part_of = numbered(stream, number, number + 7)
        later = advance(chain, later, part_of.take(np.arange(len(part_of.score))[::-1]))
    assert same(state, later)


def test_wealth_goes_to_the_stakes_that_are_foretold_to_grow_fastest() -> None:
    stakes = np.array([2.0, 0.8, 0.35, 0.1, 0.01, -1.0])
    of_class = ClassChain(np.zeros(6), np.zeros(6), np.ones(6, dtype=np.int64), 0, stakes)
    for at_start, total in ((0, 7.0), (100, 4.0)):
        (state,) = initial_state(StandingChain(ALPHA, LEVEL, (of_class,), at_start))
        shared = state.wealth[:, :7] * 7 / total
        assert shared.sum(axis=1) == pytest.approx(7)
        assert shared.argmax(axis=1).tolist() == [0, 0, 1, 3, 6, 6]
        assert shared.min() == pytest.approx(0.25)
        assert shared[2] == pytest.approx([0.25, 0.25 + 5.25 * 0.75, 0.25 + 5.25 * 0.25, 0.25, 0.25, 0.25, 0.25])
        assert state.wealth[:, 7:].sum() == 0


def test_the_bet_at_the_start_is_the_binomial_test_at_half_of_the_level() -> None:
    chain = replace(chain_of(11, 1), at_start=3_000)
    stream = graded_points(np.random.default_rng(12), 3_200)
    begun = initial_state(chain)
    state, without = start(chain, begun, stream), advance(chain, begun, stream)
    won = []
    for number, of_class in enumerate(chain.classes):
        there = numbered(stream, 0, 3_000)
        for place, score in enumerate(of_class.scores.tolist()):
            label = there.label[(there.predicted == number) & (there.score >= score)]
            wrong = int((label != number).sum())
            passes = binomial_tail(wrong, len(label), ALPHA) <= LEVEL / 2 / 2
            won.append(passes)
            assert state[number].wealth[place, 7] == (8 * 2 / LEVEL if passes else 0)
            assert state[number].wealth[place, :7].tolist() == without[number].wealth[place, :7].tolist()
            assert not passes or state[number].most[place] >= 2 / LEVEL
    assert 0 < sum(won) < len(won)
    assert sum(certified_counts(chain, state)) > sum(certified_counts(chain, without))


def test_documents_at_the_start_are_tested_by_a_game_in_which_no_order_shows() -> None:
    chain = replace(chain_of(13, 5), at_start=1_500)
    stream = graded_points(np.random.default_rng(14), 2_000, size=5)
    state = start(chain, initial_state(chain), stream)
    won = np.concatenate([of.wealth[:, 7] for of in state])
    assert {0.0, 8 * 2 / LEVEL} == set(won.tolist())
    shuffled = stream.take(np.random.default_rng(15).permutation(len(stream.score)))
    assert same(start(chain, initial_state(chain), shuffled), state)


def test_weights_of_one_are_labels_without_any() -> None:
    chain = chain_of(1, 5)
    stream = graded_points(np.random.default_rng(2), 300, size=5)
    weighted = replace(stream, weight=np.ones(len(stream.score)))
    assert same(advance(chain, initial_state(chain), stream), advance(chain, initial_state(chain), weighted))


def test_labels_of_one_class_leave_the_record_of_the_other_as_it_is() -> None:
    chain = chain_of(5, 1)
    stream = graded_points(np.random.default_rng(6), 100)
    state = initial_state(chain)
    assert advance(chain, state, stream.take(stream.predicted == 0))[1] is state[1]


def worse(seed: int, documents: int, size: int, first: int) -> CertificatePoints:
    """A stream in which a third of what is predicted as class 0 is wrong from a document on."""
    rng = np.random.default_rng(seed)
    stream = graded_points(rng, documents, size=size)
    wrong = (stream.document >= first) & (stream.predicted == 0) & (rng.random(len(stream.score)) < 1 / 3)
    return replace(stream, label=np.where(wrong, 1, stream.label))


@pytest.mark.parametrize("size", [1, 5])
def test_labels_are_held_against_the_threshold_that_was_certified_before_them(size: int) -> None:
    """A plain loop has a game from each document on; the other class ends on the way and leaves its level."""
    chain, stream = chain_of(16, size), worse(17, 2_400, size, 1_600)
    strict = np.array([float(np.quantile(stream.score[stream.predicted == 1], 0.9))])
    ends = ClassChain(np.array([0.95]), strict, np.array([size]), 0)
    of_class = chain.classes[0]
    chain = replace(chain, classes=(of_class, ends))
    state, wealth, admitted, right, most, shared = initial_state(chain), np.empty((0, 9)), 0, 0, 1.0, set[int]()
    for document in range(2_400):
        counts, of_document = certified_counts(chain, state), numbered(stream, document, document + 1)
        state = advance(chain, state, of_document)
        if not counts[0]:
            continue
        shared.add(counts[1])
        rows = (of_document.predicted == 0) & (of_document.score >= of_class.scores[counts[0] - 1])
        points, largest = int(rows.sum()), int(of_class.largest[counts[0] - 1])
        if not points:
            continue
        wrong = int((of_document.label[rows] != 0).sum())
        admitted, right = admitted + points, right + points - wrong
        gain = (wrong / ALPHA - points) * min(1, largest / points) / largest
        wealth = np.vstack([wealth, np.ones(9)]) * (1 + gain * 0.8 / 2.0 ** np.arange(9))
        to_come = 0.5 * np.sqrt(200 / (200 + np.arange(len(wealth) + 1)))
        weights = to_come[:-1] - to_come[1:]
        weights[0] += 0.5
        most = max(most, float(weights @ wealth.mean(axis=1) + to_come[-1]))
    assert shared == {0, 1}
    assert same(state, advance(chain, initial_state(chain), stream))
    against, found = state[0].against, state[0].refutation
    assert against is not None
    assert found is not None
    assert (against.admitted, against.right, found.documents) == (admitted, right, len(wealth))
    assert float(against.game.most[0]) == pytest.approx(most, rel=1e-9)
    assert most > 2 / LEVEL_OF_LAMPS
    assert refuted(state) == (0,)
    assert found.documents // 3 < found.since < found.documents
    assert to_document(from_document(to_document(against))) == to_document(against)


def test_games_against_what_is_certified_start_again() -> None:
    chain, stream = chain_of(16, 1), worse(17, 2_400, 1, 1_600)
    state = restarted(advance(chain, initial_state(chain), stream))
    assert refuted(state) == ()
    assert same(restarted(state), state)
    again = advance(chain, state, worse(18, 60, 1, 0))
    assert again[0].against is not None
    assert again[0].against.admitted < 60


def test_good_labels_certify_more_and_more() -> None:
    chain = chain_of(7, 1)
    stream = graded_points(np.random.default_rng(8), 6_000)
    assert admitting(chain, certified_counts(chain, initial_state(chain))) == (None, None)
    least = admitting(chain, certified_counts(chain, advance(chain, initial_state(chain), stream)))
    assert all(one is not None and 0.5 < one < 0.95 for one in least)


def test_a_class_that_ended_leaves_its_level_to_the_other() -> None:
    one_step = ClassChain(np.zeros(1), np.zeros(1), np.ones(1, dtype=np.int64), 0)
    chain = StandingChain(ALPHA, LEVEL, (one_step, one_step))
    first, second = initial_state(chain)
    second.most[:] = 1 / LEVEL
    assert certified_counts(chain, (first, second)) == (0, 0)
    first.most[:] = 2 / LEVEL
    assert certified_counts(chain, (first, second)) == (1, 1)


def test_labels_bring_back_no_class_that_an_alarm_withdrew() -> None:
    chain = chain_of(7, 1)
    state = advance(chain, initial_state(chain), graded_points(np.random.default_rng(8), 1_000))
    found = certificate_of(chain, state, 1_000, withdrawn=(0,))
    assert found.standing is not None
    assert found.standing.classes[0].documents is not None
    assert [(of.number, of.documents_needed) for of in found.lacking] == [(0, None)]
    assert found.policy is not None
    assert (found.policy.thresholds[0], found.policy.withdrawn) == (None, (0,))


def test_a_class_of_which_nothing_was_certified_is_not_withdrawn() -> None:
    chain = chain_of(7, 1)
    first, second = advance(chain, initial_state(chain), graded_points(np.random.default_rng(8), 1_000))
    first.most[:] = 1
    found = certificate_of(chain, (first, second), 1_000, withdrawn=(0,))
    assert found.policy is not None
    assert (found.policy.thresholds[0], found.policy.withdrawn) == (None, ())


def test_levels_of_all_chains_add_up_to_the_level() -> None:
    assert sum(level_of_chain(LEVEL, number) for number in range(1, 10_000)) == pytest.approx(LEVEL, rel=1e-3)


@pytest.mark.parametrize(("alpha", "level"), [(0.0, 0.05), (0.1, 1.0)])
def test_settings_out_of_range_are_refused(alpha: float, level: float) -> None:
    with pytest.raises(InvalidInputError, match="strictly between 0 and 1"):
        standing_chain(graded_points(np.random.default_rng(9), 50), class_count=2, alpha=alpha, level=level)
