"""A stored exemplar as a point to decide on once more."""

import numpy as np
from sqlalchemy import Engine

from venn_admit.errors import Code, NotFoundError
from venn_admit.flows.decisions.score_one import GivenPoint
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers, exemplars, labels


def stored_point(engine: Engine, name: str, external_id: str) -> GivenPoint:
    """Return vector and logits of an exemplar. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        found = labels.by_external_id(connection, classifier, [external_id]).get(external_id)
        if found is None:
            raise NotFoundError(
                f"classifier {classifier.name!r} has no exemplar {external_id!r}",
                code=Code.UNKNOWN_EXEMPLAR,
                classifier=classifier.name,
                exemplar=external_id,
            )
        ids = np.array([found.id])
        (logits,) = exemplars.network_logits(connection, classifier, ids)
        vector = None if classifier.knn is None else exemplars.vectors(connection, classifier, ids)[0]
    return GivenPoint(vector, logits)
