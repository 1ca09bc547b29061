"""Settings that are cross-fitted together admit what each of them admits alone."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from tests.core.comparison.test_candidates import COARSE, MC, MODEL, localizer_of
from tests.core.comparison.test_selective import C, K, shuffled
from venn_admit.core.calibrators.settings import (
    CalibratorSettings,
    MethodSettings,
    ScoreKind,
    VennAbersSettings,
    make_settings,
    make_venn_abers_settings,
)
from venn_admit.core.calibrators.venn_abers.crossfit import cross_fit
from venn_admit.core.calibrators.venn_abers.reliability import scored_points
from venn_admit.core.comparison.candidates import (
    Candidate,
    CrossFitting,
    cross_fitted_candidates,
    cross_fitted_settings,
)
from venn_admit.core.comparison.held_out import HeldOutPoints
from venn_admit.core.types import IntArray
from venn_admit.errors import NotReadyError

BANDS = make_settings(C, K, kappa=50, q_bins=COARSE)
CELLS = make_venn_abers_settings(C, K)
SETTINGS: list[MethodSettings] = [
    *(replace(BANDS, kappa=kappa) for kappa in (300, 50, 30)),
    replace(CELLS, score=ScoreKind.RELIABILITY),
    *(replace(BANDS, delta=delta) for delta in (0.5, float("inf"))),
    *(make_venn_abers_settings(C, K, alpha=Decimal(alpha)) for alpha in ("0.05", "0.2")),
    *(replace(BANDS, thresholds=(Decimal(least),) * C) for least in ("0.95", "0.99")),
    replace(BANDS, alpha=Decimal("0.2"), thresholds=(Decimal("0.8"),) * C),
    replace(CELLS, q_bins=COARSE, score=ScoreKind.NETWORK),
]


def fitted(
    settings: list[MethodSettings],
    mc: HeldOutPoints = MC,
    *,
    memory_budget: int = 64 << 20,
    with_model: bool = True,
    weighted: bool = True,
    judged: IntArray | None = None,
) -> list[Candidate]:
    given = CrossFitting(
        mc,
        class_count=C,
        neighbour_count=K,
        seed=1,
        reliability=MODEL if with_model else None,
        localizer=localizer_of(mc) if weighted else None,
        judged=np.arange(len(mc.label)) if judged is None else judged,
        memory_budget=memory_budget,
    )
    return cross_fitted_settings(given, settings)


@pytest.fixture(scope="module")
def together() -> list[Candidate]:
    return fitted(SETTINGS)


def test_each_is_as_it_is_alone(together: list[Candidate]) -> None:
    for one, settings in zip(together, SETTINGS, strict=True):
        (alone,) = fitted([settings])
        assert alone.settings == one.settings
        assert (alone.admitted.tolist(), alone.predicted.tolist()) == (one.admitted.tolist(), one.predicted.tolist())
    counts = [one.admitted.sum() for one in together[:3]]
    assert counts[0] < counts[1] < counts[2], "a lower kappa admits more"


def test_neither_memory_nor_order_matters(together: list[Candidate]) -> None:
    order = np.random.default_rng(5).permutation(len(MC.label))
    for one, little, other in zip(
        together, fitted(SETTINGS, memory_budget=1 << 16), fitted(SETTINGS, shuffled(MC, order)), strict=True
    ):
        assert little.admitted.tolist() == one.admitted.tolist()
        assert other.admitted.tolist() == one.admitted[order].tolist()


def test_they_are_those_of_a_comparison() -> None:
    every = np.arange(len(MC.label))
    compared = cross_fitted_candidates(CrossFitting(MC, C, K, 1, MODEL, localizer_of(MC), every), BANDS.alpha)
    again = fitted([one.settings for one in compared.found])
    for one, other in zip(compared.found, again, strict=True):
        assert (one.settings, one.admitted.tolist()) == (other.settings, other.admitted.tolist())


def test_what_is_decided_on_some_points_is_what_is_decided_on_all(together: list[Candidate]) -> None:
    judged = np.flatnonzero(np.arange(len(MC.label)) % 3 == 1)
    for one, some in zip(together, fitted(SETTINGS, judged=judged), strict=True):
        assert some.settings == one.settings
        assert some.predicted.tolist() == one.predicted[judged].tolist()
        assert some.admitted.tolist() == one.admitted[judged].tolist()


def test_weights_bear_on_bands_alone_and_admit_less(together: list[Candidate]) -> None:
    for one, plain in zip(together, fitted(SETTINGS, weighted=False), strict=True):
        if isinstance(one.settings, CalibratorSettings):
            assert not (one.admitted & ~plain.admitted).any()
        else:
            assert one.admitted.tolist() == plain.admitted.tolist()
    assert together[2].admitted.sum() < fitted(SETTINGS[2:3], weighted=False)[0].admitted.sum()


def test_auto_takes_the_score_that_a_calibration_would_choose(together: list[Candidate]) -> None:
    network, reliability = (
        scored_points(kind, MODEL, MC.seen.network_logits, MC.seen.view, neighbour_count=K) for kind in ScoreKind
    )
    for one, asked in zip(together, SETTINGS, strict=True):
        if isinstance(asked, VennAbersSettings) and asked.score is None:
            choice = cross_fit(network, reliability, MC.right, MC.keys, seed=1, settings=asked).choice
            assert isinstance(one.settings, VennAbersSettings)
            assert one.settings.score is choice.kind
            shares = {ScoreKind.NETWORK: choice.network_share, ScoreKind.RELIABILITY: choice.reliability_share}
            assert one.admitted.mean() == shares[choice.kind]


def test_without_a_model_the_score_of_the_network_serves() -> None:
    (one,) = fitted([replace(CELLS, score=ScoreKind.NETWORK)], with_model=False)
    assert one.admitted.any()


def test_too_few_points_for_bands() -> None:
    few = shuffled(MC, np.arange(4))
    with pytest.raises(NotReadyError):
        fitted([BANDS], few)
