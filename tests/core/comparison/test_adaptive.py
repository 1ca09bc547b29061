"""APS and RAPS: the golden sets, the definition in plain Python, and how k_reg and lambda are chosen."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.comparison import adaptive as module
from venn_admit.core.comparison import adaptive_tuning
from venn_admit.core.comparison.adaptive import (
    AdaptiveRule,
    adaptive_sets,
    label_scores,
    set_sizes,
    uniform_draws,
)
from venn_admit.core.comparison.adaptive_tuning import (
    ADAPTIVENESS_PENALTIES,
    SIZE_PENALTIES,
    choose_k_reg,
    most_adaptive,
    smallest_sets,
    tuned_rules,
    tuning_part,
)
from venn_admit.core.comparison.split import conformal_threshold
from venn_admit.core.types import Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

GOLDEN = Path(__file__).parents[2] / "golden" / "baselines.npz"
ALPHA = Decimal("0.1")
SEEDS = st.integers(0, 2**32 - 1)


def draw(seed: int, count: int, class_count: int, *, coarse: bool) -> tuple[Float32Array, IntArray, FloatArray]:
    """Logits, labels and draws; coarse ones have many equal logits, as well as draws of 0."""
    rng = np.random.default_rng(seed)
    logits = rng.integers(-2, 3, (count, class_count)) if coarse else 2 * rng.standard_normal((count, class_count))
    draws = rng.integers(0, 4, count) / 4 if coarse else rng.random(count)
    return logits.astype(np.float32), rng.integers(class_count, size=count), draws


def ranked_scores(
    logits: list[float], draw: float, temperature: float, rule: AdaptiveRule
) -> tuple[list[int], list[float]]:
    """The classes of one point by rank, and the rank's scores, as the papers define them."""
    ranked = sorted(range(len(logits)), key=lambda known: (-logits[known], known))
    weight = [float(np.exp((logits[known] - max(logits)) / temperature)) for known in ranked]
    probability = [value / sum(weight) for value in weight]
    scores = [
        sum(probability[: rank - 1]) + draw * probability[rank - 1] + rule.penalty * max(rank - rule.k_reg, 0)
        for rank in range(1, len(logits) + 1)
    ]
    return ranked, scores


@pytest.mark.parametrize("classes", ["two", "ten"])
@pytest.mark.parametrize(("method", "penalty", "k_reg"), [("aps", 0.0, 1), ("raps_a", 0.01, 2), ("raps_b", 0.2, 1)])
def test_golden(classes: str, method: str, penalty: float, k_reg: int) -> None:
    with np.load(GOLDEN) as arrays:
        golden = {name.removeprefix(f"{classes}_"): arrays[name] for name in arrays.files if name.startswith(classes)}
    temperature = float(golden["temperature"])
    scores = label_scores(golden["f_cal"], golden["y_cal"], golden["u_cal"], temperature)
    threshold = conformal_threshold(scores.score(k_reg, penalty), ALPHA)
    assert threshold == pytest.approx(float(golden[f"{method}_threshold"]), abs=1e-9)
    rule = AdaptiveRule(k_reg, penalty, threshold)
    included = adaptive_sets(golden["f"], golden["u"], temperature, rule)
    np.testing.assert_array_equal(included, golden[f"{method}_set"])
    np.testing.assert_array_equal(set_sizes(golden["f"], golden["u"], temperature, [rule])[0], included.sum(axis=1))


@given(
    seed=SEEDS,
    class_count=st.integers(2, 8),
    coarse=st.booleans(),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    k_reg=st.integers(1, 8),
    penalty=st.sampled_from([0.0, 0.01, 0.3]),
    threshold=st.floats(0.05, 1.5),
)
@settings(max_examples=80, deadline=None)
def test_matches_the_definition(
    seed: int, class_count: int, coarse: bool, temperature: float, k_reg: int, penalty: float, threshold: float
) -> None:
    logits, label, draws = draw(seed, 12, class_count, coarse=coarse)
    # Between the sums that coarse points share, so that rounding decides nothing.
    rule = AdaptiveRule(k_reg, penalty, threshold + 1e-7 * np.pi)
    included = adaptive_sets(logits, draws, temperature, rule)
    found = label_scores(logits, label, draws, temperature)
    for row in range(len(logits)):
        ranked, scores = ranked_scores(logits[row].tolist(), float(draws[row]), temperature, rule)
        expected = {known for known, score in zip(ranked, scores, strict=True) if score <= rule.threshold}
        assert set(np.flatnonzero(included[row])) == expected | {ranked[0]}
        place = ranked.index(label[row])
        assert found.rank[row] == place + 1
        assert found.score(k_reg, penalty)[row] == pytest.approx(scores[place], abs=1e-12)


