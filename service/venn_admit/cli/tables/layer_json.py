"""What a memory layer is evaluated to do, and what carries a prediction, as JSON has them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from venn_admit.core.evaluation.curves import AccuracyGrid
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.flows.extraction.evaluate import EvaluatedLevel
from venn_admit.flows.extraction.inspect import Inspected
from venn_admit.layer.evaluation import Detection, Partitions, PredictionMeasures
from venn_admit.layer.model import LayerModel
from venn_admit.layer.texts.source import TextSummary


def evaluation_json(
    model: LayerModel, file: Path, summary: TextSummary | None, found: Sequence[EvaluatedLevel], neighbour_count: int
) -> dict[str, Any]:
    """Return an evaluation of a memory layer, level by level; neighbour_count: K."""
    return {
        "file": str(file),
        "extractor_version": model.extractor_version,
        "classes": list(model.class_names),
        "left_out": 0 if summary is None else summary.left_out,
        "levels": {each.found.level: _level(model.class_names, each, neighbour_count) for each in found},
    }


def inspected_json(model: LayerModel, found: Inspected) -> dict[str, Any]:
    """Return a document with what carries its prediction."""
    return {
        "external_id": found.external_id,
        "label": found.label,
        "classes": list(model.class_names),
        "logits": list(found.logits),
        "token_count": found.token_count,
        "representative": found.representative,
        "contributions": found.contributions.as_attribute(),
        "tokens": [asdict(token) for token in found.tokens],
    }


def _level(class_names: Sequence[str], evaluated: EvaluatedLevel, neighbour_count: int) -> dict[str, Any]:
    found = evaluated.found
    return {
        "points": found.points,
        "documents": found.documents,
        "network": _measures(class_names, found.network),
        "evidence": [_detection(class_names, one) for one in found.evidence],
        "knn": _measures(class_names, found.knn),
        "agreement": None if found.agreement is None else _tally(found.agreement),
        "neighbours": None if found.partitions is None else neighbour_count,
        "training_exemplars": evaluated.training_count,
        "fit_exemplars": evaluated.fit_count,
        "partitions": None if found.partitions is None else _partitions(found.partitions),
    }


def _measures(class_names: Sequence[str], found: PredictionMeasures | None) -> dict[str, Any] | None:
    if found is None:
        return None
    accuracy = found.accuracy
    return {
        "accuracy": _tally(accuracy.tallies.overall),
        "f_half": accuracy.f_half_macro,
        "f_half_interval": list(accuracy.f_half_interval),
        "classes": [_detection(class_names, one) for one in found.detections],
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {"share": tally.share, "interval": list(tally.interval), "right": tally.correct, "n": tally.count}


def _detection(class_names: Sequence[str], found: Detection) -> dict[str, Any]:
    return {
        "class": class_names[found.label],
        **asdict(found),
        "precision": found.precision,
        "recall": found.recall,
        "f_half": found.f_half,
        "f_half_of_all": found.f_half_of_all,
    }


def _partitions(found: Partitions) -> dict[str, Any]:
    """Rows are bins of q, columns groups of d; edges as `AccuracyGrid` has them."""

    def right(grid: AccuracyGrid | None) -> list[list[int]] | None:
        return None if grid is None else grid.correct.tolist()

    return {
        "match_edges": found.agreement.match_edges.tolist(),
        "distance_edges": found.agreement.distance_edges.tolist(),
        "count": found.agreement.count.tolist(),
        "network_right": right(found.network),
        "knn_right": right(found.knn),
        "agreeing": found.agreement.correct.tolist(),
    }
