"""Labels of what a stage of a cascade passes on are no random sample of what it decides on."""

from collections.abc import Sequence
from math import comb

from sqlalchemy import Connection

from venn_admit.errors import ConflictError
from venn_admit.store.cascades import cascades
from venn_admit.store.exemplars.classifiers import Classifier

LEAST_CHANCE = 1e-6
"""With a smaller chance to be a random sample, labels are refused."""


def require_sample(connection: Connection, classifier: Classifier, exemplar_ids: Sequence[int], where: object) -> None:
    """Raise ConflictError if random labels are of points alone that a stage rejected, as far as a later stage tells.

    A stage that had all points by then tells nothing, and a few labels may be of what was rejected by chance.

    Args:
        classifier: The stage, or any other classifier.
        exemplar_ids: The points that it scored and that get a random label.
        where: What messages call the source of the labels.
    """
    count = len(exemplar_ids)
    for of in cascades.reached(connection, classifier, exemplar_ids) if count else ():
        passed_by = of.beside - of.beside_reached
        # Fisher's exact test: that all which passed the stage by are among those beside.
        if of.reached == count and comb(of.beside, passed_by) / comb(of.beside + count, passed_by) < LEAST_CHANCE:
            raise ConflictError(
                f"{where}: expected random labels of what {classifier.name!r} decides on, got {count:,} of points that "
                f"all reached {of.stage!r}, as {of.beside_reached:,} of {of.beside:,} others did: what a stage rejects "
                "is no random sample of its points; record them as selected"
            )
