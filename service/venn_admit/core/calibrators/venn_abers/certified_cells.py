"""The certificate of Venn-Abers: proposals on cross-fitted p0 of `mc`, tests on p0 of `vp` (PROCEDURE, section 9)."""

from collections.abc import Sequence
from dataclasses import dataclass

from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certification import Certification
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.crossfit import crossfitted_lower, fold_of
from venn_admit.core.calibrators.venn_abers.settings import VennAbersSettings
from venn_admit.core.documents import document_codes
from venn_admit.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class LabelledCells:
    """n labelled points of one split.

    Attributes:
        points: As Venn-Abers sees them, under the snapshot's score.
        label: (n,) int64 in [0, C).
        keys: The document id of each point, or its external id if it has no document.
    """

    points: CellPoints
    label: IntArray
    keys: Sequence[str]


def certify_cells(
    index: VennAbersIndex,
    mc: LabelledCells,
    vp: LabelledCells,
    settings: VennAbersSettings,
    certification: Certification,
    *,
    seed: int,
) -> Certificate:
    """Certify a policy on the plain p0 of a snapshot. Neither the order of the points nor their batch matters.

    The p0 of a point of `mc` comes from the other folds, that of a point of `vp` from all of `mc`, as for any point
    that is scored.

    Args:
        index: The index of the points of `mc`.
        mc: The same points.
        vp: Points that served nothing before.
        settings: The settings of the calibrator.
        certification: What is asked for.
        seed: The classifier's seed, for the folds.

    Raises:
        InvalidInputError: An array is out of range, or a split has fewer than two documents.
    """
    class_count = len(settings.thresholds)
    lower = crossfitted_lower(
        mc.points,
        mc.points.predicted == mc.label,
        fold_of(mc.keys, seed=seed),
        class_count=class_count,
        q_bins=settings.q_bins,
    )
    return certify(
        _certificate_points(lower, mc),
        _certificate_points(index.bounds(vp.points).lower, vp),
        class_count=class_count,
        alpha=settings.alpha,
        kinds=certification.kinds,
        confidence=certification.confidence,
        test=certification.test,
    )


def _certificate_points(p0: FloatArray, points: LabelledCells) -> CertificatePoints:
    return CertificatePoints(
        p0=p0, predicted=points.points.predicted, label=points.label, document=document_codes(points.keys)
    )
