"""The search of policies, against every choice."""

import itertools

import numpy as np

from tests.core.calibrators.certified.laws import graded_points
from venn_admit.core.calibrators.certified.curves import fit_curves
from venn_admit.core.calibrators.certified.evidence import Evidence
from venn_admit.core.calibrators.certified.forecast import Forecast
from venn_admit.core.calibrators.certified.losses import losses_of
from venn_admit.core.calibrators.certified.points import canonical
from venn_admit.core.calibrators.certified.search import Limits, Options, best_choice

ALPHA = 0.1


def limits_of(options: Options) -> Limits:
    allowed = options.exists & (options.wrong.sum(axis=2) <= ALPHA * options.admitted + 1e-9)
    return Limits(ALPHA, allowed, np.zeros(len(allowed)))


def most_by_trying_all(options: Options, limits: Limits) -> float:
    """The most that any choice admits whose true classes keep the share."""
    most = 0.0
    class_count = len(options.admitted)
    candidates = [np.flatnonzero(allowed[1:]) + 1 for allowed in limits.allowed]
    for choice in itertools.product(*candidates):
        rows = np.arange(class_count), np.array(choice)
        wrong = options.wrong[rows].sum(axis=0)
        if (wrong <= ALPHA * (wrong + options.right[rows]) + 1e-9).all():
            most = max(most, float(options.admitted[rows].sum()))
    return most


def test_the_search_finds_nearly_the_best_of_all_choices() -> None:
    parts = []
    for seed in range(15):
        points, _ = canonical(
            graded_points(np.random.default_rng(seed), 300, frequencies=(0.6, 0.3, 0.1), sharpness=3.0)
        )
        evidence = Evidence(300, 300, bounded=True)
        forecast = Forecast(points, fit_curves(points, 3), losses_of(None, 3), ALPHA, evidence)
        options = forecast.options(np.repeat(np.linspace(0.99, 0.5, 12)[:, np.newaxis], 3, axis=1))
        choice = best_choice(options, limits_of(options))
        found = 0.0 if choice is None else float(options.admitted[np.arange(3), choice].sum())
        best = most_by_trying_all(options, limits_of(options))
        assert found <= best
        assert (found > 0) == (best > 0)
        parts.append(found / best if best else 1.0)
    assert min(parts) > 0.8
    assert np.mean(parts) > 0.98
