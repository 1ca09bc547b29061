"""A chain for true classes: a path of policies, each of which must hold for every class."""

from dataclasses import replace

import numpy as np
import pytest

from tests.core.calibrators.certified.laws import graded_points
from tests.core.standing.test_standing import ALPHA, LEVEL, certificate_of, drawn_stream, numbered, same
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.document import from_document, to_document
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.standing.chains import ClassChain, StandingChain, standing_chain
from venn_admit.core.standing.following import foretell_following
from venn_admit.core.standing.state import (
    START_PART,
    admitting,
    advance,
    certified_counts,
    initial_state,
    refuted,
    start,
)
from venn_admit.core.types import BoolArray, FloatArray

BOTH, TRUE = (ClassKind.PREDICTED, ClassKind.TRUE), (ClassKind.TRUE,)


def path_of(seed: int, size: int, kinds: tuple[ClassKind, ...] = BOTH) -> StandingChain:
    proposing = graded_points(np.random.default_rng(seed), 400, size=size)
    return standing_chain(proposing, class_count=2, alpha=ALPHA, level=LEVEL, kinds=kinds)


def admitted_by(chain: StandingChain, step: int, points: CertificatePoints) -> BoolArray:
    thresholds = np.array([of.scores[step] for of in chain.predicted])
    found: BoolArray = points.score >= thresholds[points.predicted]
    return found


def of_class(chain: StandingChain, place: int, points: CertificatePoints) -> BoolArray:
    kind, number = chain.named(place)
    found: BoolArray = (points.predicted if kind is ClassKind.PREDICTED else points.label) == number
    return found


@pytest.mark.parametrize(("kinds", "tested"), [(BOTH, [0, 1, 2, 3]), (TRUE, [2, 3])])
def test_each_step_is_a_policy_for_all_classes(kinds: tuple[ClassKind, ...], tested: list[int]) -> None:
    chain = path_of(1, 1, kinds)
    assert chain.tested == tested
    assert chain.parts == 1
    assert {len(of.largest) for place, of in enumerate(chain.classes) if place in tested} == {
        len(of.scores) for of in chain.predicted
    }
    assert [chain.named(place) for place in tested] == [(kind, number) for kind in kinds for number in (0, 1)]
    assert all((np.diff(of.scores) <= 0).all() for of in chain.predicted)


@pytest.mark.parametrize("size", [1, 5])
def test_label_by_label_and_all_at_once_give_the_same_bits(size: int) -> None:
    chain = path_of(1, size)
    stream = graded_points(np.random.default_rng(2), 1_000, size=size, dependence=0.1)
    at_once = advance(chain, initial_state(chain), stream)
    state, counts = initial_state(chain), [0]
    for number in range(1_000):
        state = advance(chain, state, numbered(stream, number, number + 1))
        counts.append(certified_counts(chain, state)[0])
    assert counts == sorted(counts)
    assert counts[-1] > 0
    assert same(state, at_once)


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("size", [1, 5])
def test_wealth_and_the_games_against_are_those_of_a_plain_loop(size: int, drawn: bool) -> None:
    chain, documents = path_of(5, size), 8_000 if drawn else 1_000
    stream = (
        drawn_stream(6, documents, size) if drawn else graded_points(np.random.default_rng(6), documents, size=size)
    )
    begun = initial_state(chain)
    state = advance(chain, begun, stream)
    wealth = {place: begun[place].wealth.copy() for place in chain.tested}
    most = {place: np.ones(len(wealth[place])) for place in chain.tested}
    against = dict.fromkeys(chain.tested, (0, 0))
    stakes = 0.8 / 2.0 ** np.arange(7) / (1 - ALPHA)
    thresholds = np.stack([of.scores for of in chain.predicted])
    rows_of = (
        np.split(np.arange(len(stream.score)), np.flatnonzero(np.diff(stream.document)) + 1)
        if not drawn
        else [np.flatnonzero(stream.document == document) for document in np.unique(stream.document)]
    )
    for rows in rows_of:
        points = stream.take(rows)
        right, weights = points.predicted == points.label, points.weights
        in_force = min(certified_of(of) for of in most.values())
        admitted = points.score[:, np.newaxis] >= thresholds[points.predicted]  # (n, P)
        for place in chain.tested:
            largest, chosen = chain.classes[place].largest, admitted & of_class(chain, place, points)[:, np.newaxis]
            part = np.minimum(1.0, largest / np.maximum(chosen.sum(axis=0), 1))
            excess = part * ((weights * (~right - ALPHA))[:, np.newaxis] * chosen).sum(axis=0)
            wealth[place] = wealth[place] * (1 - stakes * (excess / largest)[:, np.newaxis])
            most[place] = np.maximum(most[place], wealth[place].mean(axis=1))
            if in_force:
                now = chosen[:, in_force - 1]
                against[place] = against[place][0] + int(now.sum()), against[place][1] + int((now & right).sum())
    for place in chain.tested:
        assert state[place].wealth == pytest.approx(wealth[place], rel=1e-9)
        assert state[place].most == pytest.approx(most[place], rel=1e-9)
        game = state[place].against
        assert against[place] == ((0, 0) if game is None else (game.admitted, game.right))
    counts = certified_counts(chain, state)
    assert counts == (min(certified_of(of) for of in most.values()),) * 4
    assert counts[0] > 0


def certified_of(most: FloatArray) -> int:
    return int(np.append(most < 1 / LEVEL, True).argmax())


