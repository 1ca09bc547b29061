"""Values of a part of a setting in a table, in JSON and in a picture, with many classes and with none admitted."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.evaluation.measures import measure_admission
from venn_admit.report.charts.drawing import CLASS_LOOKS
from venn_admit.report.what_if.picture import save_settings_picture, settings_figure
from venn_admit.report.what_if.settings import SettingsTried, SettingTried, settings_payload, settings_table

POINTS = 800
KAPPAS = (10, 30, 100, 300)


def tried(class_count: int) -> SettingsTried:
    """Values that admit less and less, the last of them nothing."""
    generator = np.random.default_rng(2)
    label = generator.integers(class_count, size=POINTS)
    predicted = np.where(generator.random(POINTS) < 0.9, label, (label + 1) % class_count)
    confidence = generator.random(POINTS)
    settings = make_settings(class_count, 5)
    return SettingsTried(
        classifier="made $up$",
        class_names=tuple(f"class $_{number}$" for number in range(class_count)),
        calibration=3,
        method="venn-admit",
        varied="kappa",
        is_weighted=True,
        point_count=POINTS,
        judged_count=POINTS,
        document_count=POINTS,
        tried=tuple(
            SettingTried(
                str(kappa),
                replace(settings, kappa=kappa),
                measure_admission(label, predicted, confidence > least, class_count, None),
                is_current=kappa == 30,
            )
            for kappa, least in zip(KAPPAS, (0.1, 0.4, 0.7, 1.0), strict=True)
        ),
    )


@pytest.mark.parametrize("class_count", [2, 3, 9])
def test_table_json_and_picture_say_the_same(class_count: int, tmp_path: Path) -> None:
    found = tried(class_count)
    payload, table = json.loads(json.dumps(settings_payload(found))), settings_table(found)
    assert [row.names for row in table.rows] == [("10",), ("30 (in use)",), ("100",), ("300",)]
    for row, one in zip(table.rows, payload["settings"], strict=True):
        shown, admitted = row.cells[0].figure, one["admitted_share"]
        assert float(shown) == pytest.approx(admitted, abs=5e-4)
        kinds = 2 if class_count > 4 else 2 * class_count
        assert len(row.cells) == 1 + kinds
        assert len(one["per_true_class"]) == class_count
    last = payload["settings"][-1]
    assert (last["admitted"], last["every_class_reaches"]) == (0, None)
    assert {one["share_right"] for one in last["per_true_class"]} == {None}

    figure = settings_figure(found)
    admitted, *right = figure.axes
    assert np.asarray(admitted.lines[0].get_ydata()).tolist() == [one["admitted_share"] for one in payload["settings"]]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len([name for name in named if name.startswith("class")]) == min(class_count, len(CLASS_LOOKS))
    assert [tick.get_text() for tick in right[1].get_xticklabels()] == ["10", "30\nin use", "100", "300"]
    first, again = (save_settings_picture(found, tmp_path).read_bytes() for _ in range(2))
    assert first == again


def test_the_names_of_many_values_are_turned() -> None:
    """So that none lies over another."""
    few = tried(2)
    many = replace(few, tried=few.tried * 3)
    for found in (few, many):
        figure = settings_figure(found)
        figure.draw_without_rendering()
        for axes in figure.axes:
            boxes = sorted((label.get_window_extent() for label in axes.get_xticklabels()), key=lambda box: box.x0)
            assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
