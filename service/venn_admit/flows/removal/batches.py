"""What one transaction removes, and in which order."""

from collections.abc import Sequence

from sqlalchemy import Connection

from venn_admit.store.exemplars import forgotten, generations
from venn_admit.store.exemplars.classifiers import Classifier

BATCH = 1000
"""How many exemplars, with all that refers to them, are removed in one transaction."""

OTHER_ROWS = 10_000
"""How many rows that refer to no exemplar are removed in one transaction."""

MOST_LISTS = 100_000
"""How many neighbour lists of other points are deleted in one transaction; those that name one exemplar may be more."""


def batches_of(connection: Connection, classifier: Classifier, external_ids: Sequence[str]) -> list[list[str]]:
    """Cut exemplars into what is removed in one transaction each; the last is the only one that may be empty.

    Those that train in no generation come first: a calibration that loses points can be followed by one without them
    only while no neighbour list is missing, and lists that name a training exemplar are deleted with it.
    """
    lists: dict[str, int] = {}
    for generation in generations.of_same(connection, classifier):
        for start in range(0, len(external_ids), BATCH):
            some = external_ids[start : start + BATCH]
            for external_id, count in forgotten.lists_of_training(connection, generation, some).items():
                lists[external_id] = lists.get(external_id, 0) + count
    batches, deleted = [list[str]()], 0
    for one in sorted(external_ids, key=lists.__contains__):
        named = lists.get(one, 0)
        if len(batches[-1]) == BATCH or (batches[-1] and deleted + named > MOST_LISTS):
            batches.append([])
            deleted = 0
        batches[-1].append(one)
        deleted += named
    return batches