def test_the_bet_at_the_start_is_made_for_every_class_at_half_of_the_level() -> None:
    chain = replace(path_of(5, 1), at_start=2_000)
    stream = graded_points(np.random.default_rng(6), 2_000)
    state = start(chain, initial_state(chain), stream)
    won = []
    for place in chain.tested:
        for step in range(len(chain.classes[place].largest)):
            rows = of_class(chain, place, stream) & admitted_by(chain, step, stream)
            wrong = int((rows & (stream.predicted != stream.label)).sum())
            won.append(binomial_tail(wrong, int(rows.sum()), ALPHA) <= START_PART * LEVEL)
            assert bool(state[place].wealth[step, -1] > 0) is won[-1]
            assert bool(state[place].most[step] >= 1 / LEVEL) or not won[-1]
    assert set(won) == {False, True}


def test_one_class_that_falls_short_stops_the_path() -> None:
    """A quarter of true class 1 is predicted as 0: thresholds hold for predicted classes, no policy for true ones."""
    chain, stream = path_of(7, 1), graded_points(np.random.default_rng(8), 6_000)
    rng = np.random.default_rng(9)
    turned = (stream.label == 1) & (rng.random(len(stream.label)) < 0.25)
    shifted = replace(stream, predicted=np.where(turned, 0, stream.predicted))
    state = advance(chain, initial_state(chain), shifted)
    alone = standing_chain(graded_points(np.random.default_rng(7), 400), class_count=2, alpha=ALPHA, level=LEVEL)
    assert max(certified_counts(alone, advance(alone, initial_state(alone), shifted))) > 0
    assert certified_counts(chain, state) == (0, 0, 0, 0)
    assert admitting(chain, certified_counts(chain, state)) == (None, None)


def test_a_certificate_says_which_class_the_next_policy_waits_for() -> None:
    chain = path_of(5, 1)
    stream = graded_points(np.random.default_rng(6), 1_000)
    state = advance(chain, initial_state(chain), stream)
    counts = certified_counts(chain, state)
    found = certificate_of(chain, state, 1_000, kinds=BOTH)
    assert found.policy is not None
    assert found.policy.thresholds == admitting(chain, counts)
    admitted = admitted_by(chain, counts[0] - 1, stream)
    right = admitted & (stream.predicted == stream.label)
    assert found.admitted == admitted.sum()
    for result, place in zip(found.classes, chain.tested, strict=True):
        rows = of_class(chain, place, stream)
        assert (result.kind, result.number) == chain.named(place)
        assert (result.admitted, result.right) == ((admitted & rows).sum(), (right & rows).sum())
    assert found.standing is not None
    needed = [of.documents for of in found.standing.classes]
    wealthy = [state[place].most[counts[0]] >= 1 / LEVEL for place in chain.tested]
    assert [one == 0 for one in needed] == wealthy
    assert not all(wealthy)
    (of_chain,) = found.chains
    assert (of_chain.level, len(of_chain.steps)) == (LEVEL, counts[0] + 1)
    assert [step.passed for step in of_chain.steps] == [True] * counts[0] + [False]
    assert from_document(to_document(found)) == found
    begun = certificate_of(chain, initial_state(chain), 0, kinds=BOTH)
    assert begun.documents_needed == max(of.documents for of in chain.classes)


def test_an_alarm_or_labels_for_one_class_withdraw_every_policy() -> None:
    chain = path_of(5, 1)
    state = advance(chain, initial_state(chain), graded_points(np.random.default_rng(6), 1_000))
    bad = graded_points(np.random.default_rng(10), 400)
    wrong = (bad.label == 1) & (np.random.default_rng(11).random(400) < 0.5)
    state = advance(chain, state, replace(bad, predicted=np.where(wrong, 0, bad.predicted)))
    assert 3 in refuted(state)
    found = certificate_of(chain, state, 1_400, withdrawn=(3,), kinds=BOTH)
    assert found.policy is None
    assert (found.is_withdrawn, found.withdrawn) == (True, frozenset({(ClassKind.TRUE, 1)}))
    assert not found.classes
    assert [of.documents_needed for of in found.lacking] == [None] * 4


def test_a_path_that_other_labels_would_put_elsewhere_is_followed_by_another() -> None:
    """The proposing points are few; those that count know better where all classes are right."""
    poor = replace(graded_points(np.random.default_rng(12), 400, frequencies=(0.97, 0.03)))
    chain = standing_chain(poor, class_count=2, alpha=ALPHA, level=LEVEL, kinds=BOTH)
    points = graded_points(np.random.default_rng(13), 4_000)
    counts = certified_counts(chain, advance(chain, initial_state(chain), points))
    following = foretell_following(
        chain, counts, points, number=2, level=2 * LEVEL, documents=4_000, kinds=BOTH, withdrawn=()
    )
    assert following is not None
    assert following.share > following.instead_of + 0.05
    best = standing_chain(points, class_count=2, alpha=ALPHA, level=LEVEL, kinds=BOTH)
    counts = certified_counts(best, advance(best, initial_state(best), points))
    assert (
        foretell_following(best, counts, points, number=2, level=2 * LEVEL, documents=4_000, kinds=BOTH, withdrawn=())
        is None
    )


def test_without_a_policy_to_certify_all_is_rejected() -> None:
    untested = ClassChain(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), 0)
    chain = StandingChain(ALPHA, LEVEL, (untested,) * 4, is_path=True)
    state = initial_state(chain)
    assert advance(chain, state, graded_points(np.random.default_rng(14), 50)) == state
    found = certificate_of(chain, state, 50, kinds=BOTH)
    assert (found.policy, found.classes, found.chains, len(found.lacking)) == (None, (), (), 4)
