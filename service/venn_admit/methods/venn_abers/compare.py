"""How a snapshot of Venn-Abers that is not stored differs from the current one."""

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.monitoring.what_if import SnapshotCount, SnapshotEffects, SnapshotFact
from venn_admit.core.types import Split
from venn_admit.methods.made_points import points_of_split
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.calibrations.calibrations import Calibration


def compare(connection: Connection, calibration: Calibration, made: MadeByAbers) -> SnapshotEffects:
    """Return the differences; see the protocol `Method`."""
    before = calibrations.read_points(connection, calibration, Split.MC)
    after = points_of_split(made.rows, Split.MC)
    stored = venn_abers.open_steps(connection, calibration.calibrator_id)
    _, opened = venn_abers.changed_steps(stored, made.steps)
    # Both hold the same exemplars, whose order in the cells may differ.
    score_before = before.points.score[np.argsort(before.exemplar_ids)]
    score_after = after.points.score[np.argsort(after.exemplar_ids)]
    certified = _certified(connection, calibration, made.certificate)
    return SnapshotEffects(
        facts=(
            SnapshotFact("score", str(venn_abers.score_of(connection, calibration.id)), str(made.choice.kind)),
            SnapshotFact("steps", len(stored.cell), len(made.steps.cell)),
            *certified.facts,
        ),
        counts=(
            SnapshotCount("scores", int((score_before != score_after).sum()), len(score_after)),
            SnapshotCount("steps", len(opened.cell), len(made.steps.cell)),
            *certified.counts,
        ),
    )


def _certified(connection: Connection, calibration: Calibration, after: Certificate | None) -> SnapshotEffects:
    """What becomes of the certificate; nothing if none was asked for."""
    if after is None:
        return SnapshotEffects((), ())
    policies = venn_abers.policy_of(connection, calibration.id), after.policy
    never = (None,) * len(calibration.abers_settings.thresholds)
    was, would_be = (never if policy is None else policy.thresholds for policy in policies)
    changed = sum(one != other for one, other in zip(was, would_be, strict=True))
    certified = ("no" if policy is None else "yes" for policy in policies)
    return SnapshotEffects((SnapshotFact("certified", *certified),), (SnapshotCount("policy", changed, len(would_be)),))
