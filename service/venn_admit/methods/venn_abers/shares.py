"""What class shares of traffic take: labels of each class, and traffic that has such shares."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.estimated import estimate_shares
from venn_admit.core.calibrators.certified.shares import (
    SHARES_PART,
    Departure,
    confusion_counts,
    departures,
    independent_rows,
)
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.documents import documents_of
from venn_admit.core.types import IntArray
from venn_admit.methods.venn_abers.split_points import not_certifiable, read_traffic
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


def shares_of_traffic(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    cells: LabelledCells,
    proposing: Sequence[str],
    settings: VennAbersSettings,
) -> ClassShares | EstimatedShares:
    """Return the class shares that are declared, or those of recent traffic.

    Args:
        cells: The evidence.
        proposing: The documents of the points that propose, of which the largest says for how many points one counts.
        settings: Those of a certificate for traffic with class shares of its own.

    Raises:
        NotReadyError: The evidence cannot serve them, recent traffic has others than those that are declared, or its
            shares cannot be told.
    """
    _require_evidence(classifier, cells)
    recent = read_traffic(connection, classifier, parameters, ScoreKind.NETWORK, cells.keys)
    size = 1 if documents_of(cells.keys) is None else max(Counter(proposing).values())
    drawn = independent_rows(recent.keys, recent.points.score, size, seed=classifier.seed)
    traffic = np.bincount(recent.points.predicted[drawn], minlength=classifier.class_count)
    known = independent_rows(cells.keys, cells.points.score, size, seed=classifier.seed)
    confusion = confusion_counts(cells.points.predicted[known], cells.label[known], classifier.class_count)
    if settings.declared_shares is None:
        assert settings.confidence is not None, "a certificate is asked for"
        return _estimated(classifier, traffic, confusion, SHARES_PART * float(1 - settings.confidence))
    found = departures(traffic, confusion, settings.declared_shares)
    if found:
        raise not_certifiable(classifier, _departure_text(classifier, found[0], len(drawn)))
    return settings.declared_shares


def _require_evidence(classifier: Classifier, cells: LabelledCells) -> None:
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
