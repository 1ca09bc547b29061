"""What class shares of traffic take: labels of each class, and traffic that has such shares."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.average.policy import UnlabelledCells
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.shares.bounds import document_counts
from venn_admit.core.calibrators.certified.shares.declared import SHARES_PART
from venn_admit.core.calibrators.certified.shares.estimated import estimate_shares
from venn_admit.core.calibrators.certified.shares.mixes import (
    Departure,
    DocumentMixes,
    Mixes,
    confusion_counts,
    departures,
)
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.snapshot_rows import join_points
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells, proposing_rows
from venn_admit.core.documents import document_codes, documents_of
from venn_admit.core.split_names import Split
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.methods.venn_abers.split_points import not_certifiable, read_traffic
from venn_admit.report.calibration.cells.certified import departure_text
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


def shares_of_traffic(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    cells: LabelledCells,
    proposing: BoolArray,
    settings: VennAbersSettings,
) -> ClassShares | EstimatedShares:
    """Return the class shares that are declared, or those of recent traffic.

    Args:
        cells: The points of `knn`, `mc` and `vp`.
        proposing: (n,) bool, whether each proposes; the others are evidence.
        settings: Those of a certificate for traffic with class shares of its own.

    Raises:
        NotReadyError: The evidence cannot serve them, recent traffic has others than those that are declared, or its
            shares cannot be told.
    """
    evidence = cells.take(~proposing)
    _require_evidence(classifier, evidence)
    recent = read_traffic(connection, classifier, parameters, ScoreKind.NETWORK, evidence.keys)
    # What is refused promises nothing, so it may rest on narrower intervals.
    by_cell = settings.declared_shares is not None
    mixes = _mixes(classifier, evidence, cells.take(proposing), recent, by_cell=by_cell)
    if settings.declared_shares is None:
        assert settings.confidence is not None, "a certificate is asked for"
        return _estimated(classifier, mixes, SHARES_PART * float(1 - settings.confidence))
    found = departures(mixes, settings.declared_shares)
    if found:
        raise not_certifiable(
            classifier,
            f"recent traffic of {classifier.name!r} does not have the declared class shares: "
            f"{departure_text(found[0], classifier.class_names)}; declare the shares that traffic has, or widen "
            "class_shares_within",
        )
    return settings.declared_shares


def evidence_of(
    connection: Connection, classifier: Classifier, calibration: Calibration, certificate: Certificate
) -> LabelledCells:
    """Return the points of a snapshot that its certificate was tested on."""
    parts = [calibrations.read_points(connection, calibration, split) for split in (Split.MC, Split.VP)]
    keys = exemplars.keys(connection, np.concatenate([part.exemplar_ids for part in parts])).document_keys
    points = join_points([part.points for part in parts])
    cells = LabelledCells(CellPoints(points.predicted, points.match_count, points.score), points.label, keys)
    if certificate.points >= len(keys):
        return cells
    # Some of mc and vp proposed, by which the policy and its score were chosen.
    return cells.take(~proposing_rows(keys, np.zeros(len(keys), dtype=np.bool_), seed=classifier.seed))


def departure_of_traffic(
    connection: Connection, classifier: Classifier, calibration: Calibration, certificate: Certificate | None
) -> Departure | None:
    """Return how recent traffic has left the class shares that a certificate is for; None if it has not."""
    if certificate is None or certificate.class_shares is None:
        return None
    evidence = evidence_of(connection, classifier, calibration, certificate)
    recent = read_traffic(connection, classifier, None, ScoreKind.NETWORK, evidence.keys)
    # Nothing is promised by what a report says, so these documents may say as well which stakes are good.
    mixes = _mixes(classifier, evidence, evidence, recent, by_cell=True)
    return next(iter(departures(mixes, certificate.class_shares)), None)


def _mixes(
    classifier: Classifier,
    evidence: LabelledCells,
    proposing: LabelledCells,
    recent: UnlabelledCells,
    *,
    by_cell: bool,
) -> Mixes:
    """What is known of traffic; of its documents, one point each counts if those of the evidence have one."""
    class_count, predicted = classifier.class_count, recent.points.predicted
    confusion = confusion_counts(evidence.points.predicted, evidence.label, class_count)
    if documents_of(evidence.keys) is None:
        _, first = np.unique(recent.keys, return_index=True)
        return Mixes(np.bincount(predicted[first], minlength=class_count), confusion)

    def counted(keys: Sequence[str], cell: IntArray, cell_count: int) -> FloatArray:
        """Documents in the order of a hash of their ids, which knows nothing of what is in them."""
        names = sorted(set(keys))
        order = np.argsort(hash_keys(names, seed=classifier.seed, purpose="mixes"), kind="stable")
        place = np.empty(len(names), dtype=np.int64)
        place[order] = np.arange(len(names))
        return document_counts(place[document_codes(keys)], cell, cell_count)

    of_labels, of_proposing = (
        counted(of.keys, of.points.predicted * class_count + of.label, class_count**2) for of in (evidence, proposing)
    )
    of_traffic = counted(recent.keys, predicted, class_count)
    of_points = np.bincount(predicted, minlength=class_count)
    return DocumentMixes(of_points, confusion, of_traffic, of_labels, of_proposing, by_cell)


def _require_evidence(classifier: Classifier, cells: LabelledCells) -> None:
    labels = np.bincount(cells.label, minlength=classifier.class_count)
    if not labels.all():
        raise not_certifiable(
            classifier,
            f"the certificate is for class shares of traffic, and splits mc and vp of {classifier.name!r} hold no "
            f"exemplar of class {classifier.class_names[int(np.argmin(labels))]!r}, so that nothing is known of its "
            "share of the calibration data: label some of each class",
        )


def _estimated(classifier: Classifier, mixes: Mixes, level: float) -> EstimatedShares:
    names, traffic, count = classifier.class_names, mixes.traffic, int(mixes.traffic.sum())
    if not count:
        raise not_certifiable(
            classifier,
            f"class shares are to be estimated from recent traffic of {classifier.name!r}, and there is none: score "
            "points first, or declare class_shares",
        )
    found = estimate_shares(mixes, level)
    if found is None:
        seen = ", ".join(f"{of / count:.3f} {name!r}" for of, name in zip(traffic, names, strict=True))
        raise not_certifiable(
            classifier,
            f"no class shares explain recent traffic of {classifier.name!r}: of {count:,} points, {seen} are "
            "predicted, which points of each class like those of the calibration data give with no shares; label such "
            "traffic, and certify by these labels",
        )
    if not all(found.least):
        of = found.least.index(0.0)
        raise not_certifiable(
            classifier,
            f"the share of class {names[of]!r} in recent traffic of {classifier.name!r} may be anything from 0 to "
            f"{found.most[of]:.3f}, by {count:,} points and {int(mixes.confusion[:, of].sum()):,} labels of the "
            "class: expected shares that cannot be 0; score or label more, unless the network hardly tells the class "
            "from others, or declare class_shares",
        )
    return found
