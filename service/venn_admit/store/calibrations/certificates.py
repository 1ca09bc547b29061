"""The certificates of snapshots: the certified policy in columns, and the whole in a document."""

import json

from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.certificate import Certificate, from_document, to_document
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.store.database.statements import statement


def add(connection: Connection, calibration_id: int, certificate: Certificate) -> None:
    """Store the certificate of a new snapshot."""
    chosen = None if certificate.chosen is None else certificate.proposals[certificate.chosen]
    connection.execute(
        statement("certificates.add_certificate"),
        {
            "calibration_id": calibration_id,
            "thresholds": None if chosen is None else list(chosen.policy.thresholds),
            "p_value": None if chosen is None else chosen.p_value,
            "mc_share": None if chosen is None else chosen.mc_share,
            "vp_share": None if chosen is None else chosen.vp_share,
            "vp_documents": certificate.vp_documents,
            "documents_needed": certificate.documents_needed,
            "document": json.dumps(to_document(certificate), allow_nan=False),
        },
    )


def certificate_of(connection: Connection, calibration_id: int) -> Certificate | None:
    """Return the certificate of a snapshot; None if it was asked for none."""
    parameters = {"calibration_id": calibration_id}
    document = connection.execute(statement("certificates.certificate"), parameters).scalar_one_or_none()
    return None if document is None else from_document(document)


def policy_of(connection: Connection, calibration_id: int) -> Policy | None:
    """Return the certified policy of a snapshot that was asked for a certificate; None if none is certified."""
    parameters = {"calibration_id": calibration_id}
    thresholds = connection.execute(statement("certificates.thresholds"), parameters).scalar_one()
    return None if thresholds is None else Policy(tuple(thresholds))
