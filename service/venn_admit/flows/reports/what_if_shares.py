"""What the certified policy in use would do in traffic with other class shares: by its evidence; nothing is stored."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.certified.policies import Bounded, admit
from venn_admit.core.calibrators.certified.shares.other_shares import under_shares
from venn_admit.core.calibrators.snapshot_rows import join_points
from venn_admit.core.calibrators.venn_abers.certified_cells import proposing_rows
from venn_admit.core.split_names import Split
from venn_admit.errors import InvalidInputError
from venn_admit.flows.reports.what_if_settings import MOST_VALUES
from venn_admit.report.what_if.shares import SharesTried
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers, exemplars
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
        parts = [calibrations.read_points(connection, calibration, split) for split in (Split.MC, Split.VP)]
        keys = exemplars.keys(connection, np.concatenate([part.exemplar_ids for part in parts])).document_keys
    points = join_points([part.points for part in parts])
    taken = np.ones(len(keys), dtype=np.bool_)
    if certificate.points < len(keys):
        # Some of mc and vp proposed, by which the policy and its score were chosen.
        taken = ~proposing_rows(keys, np.zeros(len(keys), dtype=np.bool_), seed=classifier.seed)
    predicted, label = points.predicted[taken], points.label[taken]
    found = under_shares(
        label,
        predicted,
        admit(points.score[taken], predicted, policy),
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
