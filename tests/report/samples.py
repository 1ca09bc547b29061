"""Points to make reports of: real ones of two classes, and made ones of given labels and decisions."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np

from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.measures import measure_admission
from venn_admit.core.evaluation.points import NETWORK, EvaluationPoints, OwnMethod, PredictedPoints
from venn_admit.core.types import AdmitOutcome, Approximation, MethodSets, SelectiveMethod
from venn_admit.report.what_if.compared import ComparedSetting, ComparedSettings

GOLDEN = Path(__file__).parents[1] / "golden" / "sentiment.npz"
ALPHA = Decimal("0.1")
PARAMETERS = (("temperature", "0.697"), ("RAPS size", "k_reg 2, lambda 0.01"))

HOSTILE_NAMES = ("<b>bold</b>", "$x_1$ & \\frac", "[red]sea[/red]", "_hidden", '"quoted"', "ordinary", "a" * 60, "-->")

SCRIPTS = ("正面的评价", "سلبي", "🦊 fox", "Rechtsschutzversicherungsgesellschaften", "plain")


def golden_points(rows: slice) -> EvaluationPoints:
    """Scored real points, as the reference computed them."""
    golden = np.load(GOLDEN)
    score = {name: golden[f"score_{name}"][rows] for name in ("y", "f", "logits", "predicted", "q", "d", "set")}
    size, upweight = golden["score_category_size"][rows], golden["score_upweight"][rows]
    return EvaluationPoints(
        label=score["y"].astype(np.int64),
        class_count=2,
        network_predicted=score["f"].argmax(axis=1),
        view=Approximation(score["logits"], score["predicted"], score["q"], score["d"]),
        localizer_predicted=None,
        admit=AdmitOutcome(
            included=score["set"],
            lower_plain=golden["score_lower_plain"][rows],
            upper_plain=golden["score_lower_plain"][rows] + 1 / (size + 1),
            lower_weighted=golden["score_lower_weighted"][rows],
            upper_weighted=golden["score_lower_weighted"][rows] + upweight / (size + upweight),
            admitted_plain=golden["score_decision_plain"][rows] >= 0,
            admitted_weighted=golden["score_decision_weighted"][rows] >= 0,
        ),
    )


def calibration_points(rows: slice) -> PredictedPoints:
    """Real points as if they were those of mc and vp; the localizer predicts as the KNN does."""
    points = golden_points(rows)
    return PredictedPoints(
        label=points.label,
        class_count=points.class_count,
        network_predicted=points.network_predicted,
        view=points.view,
        localizer_predicted=points.knn.predicted,
    )


def made_points(label: list[int], predicted: list[int], decision: list[int], class_count: int) -> EvaluationPoints:
    """Points of given labels and decisions; where admitted, the lower probability is .95."""
    said, admitted = np.array(predicted), np.array(decision) >= 0
    one_hot = said[:, None] == np.arange(class_count)
    lower = np.where(admitted, 0.95, np.nan)
    return EvaluationPoints(
        label=np.array(label),
        class_count=class_count,
        network_predicted=said,
        view=Approximation(one_hot * 2.0, said, np.where(admitted, 5, 0), np.linspace(1.0, 2.0, said.size)),
        localizer_predicted=said,
        admit=AdmitOutcome(
            included=one_hot | ~admitted[:, None],
            lower_plain=lower,
            upper_plain=lower,
            lower_weighted=lower,
            upper_weighted=lower,
            admitted_plain=admitted,
            admitted_weighted=admitted,
        ),
    )


def selective_points(rows: slice, documents: Documents | None = None) -> EvaluationPoints:
    """`compared_points` with methods that admit or reject the network's prediction by its softmax."""
    points = compared_points(rows, documents)
    logits = np.load(GOLDEN)["score_f"][rows].astype(np.float64)
    confidence = np.exp(logits - logits.max(axis=1, keepdims=True))
    confidence = 1 / confidence.sum(axis=1)
    said = points.network_predicted
    return replace(
        points,
        selective=(
            SelectiveMethod("softmax >= 1 - alpha", said, confidence >= 0.9, confidence),
            SelectiveMethod("SGR", said, confidence >= 0.7, None),
            SelectiveMethod("Venn-Abers network", said, confidence >= 0.85, confidence.round(2)),
            SelectiveMethod("Venn-Abers reliability", said, confidence >= 0.95, confidence.round(1)),
            SelectiveMethod("certified", said, confidence >= 1.1, None),
            SelectiveMethod("on average", said, confidence >= 0.6, None),
        ),
    )


def abers_points(rows: slice) -> EvaluationPoints:
    """`selective_points` as a calibration by Venn-Abers sees them, where no band has enough points for Venn-ADMIT."""
    points = selective_points(rows)
    (own,) = (one for one in points.selective if one.name == "Venn-Abers network")
    assert own.confidence is not None
    upper = own.confidence + (1 - own.confidence) / 10
    return replace(
        points,
        admit=None,
        calibrated_by=OwnMethod(
            own.name, NETWORK, own.predicted, own.confidence, {"plain": (own.confidence, upper)}, has_bands=False
        ),
    )


def bare_points(rows: slice) -> EvaluationPoints:
    """`abers_points` of a classifier with logits only: nothing is left of the KNN."""
    points = abers_points(rows)
    on_network = ("RAPS adaptiveness", "RAPS size", "APS")
    return replace(
        points,
        view=None,
        comparisons=tuple(sets for sets in points.comparisons if sets.name in on_network),
        selective=tuple(one for one in points.selective if one.name != "Venn-Abers reliability"),
    )


def compared_points(rows: slice, documents: Documents | None = None) -> EvaluationPoints:
    """`golden_points` with the reference's sets of the five comparison methods, of documents if given."""
    points, golden = golden_points(rows), np.load(GOLDEN.with_name("baselines.npz"))
    network, knn = points.network_predicted, points.knn.predicted
    sets = (
        ("Conf_BASE", knn, "conf_base_set"),
        ("RAPS adaptiveness", network, "two_raps_a_set"),
        ("RAPS size", network, "two_raps_b_set"),
        ("APS", network, "two_aps_set"),
        ("LocalConf_BASE", knn, "local_conf_set"),
    )
    return replace(
        points,
        comparisons=tuple(MethodSets(name, predicted, golden[key][rows]) for name, predicted, key in sets),
        documents=documents,
    )


def many_classes(*admitted: int) -> ComparedSettings:
    """Six classes, of which d is right least often, in documents of two points; a setting for each share admitted."""
    label = np.arange(6000) % 6
    rng = np.random.default_rng(0)
    predicted = np.where(rng.random(6000) < np.where(label == 3, 0.7, 0.95), label, (label + 1) % 6)
    pairs = Documents(np.arange(6000) // 2, 3000)
    settings = [make_settings(6, 25, kappa=100 + place) for place in range(len(admitted))]
    return ComparedSettings(
        classifier="six",
        class_names=tuple("abcdef"),
        neighbour_count=25,
        alpha=Decimal("0.1"),
        point_count=6000,
        judged_count=6000,
        document_count=3000,
        compared=tuple(
            ComparedSetting(one, measure_admission(label, predicted, np.arange(6000) < count, 6, pairs), (0.4, 0.5))
            for one, count in zip(settings, admitted, strict=True)
        ),
        left_out=(("Venn-Abers, score reliability", "there is no model of it"),),
    )
