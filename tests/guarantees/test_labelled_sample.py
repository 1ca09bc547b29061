"""Simulated: lamps that tell whether the labelled points are a random sample of those that were decided on.

Points make pairs beforehand, and the first of a pair that is labelled counts. Traffic may change while labels come, and
the labelled share with it, as long as both points of a pair are as likely to be labelled first.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.core.monitoring.anytime.laws import ALPHA, CLASSES, Law
from tests.guarantees.draws import Draws, until_settled
from venn_admit.core.monitoring.anytime.documents import LabelledPoints
from venn_admit.core.monitoring.anytime.plan import LEVEL, OF_SAMPLE, MonitorPlan, plan_of
from venn_admit.core.monitoring.anytime.state import MonitorState, advance, initial_state
from venn_admit.core.types import FloatArray

TRAFFIC, BLOCK = 6_000, 500
LEVELS = (LEVEL, 0.05, 0.2)
PLAN = plan_of(Law().draw(np.random.default_rng(0), 300), class_count=CLASSES, alpha=ALPHA)


def watched(seed: int, odds_of_unsure: float, *, most: float = 0.2, odds_of_first: float = 1.0) -> MonitorState:
    """A monitor of traffic of which a part is labelled that rises to a share.

    odds_of_unsure, odds_of_first: How many times as likely as others points are labelled of which the score is below a
    half, and those that are predicted as the first class.
    """
    rng = np.random.default_rng(seed)
    state, blocks = initial_state(PLAN), []
    for first in range(0, TRAFFIC, BLOCK):
        share_of_first = 0.2 + 0.6 * first / TRAFFIC
        score, predicted = rng.random(BLOCK), (rng.random(BLOCK) >= share_of_first).astype(np.int64)
        odds = np.where(score < 0.5, odds_of_unsure, 1.0) * np.where(predicted == 0, odds_of_first, 1.0)
        labelled = rng.random(BLOCK) < most * (0.25 + 0.75 * first / TRAFFIC) * odds / max(
            odds_of_unsure, odds_of_first, 1
        )
        at: FloatArray = np.where(labelled, rng.random(BLOCK), np.inf)
        beside = np.arange(BLOCK) ^ 1
        rows = np.flatnonzero(labelled)
        rows = rows[np.argsort(at[rows])]
        compared = at[rows] < at[beside[rows]]
        points = Law().draw(rng, len(rows))
        blocks.append(
            replace(
                points,
                predicted=predicted[rows],
                beside=np.where(compared, predicted[beside[rows]], -1),
                surer=np.where(compared, np.sign(score[rows] - score[beside[rows]]), 0).astype(np.int64),
            )
        )
    advance(PLAN, state, one_after_another(blocks), LEVEL)
    return state


def one_after_another(blocks: Sequence[LabelledPoints]) -> LabelledPoints:
    """Return documents of one point and of no groups as one stream, which a monitor takes in the faster at once."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(of, name) for of in blocks]) for name in blocks[0].__slots__ if name != "groups"
    }
    return LabelledPoints(**{**columns, "document": np.arange(len(columns["document"]))})


def share_lit(found: list[MonitorState], level: float, plan: MonitorPlan = PLAN) -> dict[str, float]:
    """The share of streams in which each lamp was ever lit."""
    return {
        str(lamp): float(np.mean([bool((state.games[lamp].most >= plan.needed(lamp, level)).any()) for state in found]))
        for lamp in OF_SAMPLE
    }


@pytest.mark.slow
def test_random_labels_rarely_ever_light_a_lamp() -> None:
    found, draws = [], {(lamp, level): Draws.as_sharp_as(1_000, level) for lamp in OF_SAMPLE for level in LEVELS}
    for seed in until_settled(draws.values()):
        found.append(watched(seed, 1.0))
        for (lamp, level), of in draws.items():
            of.add(share_lit(found[-1:], level)[str(lamp)] > 0)
    assert [of for of, one in draws.items() if not one.seldom] == []
    assert all(share > 0 for share in share_lit(found, 0.2).values()), "nor are they never lit"


# The share of streams in which the lamps of classes and of scores are lit, by the odds of unsure points, those of a
# class, and the largest share labelled: some 500 labels, and 1,600.
SEEN = {
    (2.0, 1.0, 0.2): (0.00, 0.08),
    (2.0, 1.0, 0.6): (0.00, 0.68),
    (4.0, 1.0, 0.2): (0.00, 0.57),
    (4.0, 1.0, 0.6): (0.00, 1.00),
    (1.0, 2.0, 0.2): (0.89, 0.00),
    (1.0, 2.0, 0.6): (1.00, 0.01),
}


@pytest.mark.parametrize("law", SEEN)
def test_a_sample_that_is_not_random_is_seen(law: tuple[float, float, float]) -> None:
    unsure, of_first, most = law
    found = [watched(seed, unsure, odds_of_first=of_first, most=most) for seed in range(100)]
    lit = tuple(share_lit(found, LEVEL).values())
    np.testing.assert_allclose(lit, SEEN[law], atol=0.05)
