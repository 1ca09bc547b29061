"""What a calibrator may be asked for."""

import dataclasses
from decimal import Decimal
from typing import Any

import pytest

from venn_admit.core.calibrators.arguments import read_settings
from venn_admit.core.calibrators.settings import check_settings, make_settings
from venn_admit.errors import InvalidInputError


def test_defaults_are_the_papers() -> None:
    settings = make_settings(3, 25)
    assert (settings.alpha, settings.delta, settings.kappa) == (Decimal("0.1"), 1.0, 1000)
    assert settings.q_bins == tuple(range(26))
    assert settings.thresholds == (Decimal("0.9"),) * 3


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("alpha", Decimal(0), "alpha must lie"),
        ("alpha", Decimal(1), "alpha must lie"),
        ("alpha", Decimal("NaN"), "alpha must lie"),
        ("delta", 0.0, "delta must be"),
        ("delta", float("nan"), "delta must be"),
        ("kappa", 0, "kappa must be"),
        ("q_bins", (), "got none"),
        ("q_bins", (1, 2), "the first of them 0"),
        ("q_bins", (0, 2, 2), "ascending"),
        ("q_bins", (0, 6), "none above K = 5"),
        ("thresholds", (Decimal("0.9"),), "each of 2 classes"),
        ("thresholds", (Decimal("0.9"), Decimal("0.8999")), "threshold of class 1 must be at least"),
        ("thresholds", (Decimal("1.01"), Decimal("0.9")), "at most 1; got 1.01"),
        ("thresholds", (Decimal("NaN"), Decimal("0.9")), "got NaN"),
    ],
)
def test_what_cannot_be_is_refused_by_name(field: str, value: Any, message: str) -> None:
    settings = dataclasses.replace(make_settings(2, 5), **{field: value})
    with pytest.raises(InvalidInputError, match=message):
        check_settings(settings, class_count=2, neighbour_count=5)


def test_the_extremes_that_are_allowed() -> None:
    settings = make_settings(2, 5, delta=float("inf"), kappa=1, q_bins=(0, 5), thresholds=(Decimal("0.9"), Decimal(1)))
    assert settings.q_bins == (0, 5)


def test_one_class_is_no_classification() -> None:
    with pytest.raises(InvalidInputError, match="at least 2 classes"):
        make_settings(1, 5)


@pytest.mark.parametrize("text", ["nan", "sNaN", "inf", "-Infinity", "a tenth", "", "0,1", "0." + 30 * "3", "1e-40000"])
def test_a_decimal_is_exact(text: str) -> None:
    with pytest.raises(
        InvalidInputError, match=f"^alpha: expected a decimal number with at most 20 places, got '{text}'"
    ):
        read_settings("venn-abers", {"alpha": text}, class_count=2, neighbour_count=5)


@pytest.mark.parametrize("text", ["0", "1", "-0.1", "1.5", "0.0", "1e3"])
def test_alpha_as_text_lies_between_0_and_1(text: str) -> None:
    with pytest.raises(InvalidInputError, match="alpha must lie strictly between 0 and 1; got"):
        read_settings("venn-abers", {"alpha": text}, class_count=2, neighbour_count=5)


def test_edges_are_whole_numbers() -> None:
    with pytest.raises(InvalidInputError, match="q_bins: expected whole numbers, got 'x'"):
        read_settings("venn-abers", {"q_bins": "0,x"}, class_count=2, neighbour_count=5)
