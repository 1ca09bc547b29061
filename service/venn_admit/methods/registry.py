"""The methods of calibration, by their names in the database."""

from collections.abc import Mapping

from venn_admit.core.method_names import VENN_ABERS, VENN_ADMIT
from venn_admit.errors import InvalidInputError
from venn_admit.methods.method import Method, Snapshot
from venn_admit.methods.venn_abers.method import VennAbers
from venn_admit.methods.venn_admit.method import VennAdmit
from venn_admit.methods.venn_admit.undivided import no_weights
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

METHODS: Mapping[str, Method] = {VENN_ADMIT: VennAdmit(), VENN_ABERS: VennAbers()}


def settled_weights(calibration: Calibration, weighted: bool | None) -> bool:
    """Return whether decisions by a calibration are weighted; None asks for what is usual for its method.

    Raises InvalidInputError if they cannot be: a policy decides by the score, or mc and vp are undivided.
    """
    undivided = calibration.method_settings.undivided
    if weighted and undivided:
        raise no_weights(calibration.id)
    if weighted and calibration.has_policy:
        asked = "a certificate" if calibration.is_asked_for_certificate else "the average promise"
        raise InvalidInputError(
            f"calibration {calibration.id} was asked for {asked}, in which weights have no part; decide by it without "
            "weights, or by a calibration with the pointwise promise"
        )
    return METHODS[calibration.method].weighted_by_default and not undivided if weighted is None else weighted


def load_snapshot(workspace: Workspace, classifier: Classifier, calibration_id: int) -> Snapshot:
    """Read a calibration as it was when it was made, ready to decide with by its method."""
    with connect(workspace.engine) as connection:
        method = calibrations.by_id(connection, classifier, calibration_id).method
    return METHODS[method].load(workspace, classifier, calibration_id)
