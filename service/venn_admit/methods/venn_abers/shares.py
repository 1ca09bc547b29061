"""What declared class shares take: labels of each class, documents of one point, and traffic that has such shares."""

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.shares import Departure, departures
from venn_admit.core.calibrators.class_shares import ClassShares
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.methods.venn_abers.split_points import not_certifiable, read_traffic
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


def require_declared(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    cells: LabelledCells,
    declared: ClassShares,
) -> None:
    """Raise NotReadyError if the evidence cannot serve declared class shares, or recent traffic has others.

    Args:
        cells: The evidence.
    """
    names = classifier.class_names
    documents = len(set(cells.keys))
    if documents < len(cells.keys):
        raise not_certifiable(
            classifier,
            f"class shares are declared, and the evidence of {classifier.name!r} is {len(cells.keys):,} points in "
            f"{documents:,} documents: expected documents of one point each, whose classes come independently; "
            "certify without class shares",
        )
    labels = np.bincount(cells.label, minlength=len(names))
    if not labels.all():
        raise not_certifiable(
            classifier,
            f"class shares are declared, and splits mc and vp of {classifier.name!r} hold no exemplar of class "
            f"{names[int(np.argmin(labels))]!r}, so that nothing is known of its share of the calibration data: label "
            "some of each class",
        )
    traffic = read_traffic(connection, classifier, parameters, ScoreKind.NETWORK, cells.keys)
    _, first = np.unique(traffic.keys, return_index=True)
    confusion = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(confusion, (cells.points.predicted, cells.label), 1)
    found = departures(np.bincount(traffic.points.predicted[first], minlength=len(names)), confusion, declared)
    if found:
        raise not_certifiable(classifier, _departure_text(classifier, found[0], len(first)))


def _departure_text(classifier: Classifier, of: Departure, documents: int) -> str:
    (low, high), (least, most) = of.interval, of.allowed
    return (
        f"recent traffic of {classifier.name!r} does not have the declared class shares: of {documents:,} documents, "
        f"{of.seen:.3f} are predicted {classifier.class_names[of.predicted]!r} ({low:.3f} to {high:.3f}), and with "
        f"these shares {least:.3f} to {most:.3f} would be; declare the shares that traffic has, or widen "
        "class_shares_within"
    )