@given(seed=SEEDS, class_count=st.integers(2, 30), coarse=st.booleans())
@settings(max_examples=40, deadline=None)
def test_sets_hold_the_prediction_and_grow_as_alpha_falls(seed: int, class_count: int, coarse: bool) -> None:
    logits, label, draws = draw(seed, 60, class_count, coarse=coarse)
    score = label_scores(logits, label, draws, 1.0).score(2, 0.05)
    before = np.zeros(logits.shape, dtype=np.bool_)
    for alpha in ("0.9", "0.5", "0.2", "0.1", "0.01"):
        rule = AdaptiveRule(2, 0.05, conformal_threshold(score, Decimal(alpha)))
        included = adaptive_sets(logits, draws, 1.0, rule)
        assert included[np.arange(60), network_prediction(logits)].all()
        assert (included >= before).all()
        before = included
    assert before.all()  # 60 points are too few for 0.01


@given(seed=SEEDS, class_count=st.integers(2, 30), coarse=st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_calibration_point_is_covered_exactly_if_its_score_is_within(
    seed: int, class_count: int, coarse: bool
) -> None:
    """The two ways of computing a score agree to the last bit, also at the threshold itself."""
    logits, label, draws = draw(seed, 50, class_count, coarse=coarse)
    score = label_scores(logits, label, draws, 0.7).score(3, 0.02)
    rule = AdaptiveRule(3, 0.02, float(np.median(score)))
    covered = adaptive_sets(logits, draws, 0.7, rule)[np.arange(50), label]
    np.testing.assert_array_equal(covered, (score <= rule.threshold) | (label == network_prediction(logits)))


@given(seed=SEEDS, class_count=st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_without_a_penalty_raps_is_aps(seed: int, class_count: int) -> None:
    """With lambda 0, whatever k_reg; with two classes and k_reg 2, whatever lambda."""
    logits, label, draws = draw(seed, 200, class_count, coarse=False)
    scores = label_scores(logits, label, draws, 1.3)
    aps = AdaptiveRule(1, 0.0, conformal_threshold(scores.score(1, 0.0), ALPHA))
    expected = adaptive_sets(logits, draws, 1.3, aps)
    penalty = 0.5 if class_count == 2 else 0.0
    raps = AdaptiveRule(2, penalty, conformal_threshold(scores.score(2, penalty), ALPHA))
    assert raps.threshold == aps.threshold
    np.testing.assert_array_equal(adaptive_sets(logits, draws, 1.3, raps), expected)


@pytest.mark.parametrize("penalty", [0.01, 0.5])
def test_with_two_classes_and_k_reg_2_raps_is_aps_on_real_data(penalty: float) -> None:
    with np.load(GOLDEN) as golden:
        scores = label_scores(
            golden["two_f_cal"], golden["two_y_cal"], golden["two_u_cal"], float(golden["two_temperature"])
        )
        expected = golden["two_aps_set"]
        raps = AdaptiveRule(2, penalty, conformal_threshold(scores.score(2, penalty), ALPHA))
        found = adaptive_sets(golden["two_f"], golden["two_u"], float(golden["two_temperature"]), raps)
    np.testing.assert_array_equal(found, expected)


def test_a_penalty_makes_sets_smaller_where_it_applies() -> None:
    with np.load(GOLDEN) as golden:
        logits, label, draws = golden["ten_f_cal"], golden["ten_y_cal"], golden["ten_u_cal"]
    scores = label_scores(logits, label, draws, 0.5)
    largest = []
    for penalty in (0.0, 0.01, 0.1):
        rule = AdaptiveRule(2, penalty, conformal_threshold(scores.score(2, penalty), ALPHA))
        largest.append(int(set_sizes(logits, draws, 0.5, [rule]).max()))
    assert largest[0] > largest[1] > largest[2] >= 2


@pytest.mark.parametrize("elements", [1, 64, 1000])
def test_bits_do_not_depend_on_the_batch(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logits, label, draws = draw(3, 90, 17, coarse=False)
    rule = AdaptiveRule(2, 0.01, 0.9)
    included, scores = adaptive_sets(logits, draws, 0.8, rule), label_scores(logits, label, draws, 0.8)
    monkeypatch.setattr(module, "BLOCK_ELEMENTS", elements)
    order = np.random.default_rng(0).permutation(90)
    for rows in (order, order[:1], order[:40]):
        np.testing.assert_array_equal(adaptive_sets(logits[rows], draws[rows], 0.8, rule), included[rows])
        again = label_scores(logits[rows], label[rows], draws[rows], 0.8)
        np.testing.assert_array_equal(again.rank, scores.rank[rows])
        np.testing.assert_array_equal(again.unpenalised, scores.unpenalised[rows])


def test_extremes() -> None:
    logits = np.array([[0.0, 5.0, 5.0], [1e30, -1e30, 0.0]], dtype=np.float32)
    draws = np.array([0.5, 0.0])
    everything = adaptive_sets(logits, draws, 1.0, AdaptiveRule(1, 0.5, np.inf))
    assert everything.all()
    nothing_but_the_first = adaptive_sets(logits, draws, 1e-300, AdaptiveRule(1, 0.0, -1.0))
    np.testing.assert_array_equal(nothing_but_the_first, [[False, True, False], [True, False, False]])
    impossible = np.array([[0.0, -1e4, -1e4]], dtype=np.float32)
    assert adaptive_sets(impossible, draws[:1], 1.0, AdaptiveRule(1, 0.0, 1.0)).all()
    assert adaptive_sets(logits[:0], draws[:0], 1.0, AdaptiveRule(1, 0.0, 0.5)).shape == (0, 3)


def test_draws_are_uniform_and_belong_to_the_id() -> None:
    ids = [f"review-{number}" for number in range(4000)]
    draws = uniform_draws(ids, seed=7)
    assert 0 <= draws.min() < 0.01
    assert 0.99 < draws.max() < 1
    assert np.abs(np.histogram(draws, bins=10, range=(0, 1))[0] - 400).max() < 80
    np.testing.assert_array_equal(uniform_draws(ids[::-1], seed=7)[::-1], draws)
    assert np.abs(np.corrcoef(draws, uniform_draws(ids, seed=8))[0, 1]) < 0.05
    tuning = tuning_part(ids, seed=7)
    assert abs(draws[tuning].mean() - draws[~tuning].mean()) < 0.05


def test_the_tuning_part_is_a_share_of_the_keys() -> None:
    keys = [f"document-{number // 3}" for number in range(9000)]
    tuning = tuning_part(keys, seed=1)
    assert tuning.mean() == pytest.approx(0.3, abs=0.03)
    assert (tuning[::3] == tuning[1::3]).all()
    np.testing.assert_array_equal(tuning_part(keys[100:200], seed=1), tuning[100:200])
    assert (tuning != tuning_part(keys, seed=2)).any()


@pytest.mark.parametrize(("ranks", "expected"), [([1] * 8 + [4], 4), ([1] * 18 + [4], 1), ([1] * 8, 6), ([], 6)])
def test_k_reg(ranks: list[int], expected: int) -> None:
    """The ceil(0.9 (n + 1))-th smallest rank; all classes where there are too few."""
    assert choose_k_reg(np.array(ranks, dtype=np.int64), ALPHA, class_count=6) == expected


def test_smallest_sets_takes_the_first_of_equals() -> None:
    assert smallest_sets(np.array([[3, 3], [2, 2], [1, 3]])) == 1


def test_most_adaptive_looks_at_the_worst_stratum() -> None:
    rank = np.array([1, 1, 1, 1, 2, 3, 3, 4])
    coarse = np.array([1, 1, 1, 1, 1, 2, 3, 3])  # four of five, and one of three
    fine = np.array([1, 1, 1, 1, 3, 4, 4, 4])  # all, all, all
    assert most_adaptive(np.stack([coarse, fine, fine]), rank, ALPHA) == 1
    # With all of a stratum right the violation is alpha, the same on either side of 0.5.
    assert most_adaptive(np.stack([coarse, fine]), rank, Decimal("0.5")) == 0
    assert most_adaptive(np.empty((3, 0), dtype=np.int64), rank[:0], ALPHA) == 0


@given(seed=SEEDS, class_count=st.integers(2, 15), count=st.integers(0, 120))
@settings(max_examples=40, deadline=None)
def test_tuning_matches_a_search_in_plain_steps(seed: int, class_count: int, count: int) -> None:
    logits, label, draws = draw(seed, count, class_count, coarse=False)
    tuning = np.random.default_rng(seed).random(count) < 0.3
    scores = label_scores(logits, label, draws, 0.9)
    found = tuned_rules(logits, draws, scores, tuning, temperature=0.9, alpha=ALPHA)

    k_reg = choose_k_reg(scores.rank[tuning], ALPHA, class_count)
    sizes, violations = [], []
    for penalty in SIZE_PENALTIES + ADAPTIVENESS_PENALTIES:
        threshold = conformal_threshold(scores.part(tuning).score(k_reg, penalty), ALPHA)
        included = adaptive_sets(logits[tuning], draws[tuning], 0.9, AdaptiveRule(k_reg, penalty, threshold))
        size = included.sum(axis=1)
        covered = included[np.arange(len(size)), label[tuning]]
        strata = [(0, 1), (2, 3), (4, 6), (7, 10), (11, 100), (101, 1000)]
        inside = [covered[(low <= size) & (size <= high)] for low, high in strata]
        sizes.append(int(size.sum()))
        violations.append(max((abs(part.mean() - 0.9) for part in inside if part.size), default=0.0))
    split = len(SIZE_PENALTIES)
    assert found.size.penalty == SIZE_PENALTIES[sizes.index(min(sizes[:split]))]
    assert found.adaptiveness.k_reg == found.size.k_reg == k_reg
    chosen = ADAPTIVENESS_PENALTIES.index(found.adaptiveness.penalty)
    least = min(violations[split:])
    assert violations[split + chosen] == pytest.approx(least, abs=1e-12)
    assert all(violation > least - 1e-12 for violation in violations[split : split + chosen])
    for rule in (found.size, found.adaptiveness):
        rest = scores.part(~tuning).score(k_reg, rule.penalty)
        assert rule.threshold == conformal_threshold(rest, ALPHA)


def test_tuning_does_not_depend_on_blocks_or_order(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, label, draws = draw(5, 400, 12, coarse=False)
    tuning = np.random.default_rng(5).random(400) < 0.3
    expected = tuned_rules(logits, draws, label_scores(logits, label, draws, 1.0), tuning, temperature=1.0, alpha=ALPHA)
    monkeypatch.setattr(adaptive_tuning, "BLOCK_ELEMENTS", 100)
    rows = np.random.default_rng(6).permutation(400)
    scores = label_scores(logits[rows], label[rows], draws[rows], 1.0)
    found = tuned_rules(logits[rows], draws[rows], scores, tuning[rows], temperature=1.0, alpha=ALPHA)
    assert found == expected
    assert np.isfinite(expected.size.threshold)


@pytest.mark.parametrize(
    ("logits", "draws", "temperature", "message"),
    [
        ([[1.0], [2.0]], [0.1, 0.2], 1.0, "at least 2 classes"),
        ([[1.0, 2.0]], [0.1, 0.2], 1.0, "same points"),
        ([[1.0, 2.0]], [1.0], 1.0, r"draws in \[0, 1\)"),
        ([[1.0, 2.0]], [np.nan], 1.0, r"draws in \[0, 1\)"),
        ([[1.0, 2.0]], [0.1], 0.0, "temperature"),
        ([[1.0, 2.0]], [0.1], np.inf, "temperature"),
        ([[1.0, np.nan]], [0.1], 1.0, "finite"),
        ([[np.inf, np.inf]], [0.1], 1.0, "finite"),
        ([[-np.inf, 1.0]], [0.1], 1.0, "finite"),
    ],
)
def test_refuses(logits: list[list[float]], draws: list[float], temperature: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        adaptive_sets(np.array(logits, dtype=np.float32), np.array(draws), temperature, AdaptiveRule(1, 0.0, 0.9))


@pytest.mark.parametrize(("label", "message"), [([0], "a label for each"), ([0, 3], "0 to 2"), ([-1, 0], "0 to 2")])
def test_refuses_labels(label: list[int], message: str) -> None:
    logits, _, draws = draw(0, 2, 3, coarse=False)
    with pytest.raises(InvalidInputError, match=message):
        label_scores(logits, np.array(label), draws, 1.0)
