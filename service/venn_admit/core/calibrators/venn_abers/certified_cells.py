"""The calibration points of a snapshot as a certificate takes them: those that propose, and the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from venn_admit.core.calibrators.certification import Certification
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints, groups_of
from venn_admit.core.calibrators.certified.strongest import Foretold, certify_strongest, foretell, foretell_strongest
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.logistic import LEAST_POINTS
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import VennAbersSettings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.documents import document_codes
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import BoolArray, IntArray

PROPOSING_PARTS = 10
"""If `knn` has too few points, one in this number of documents of `mc` and `vp` proposes."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledCells:
    """n labelled points.

    Attributes:
        points: As Venn-Abers sees them, under the snapshot's score.
        groups: The group of each point by the attributes that are asked for; None for a point in none.
    """

    points: CellPoints
    label: IntArray
    keys: Sequence[str]
    groups: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    def take(self, rows: BoolArray) -> "LabelledCells":
        """Return some of the points."""
        taken = np.flatnonzero(rows).tolist()
        groups = {name: [values[row] for row in taken] for name, values in self.groups.items()}
        return LabelledCells(self.points.take(rows), self.label[rows], [self.keys[row] for row in taken], groups)


def proposing_rows(keys: Sequence[str], of_knn: BoolArray, *, seed: int) -> BoolArray:
    """Return which of n points propose: those of `knn`, and one document in ten of the rest if these are too few.

    Too few are fewer than 50 points, or a single document.

    Args:
        of_knn: (n,) bool, whether it is of `knn`, not of `mc` or `vp`.

    Returns:
        (n,) bool. Points of `knn` are never evidence.
    """
    rows = np.flatnonzero(of_knn).tolist()
    if len(rows) >= LEAST_POINTS and len({keys[row] for row in rows}) > 1:
        return of_knn
    drawn: BoolArray = hash_keys(keys, seed=seed, purpose="propose") % PROPOSING_PARTS == 0
    return drawn | of_knn


def certify_cells(
    cells: LabelledCells,
    proposing: BoolArray,
    settings: VennAbersSettings,
    certification: Certification,
    by_softmax: BoolArray | None = None,
    class_shares: ClassShares | EstimatedShares | None = None,
) -> Certificate:
    """Certify a policy on the scores of a snapshot. Neither the order of the points nor their batch matters.

    Args:
        cells: The points of `knn`, `mc` and `vp`.
        proposing: (n,) bool, as `proposing_rows` gives it; the others are evidence.
        class_shares: Those of traffic; None if it is like the points.

    Raises:
        InvalidInputError: An array is out of range, or there are fewer than two documents.
    """
    values = {
        name: sorted({value for value in of_points if value is not None}) for name, of_points in cells.groups.items()
    }
    if settings.promise is AskedPromise.STRONGEST:
        assert by_softmax is not None, "the strongest promise is chosen by it"
        # The softmax at 1 - alpha knows no losses: next to a promise of the mean loss it says nothing.
        admitted = 0 if settings.loss is not None else int(np.count_nonzero(by_softmax[~proposing]))
        run = partial(certify_strongest, by_softmax=admitted)
    else:
        run = partial(certify, kinds=certification.kinds, class_shares=class_shares)
    return run(
        certificate_points(cells.take(proposing), values),
        certificate_points(cells.take(~proposing), values),
        class_count=len(settings.thresholds),
        alpha=settings.alpha,
        confidence=certification.confidence,
        test=certification.test,
        loss=settings.loss,
    )


def foretell_cells(
    cells: LabelledCells, settings: VennAbersSettings, *, documents: int, points: int, by_softmax: BoolArray
) -> Foretold:
    """Return what `certify_cells` is expected to find, from the points that propose alone.

    Args:
        cells: The points that propose.
        settings: Those of a certificate, of classes alone, or of the strongest promise.
        points: The number of points in the documents.
    """
    if settings.promise is AskedPromise.STRONGEST:
        run = partial(foretell_strongest, by_softmax=int(np.count_nonzero(by_softmax)))
    else:
        assert settings.certify is not None, "a certificate is asked for"
        run = partial(foretell, kinds=settings.certify)
    return run(
        certificate_points(cells, {}),
        documents=documents,
        points=points,
        class_count=len(settings.thresholds),
        alpha=settings.alpha,
    )


def certificate_points(cells: LabelledCells, values: Mapping[str, Sequence[str]]) -> CertificatePoints:
    """Return labelled points as a certificate sees them.

    Args:
        cells: The points.
        values: All that there are, by the name of an attribute.
    """
    points = cells.points
    groups = tuple(groups_of(name, of_points, values[name]) for name, of_points in sorted(cells.groups.items()))
    return CertificatePoints(points.score, points.predicted, cells.label, document_codes(cells.keys), groups)
