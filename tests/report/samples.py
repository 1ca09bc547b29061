"""Points to make reports of: real ones of two classes, and made ones of given labels and decisions."""

from decimal import Decimal
from pathlib import Path

import numpy as np

from service.core.evaluation import EvaluationPoints

GOLDEN = Path(__file__).parents[1] / "golden" / "sentiment.npz"
ALPHA = Decimal("0.1")

HOSTILE_NAMES = ("<b>bold</b>", "$x_1$ & \\frac", "[red]sea[/red]", "_hidden", '"quoted"', "ordinary", "a" * 60, "-->")


def golden_points(rows: slice) -> EvaluationPoints:
    """Scored real points, as the reference computed them."""
    golden = np.load(GOLDEN)
    score = {name: golden[f"score_{name}"][rows] for name in ("y", "f", "logits", "predicted", "q", "d", "set")}
    return EvaluationPoints(
        label=score["y"].astype(np.int64),
        network_predicted=score["f"].argmax(axis=1),
        predicted=score["predicted"],
        localizer_predicted=None,
        match_count=score["q"],
        distance=score["d"],
        logits=score["logits"],
        included=score["set"],
        lower_plain=golden["score_lower_plain"][rows],
        lower_weighted=golden["score_lower_weighted"][rows],
        decision_plain=golden["score_decision_plain"][rows],
        decision_weighted=golden["score_decision_weighted"][rows],
    )


def made_points(label: list[int], predicted: list[int], decision: list[int], class_count: int) -> EvaluationPoints:
    """Points of given labels and decisions; where admitted, the lower probability is .95."""
    said, admitted = np.array(predicted), np.array(decision) >= 0
    one_hot = said[:, None] == np.arange(class_count)
    lower = np.where(admitted, 0.95, np.nan)
    return EvaluationPoints(
        label=np.array(label),
        network_predicted=said,
        predicted=said,
        localizer_predicted=said,
        match_count=np.where(admitted, 5, 0),
        distance=np.linspace(1.0, 2.0, said.size),
        logits=one_hot * 2.0,
        included=one_hot | ~admitted[:, None],
        lower_plain=lower,
        lower_weighted=lower,
        decision_plain=np.array(decision),
        decision_weighted=np.array(decision),
    )
