"""The bounds of Venn-Abers are drawn with as many steps as can be told apart, however many there are."""

import numpy as np

from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.report.charts.drawn_calibration import LEVELS, _logit, _visible


def test_what_is_left_out_lies_within_a_stretch_of_what_is_drawn() -> None:
    score = np.sort(np.random.default_rng(5).uniform(0.001, 0.999, 50_000))
    bound = np.linspace(0, 1, len(score))
    steps = Steps(
        cell=np.zeros(len(score), dtype=np.int64), score=score, lower=bound, upper_at=bound, upper_above=bound
    )
    limits = (-4.0, 4.0)
    drawn = _visible(steps, limits)
    assert len(drawn.score) <= LEVELS + 2
    assert drawn.score[-1] == score[-1]
    stretch = (limits[1] - limits[0]) / LEVELS
    within = np.abs(_logit(score)) < 4
    following = _logit(drawn.score)[np.searchsorted(drawn.score, score[within])]
    assert np.all(following - _logit(score[within]) <= stretch)


def test_few_steps_are_all_drawn() -> None:
    score = np.array([0.1, 0.5, 0.9])
    steps = Steps(cell=np.zeros(3, dtype=np.int64), score=score, lower=score, upper_at=score, upper_above=score)
    assert _visible(steps, (-3.0, 3.0)).score.tolist() == score.tolist()
