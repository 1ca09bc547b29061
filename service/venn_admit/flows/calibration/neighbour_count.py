"""Choosing K before the first fit, by what several numbers of neighbours make of split knn."""

from collections.abc import Callable

from venn_admit.core.approximation.neighbour_counts import TRIED, TriedCount, choose, try_neighbour_counts
from venn_admit.core.split_names import Split
from venn_admit.errors import ConflictError, InvalidInputError
from venn_admit.flows.calibration.approximate import held_classifier, require_support, take_in_waiting
from venn_admit.flows.calibration.fit import require_data
from venn_admit.store.database.engine import connect, consistent_view, transaction
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

AUTO = "auto"
"""Lets K be chosen."""


def asks_to_choose(k: str | None) -> bool:
    """Return whether K shall be chosen: if it is `auto`, not if it is None. Another value raises InvalidInputError."""
    if k not in (None, AUTO):
        raise InvalidInputError(f"k: expected {AUTO}, which chooses it, got {k!r}; state a number when creating")
    return k is not None


def choose_neighbour_count(workspace: Workspace, name: str, *, on_tried: Callable[[TriedCount], object]) -> TriedCount:
    """Give a classifier the K that serves best on split knn, and return what it made of that split.

    Args:
        on_tried: Is given what each K made of split knn, in ascending order.

    Raises:
        ConflictError: The classifier has been fitted, or a job of it is under way: what is stored has its K.
        InvalidInputError: The classifier has no vectors.
    """
    from venn_admit.core.neighbours.on_device import neighbours_on

    take_in_waiting(workspace.engine, name)
    with connect(workspace.engine) as connection:
        classifier = held_classifier(connection, classifiers.by_name(connection, name))
    with consistent_view(workspace.engine) as connection:
        classifiers.require_vectors(classifier, "a choice of K")
        require_support(connection, classifier)
        require_data(exemplars.split_counts(connection, classifier), classifier)
        if classifiers.has_results(connection, classifier):
            raise _has_results(classifier)
        training = workspace.cache.support(workspace.engine, classifier)
        knn = exemplars.split_keys(connection, classifier, Split.KNN)
        vectors = exemplars.vectors(connection, classifier, knn.ids)
        logits = exemplars.network_logits(connection, classifier, knn.ids)
        labels = exemplars.labels(connection, knn.ids)
    counts = [count for count in TRIED if count <= len(training.ids)] or [len(training.ids)]
    neighbours = neighbours_on(
        workspace.device, vectors, training.vectors, counts[-1], memory_budget=workspace.memory_budget
    )
    tried = []
    for one in try_neighbour_counts(
        neighbours,
        logits,
        labels,
        training.support,
        document_keys=knn.document_keys,
        row_keys=knn.row_keys,
        seed=classifier.seed,
        counts=counts,
    ):
        on_tried(one)
        tried.append(one)
    chosen = choose(tried)
    with transaction(workspace.engine) as connection:
        classifiers.lock(connection, classifier)
        if classifiers.has_results(connection, classifier):
            raise _has_results(classifier)
        classifiers.set_neighbour_count(connection, classifier, chosen.neighbour_count)
    return chosen


def _has_results(classifier: Classifier) -> ConflictError:
    return ConflictError(
        f"expected a classifier that was not fitted before, with no job under way, to choose K; {classifier.name!r} "
        f"has results with K {classifier.neighbour_count}: fit without choosing, or create another classifier"
    )
