"""The certificate of a calibration as a document that other programs can read."""

from typing import Any

from sqlalchemy import Connection, Engine

from venn_admit.errors import InvalidInputError
from venn_admit.report.calibration.cells.certified import certificate_payload
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier


def show_policy(engine: Engine, name: str, calibration_id: int | None) -> dict[str, Any]:
    """Return the certificate of a calibration as `policy_document` has it. Raises NotFoundError and NotReadyError."""
    with consistent_view(engine) as connection:
        return policy_document(connection, classifiers.by_name(connection, name), calibration_id)


def policy_document(connection: Connection, classifier: Classifier, calibration_id: int | None) -> dict[str, Any]:
    """Return the certificate of a calibration, with what its thresholds are thresholds of.

    calibration_id: None for the current one. The core's `certificate.from_document` reads the certificate back. Raises
    InvalidInputError if the calibration was asked for none.
    """
    calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
    certificate = venn_abers.certificate_of(connection, calibration.id)
    if certificate is None:
        raise InvalidInputError(
            f"calibration {calibration.id} of {classifier.name!r} was asked for no certificate, so it has no policy: "
            "calibrate with one, or name another calibration"
        )
    return {
        "classifier": classifier.name,
        "calibration": calibration.id,
        "score": str(venn_abers.score_of(connection, calibration.id)),
        "q_bins": list(calibration.abers_settings.q_bins),
        **certificate_payload(certificate, classifier.class_names),
    }
