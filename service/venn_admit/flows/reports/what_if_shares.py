"""What the certified policy in use would do in traffic with other class shares: by its evidence; nothing is stored."""

from collections.abc import Sequence
from decimal import Decimal

from venn_admit.core.calibrators.certified.policies import Bounded, admit
from venn_admit.core.calibrators.certified.shares.other_shares import under_shares
from venn_admit.errors import InvalidInputError
from venn_admit.flows.reports.what_if_settings import MOST_VALUES
from venn_admit.methods.venn_abers.shares import evidence_of
from venn_admit.report.what_if.shares import SharesTried
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.workspace import Workspace


def what_if_shares(workspace: Workspace, name: str, shares: Sequence[tuple[Decimal, ...]]) -> SharesTried:
    """Return what the policy of the calibration in use would admit, and how much of it could be wrong.

    Args:
        shares: To try, (C,) each, one for each class.

    Raises:
        InvalidInputError: Shares are none, or the calibration has no certificate that was made once, of the share
            right, for all groups together, of documents of one point.
    """
    if not 0 < len(shares) <= MOST_VALUES:
        raise InvalidInputError(f"class_shares: expected 1 to {MOST_VALUES} values to try, got {len(shares)}")
    with consistent_view(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.latest(connection, classifier)
        certificate = venn_abers.certificate_of(connection, calibration.id)
        policy = None if certificate is None else certificate.policy
        if (
            certificate is None
            or policy is None
            or policy.bounded is not Bounded.SCORE
            or policy.groups
            or certificate.standing is not None
            or certificate.loss is not None
            or not certificate.single_points
        ):
            raise InvalidInputError(
                f"class_shares: calibration {calibration.id} has no certified policy that this could be asked of: "
                "expected a certificate that was made once, of the share right, without groups, and documents of one "
                "point each"
            )
        calibrations.require_whole(connection, classifier, calibration)
        evidence = evidence_of(connection, classifier, calibration, certificate)
    points, label = evidence.points, evidence.label
    found = under_shares(
        label,
        points.predicted,
        admit(points.score, points.predicted, policy),
        shares,
        class_count=classifier.class_count,
        level=float(1 - certificate.confidence),
    )
    return SharesTried(
        classifier=classifier.name,
        class_names=classifier.class_names,
        calibration=calibration.id,
        alpha=certificate.alpha,
        confidence=certificate.confidence,
        points=len(label),
        declared=certificate.class_shares,
        tried=tuple(found),
    )
