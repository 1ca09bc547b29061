"""The settings that a user of a shell asks for."""

from collections.abc import Mapping
from typing import Any

from venn_admit.core.calibrators.arguments import ALL_DECLARED, read_settings
from venn_admit.core.calibrators.settings import MethodSettings, ScoreKind
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors


def settings_asked_for(classifier: Classifier, method: str, given: Mapping[str, Any]) -> MethodSettings:
    """Return the settings for a classifier, checked.

    Args:
        classifier: The classifier to calibrate.
        method: `venn-admit` or `venn-abers`.
        given: Values by the names of settings, as text or as Python or JSON have them; None for the default.

    Raises:
        InvalidInputError: There is no such method, it has no such setting, a value is invalid, or it needs vectors.
    """
    if classifier.knn is None:
        if method == VENN_ADMIT:
            require_vectors(classifier, "the method venn-admit")
        if given.get("score") == ScoreKind.RELIABILITY:
            require_vectors(classifier, "the reliability score")
        if given.get("q_bins") is not None and len(ALL_DECLARED["q_bins"].read("q_bins", given["q_bins"])) > 1:
            require_vectors(classifier, "more than one bin of q")
    neighbour_count = None if classifier.knn is None else classifier.knn.neighbour_count
    return read_settings(method, given, class_count=classifier.class_count, neighbour_count=neighbour_count)
