"""The scores of points, of whichever kind a snapshot was made with."""

from venn_admit.service.core.approximation.knn import network_prediction
from venn_admit.service.core.calibrators.venn_abers.cells import ScoredPoints
from venn_admit.service.core.calibrators.venn_abers.reliability import ReliabilityModel, reliability_score
from venn_admit.service.core.calibrators.venn_abers.scores import network_score
from venn_admit.service.core.calibrators.venn_abers.settings import ScoreKind
from venn_admit.service.core.types import Approximation, Float32Array
from venn_admit.service.errors import Code, NotReadyError
from venn_admit.service.store.exemplars.approximations import StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier


def scored(
    kind: ScoreKind, parameters: StoredParameters, logits: Float32Array, view: Approximation, *, neighbour_count: int
) -> ScoredPoints:
    """Return the network's predictions of points, and how likely they are right by a kind of score.

    logits: (n, C) float32, f. view: the KNN's, of the same points. neighbour_count: K.
    """
    score = (
        network_score(logits)
        if kind is ScoreKind.NETWORK
        else reliability_score(_stored_model(parameters), logits, view, neighbour_count=neighbour_count)
    )
    return ScoredPoints(network_prediction(logits), view.match_count, score)


def require_model(classifier: Classifier, parameters: StoredParameters) -> None:
    """Raise NotReadyError unless the parameters have the model of the reliability score."""
    if parameters.reliability is None:
        raise NotReadyError(
            f"the parameters of {classifier.name!r} have no reliability score, because they were given without one or "
            "are older than it: fit again, or ask for the network's score",
            code=Code.NOT_FITTED,
            classifier=classifier.name,
        )


def _stored_model(parameters: StoredParameters) -> ReliabilityModel:
    assert parameters.reliability is not None, "a snapshot rests on a score that its parameters do not have"
    return parameters.reliability
