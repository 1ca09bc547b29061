"""The settings of a method as a calibrator holds them: their digest, and there and back."""

import json
from decimal import Decimal
from typing import Any

import pytest

from venn_admit.core.calibrators.settings import VennAbersSettings, make_venn_abers_settings
from venn_admit.store.calibrations.settings_rows import setting_columns, settings_digest, settings_of

CERTIFIED: dict[str, Any] = {"certify": ["true", "predicted"], "confidence": Decimal("0.90"), "test": "asymptotic"}


@pytest.mark.parametrize(
    ("settings", "digest"),
    [
        (make_venn_abers_settings(2, 25), "ba16258a454394c526a19859d41e7ef9"),
        (
            make_venn_abers_settings(
                3,
                5,
                alpha=Decimal("0.20"),
                q_bins=(0, 2),
                thresholds=(Decimal("0.8"), Decimal("0.90"), Decimal("0.95")),
                score="reliability",
            ),
            "69b347c860f9a42c72237aecfd2da1e8",
        ),
    ],
)
def test_calibrators_without_a_certificate_are_found_by_the_digest_of_before(
    settings: VennAbersSettings, digest: str
) -> None:
    assert settings_digest(settings).hex() == digest


def test_each_part_of_what_is_certified_makes_another_setting() -> None:
    asked: list[dict[str, Any]] = [
        {},
        {"certify": ["predicted"]},
        {"certify": ["true"]},
        {"certify": ["predicted", "true"]},
        {"certify": ["true"], "confidence": Decimal("0.9")},
        {"certify": ["true"], "test": "asymptotic"},
    ]
    digests = {settings_digest(make_venn_abers_settings(2, 25, **each)) for each in asked}
    assert len(digests) == len(asked)
    same: list[dict[str, Any]] = [{"certify": ["true"], "confidence": Decimal("0.950")}, {"certify": ["true", "true"]}]
    assert {settings_digest(make_venn_abers_settings(2, 25, **each)) for each in same} <= digests


@pytest.mark.parametrize("asked", [{}, CERTIFIED, CERTIFIED | {"score": "network", "q_bins": (0, 4)}])
def test_columns_give_back_the_settings(asked: dict[str, Any]) -> None:
    settings = make_venn_abers_settings(2, 25, **asked)
    columns = setting_columns(settings)
    assert (columns["certify"] is None) == (columns["confidence"] is None) == (asked == {})
    del columns["settings_digest"]
    assert settings_of(json.dumps(columns, default=float)) == settings
