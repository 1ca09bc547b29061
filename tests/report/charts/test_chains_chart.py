"""The picture of the chains of a certificate that stands: a line a chain, and alarms as hatched times."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from venn_admit.core.calibrators.certification import ClassKind, PromisedClass
from venn_admit.core.monitoring.history import ChainAdvance, ChainHistory, PromiseAlarm
from venn_admit.report.calibration.common.history import chains_payload, chains_picture
from venn_admit.report.charts.drawing import CLASS_LOOKS
from venn_admit.report.charts.drawn_chains import LEAST_EVIDENCE, chains_figure

BEGUN = datetime(2026, 3, 1, tzinfo=UTC)
OF_B = PromisedClass(ClassKind.PREDICTED, 1, None)


def advances(chain: int, first: int, shares: list[float], classes: int = 2) -> list[ChainAdvance]:
    evidence: dict[int | None, float] = {number: 0.5 / (number + 1) if number else 1e-9 for number in range(classes)}
    return [
        ChainAdvance(10 * chain + day, BEGUN + timedelta(days=first + day), chain, day, 2 * day, share, evidence)
        for day, share in enumerate(shares)
    ]


HISTORY = ChainHistory(
    (*advances(1, 0, [0.0, 0.4, 0.6]), *advances(2, 4, [0.0, 0.7])),
    (
        PromiseAlarm(OF_B, BEGUN + timedelta(days=1), BEGUN + timedelta(days=2)),
        PromiseAlarm(OF_B, BEGUN + timedelta(days=3), None),
    ),
)


def heights(line: Line2D) -> list[float]:
    found: list[float] = np.asarray(line.get_ydata()).tolist()
    return found


def test_each_chain_has_its_line_and_each_alarm_its_time() -> None:
    admitted, labels, evidence = chains_figure(HISTORY, ("a", "$b$")).axes
    first, marks, second, *_ = admitted.lines
    assert heights(first) == [0.0, 0.4, 0.6, 0.6]
    assert heights(marks) == [0.0, 0.4, 0.6]
    assert heights(second) == [0.0, 0.7, 0.7]
    assert [one.get_text().strip() for one in admitted.texts] == ["chain 1", "chain 2"]
    assert heights(labels.lines[0]) == [0, 2, 4, 4]
    assert min(heights(evidence.lines[0])) == LEAST_EVIDENCE
    start = BEGUN.timestamp() / 86400
    spans = [one for one in admitted.patches if isinstance(one, Rectangle)]
    times = [(one.get_x() - start, one.get_x() + one.get_width() - start) for one in spans]
    assert times == [pytest.approx((1, 2)), pytest.approx((3, 5))]
    (legend,) = chains_figure(HISTORY, ("a", "$b$")).legends
    assert [one.get_text() for one in legend.get_texts()] == [
        "predicted as a",
        "predicted as $b$",
        "alarm: predicted $b$",
    ]


def test_of_many_classes_those_with_the_least_evidence_are_drawn() -> None:
    history = ChainHistory(tuple(advances(1, 0, [0.0, 0.5], classes=20)), ())
    figure = chains_figure(history, tuple(f"c{number}" for number in range(20)))
    (legend,) = figure.legends
    names = [one.get_text() for one in legend.get_texts()]
    assert len(names) == len(CLASS_LOOKS)
    assert names == ["predicted as c0", *(f"predicted as c{number}" for number in range(15, 20))]


def test_the_evidence_for_policies_of_all_classes_is_one_line() -> None:
    of_path = [replace(one, evidence={None: 0.25}) for one in advances(1, 0, [0.0, 0.5])]
    history = ChainHistory(tuple(of_path), (PromiseAlarm(replace(OF_B, kind=ClassKind.TRUE), BEGUN, None),))
    figure = chains_figure(history, ("a", "b"))
    assert heights(figure.axes[2].lines[0]) == [0.25, 0.25, 0.25]
    (legend,) = figure.legends
    assert [one.get_text() for one in legend.get_texts()] == ["all classes", "alarm: true b"]
    assert [one["evidence"] for one in chains_payload(history)["advances"]] == [{"all": 0.25}] * 2


def test_the_picture_has_its_caption_and_its_data() -> None:
    picture = chains_picture(HISTORY, ("a", "b"))
    assert "2 at last" in picture.caption
    found = chains_payload(HISTORY)
    assert [one["admitted"] for one in found["advances"]] == [0.0, 0.4, 0.6, 0.0, 0.7]
    assert found["alarms"][1] == {
        "kind": "predicted",
        "class": 1,
        "created_at": "2026-03-04T00:00:00+00:00",
        "ended_at": None,
    }
