"""What class shares of traffic take: labels of each class, documents of one point, and traffic that has such shares."""

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.estimated import estimate_shares
from venn_admit.core.calibrators.certified.shares import SHARES_PART, Departure, confusion_counts, departures
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.types import IntArray
from venn_admit.methods.venn_abers.split_points import not_certifiable, read_traffic
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


def shares_of_traffic(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    cells: LabelledCells,
    settings: VennAbersSettings,
) -> ClassShares | EstimatedShares:
    """Return the class shares that are declared, or those of recent traffic.

    Args:
        cells: The evidence.
        settings: Those of a certificate for traffic with class shares of its own.

    Raises:
        NotReadyError: The evidence cannot serve them, recent traffic has others than those that are declared, or its
            shares cannot be told.
    """
    _require_evidence(classifier, cells)
    recent = read_traffic(connection, classifier, parameters, ScoreKind.NETWORK, cells.keys)
    _, first = np.unique(recent.keys, return_index=True)
    traffic = np.bincount(recent.points.predicted[first], minlength=classifier.class_count)
    confusion = confusion_counts(cells.points.predicted, cells.label, classifier.class_count)
    if settings.declared_shares is None:
        assert settings.confidence is not None, "a certificate is asked for"
        return _estimated(classifier, traffic, confusion, SHARES_PART * float(1 - settings.confidence))
    found = departures(traffic, confusion, settings.declared_shares)
    if found:
        raise not_certifiable(classifier, _departure_text(classifier, found[0], len(first)))
    return settings.declared_shares


def _require_evidence(classifier: Classifier, cells: LabelledCells) -> None:
    documents = len(set(cells.keys))
    if documents < len(cells.keys):
        raise not_certifiable(
            classifier,
            f"the certificate is for class shares of traffic, and the evidence of {classifier.name!r} is "
            f"{len(cells.keys):,} points in {documents:,} documents: expected documents of one point each, whose "
            "classes come independently; certify without class shares",
        )
    labels = np.bincount(cells.label, minlength=classifier.class_count)
    if not labels.all():
        raise not_certifiable(
            classifier,
            f"the certificate is for class shares of traffic, and splits mc and vp of {classifier.name!r} hold no "
            f"exemplar of class {classifier.class_names[int(np.argmin(labels))]!r}, so that nothing is known of its "
            "share of the calibration data: label some of each class",
        )


def _estimated(classifier: Classifier, traffic: IntArray, confusion: IntArray, level: float) -> EstimatedShares:
    names, documents = classifier.class_names, int(traffic.sum())
    if not documents:
        raise not_certifiable(
            classifier,
            f"class shares are to be estimated from recent traffic of {classifier.name!r}, and there is none: score "
            "points first, or declare class_shares",
        )
    found = estimate_shares(traffic, confusion, level)
    if found is None:
        seen = ", ".join(f"{count / documents:.3f} {name!r}" for count, name in zip(traffic, names, strict=True))
        raise not_certifiable(
            classifier,
            f"no class shares explain recent traffic of {classifier.name!r}: of {documents:,} points, {seen} are "
            "predicted, which points of each class like those of the calibration data give with no shares; label such "
            "traffic, and certify by these labels",
        )
    if not all(found.least):
        of = found.least.index(0.0)
        raise not_certifiable(
            classifier,
            f"the share of class {names[of]!r} in recent traffic of {classifier.name!r} may be anything from 0 to "
            f"{found.most[of]:.3f}, by {documents:,} points and {int(confusion[:, of].sum()):,} labels of the "
            "class: expected shares that cannot be 0; score or label more, unless the network hardly tells the class "
            "from others, or declare class_shares",
        )
    return found


def _departure_text(classifier: Classifier, of: Departure, documents: int) -> str:
    (low, high), (least, most) = of.interval, of.allowed
    return (
        f"recent traffic of {classifier.name!r} does not have the declared class shares: of {documents:,} points, "
        f"{of.seen:.3f} are predicted {classifier.class_names[of.predicted]!r} ({low:.3f} to {high:.3f}), and with "
        f"these shares {least:.3f} to {most:.3f} would be; declare the shares that traffic has, or widen "
        "class_shares_within"
    )
