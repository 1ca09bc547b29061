"""What a calibration by Venn-Abers stores beside its points: a certificate, the choice of its score, and steps."""

import json
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Decimal
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection

from venn_admit.core.calibrators.average import policy as average
from venn_admit.core.calibrators.average.policy import AveragePolicy
from venn_admit.core.calibrators.certification import Kind, parse_kind
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.document import (
    from_document,
    groups_document,
    policy_from_document,
    to_document,
)
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, rows_digest
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.store.database.binary_copy import FLOAT8, INT4, FixedColumn, copy_in, read_columns
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.statements import execute

_COLUMNS: dict[str, FixedColumn] = {
    "cell": INT4,
    "score": FLOAT8,
    "lower": FLOAT8,
    "upper_at": FLOAT8,
    "upper_above": FLOAT8,
}


def add_certificate(
    connection: Connection,
    calibration_id: int,
    certificate: Certificate,
    rows: CalibrationRows | None,
    *,
    chain_id: int | None,
) -> None:
    """Store the certificate of a new snapshot, and that it looked at the labels of these rows.

    rows: None if a chain is advanced, which is one statement for all times. chain_id: of the chain, if it stands while
    labels arrive; what it looks with is its own part of the level.
    """
    policy, document = certificate.policy, json.dumps(to_document(certificate), allow_nan=False)
    if rows is not None:
        _add_look(connection, calibration_id, document, rows, certificate)
    execute(
        connection,
        "certificates.add_certificate",
        calibration_id=calibration_id,
        thresholds=None if policy is None else list(policy.thresholds),
        bounded=None if policy is None else policy.bounded,
        groups=json.dumps(groups_document(policy)) if policy is not None and policy.groups else None,
        p_value=certificate.p_value,
        share=certificate.share,
        documents=certificate.documents,
        documents_needed=certificate.documents_needed,
        document=document,
        chain_id=chain_id,
    )


def _add_look(
    connection: Connection, calibration_id: int, document: str, rows: CalibrationRows, certificate: Certificate
) -> None:
    digest = blake2b(rows_digest(rows) + document.encode(), digest_size=16).digest()
    confidence = certificate.confidence
    if certificate.standing is not None:
        # Rounded so that it is not more than what is certified.
        level = Decimal(repr(certificate.standing.level)).quantize(Decimal("1e-6"), ROUND_CEILING)
        confidence = (1 - level).normalize()
    execute(connection, "certificates.add_look", calibration_id=calibration_id, digest=digest, confidence=confidence)


def add_average(
    connection: Connection,
    calibration_id: int,
    found: AveragePolicy,
    instead_of: Certificate | None,
    rows: CalibrationRows,
) -> None:
    """Store the policy of a new snapshot by the average promise.

    instead_of: a certificate that looked at the labels of these rows and does not decide; None if none was asked for.
    """
    beside = {} if instead_of is None else {"certificate": to_document(instead_of)}
    if instead_of is not None:
        _add_look(connection, calibration_id, json.dumps(beside["certificate"], allow_nan=False), rows, instead_of)
    execute(
        connection,
        "certificates.add_certificate",
        calibration_id=calibration_id,
        thresholds=list(found.policy.thresholds),
        bounded=found.policy.bounded,
        groups=None,
        p_value=None,
        share=found.share,
        documents=found.documents,
        documents_needed=None if instead_of is None else instead_of.documents_needed,
        document=json.dumps(average.to_document(found) | beside, allow_nan=False),
        chain_id=None,
    )


def average_of(connection: Connection, calibration_id: int) -> AveragePolicy | None:
    """Return the policy of a snapshot by the average promise; None if it was asked for another."""
    document = execute(connection, "certificates.average", calibration_id=calibration_id).scalar_one_or_none()
    return None if document is None else average.from_document(document)


def certificate_of(connection: Connection, calibration_id: int) -> Certificate | None:
    """Return the certificate of a snapshot; None if it was asked for none."""
    document = execute(connection, "certificates.certificate", calibration_id=calibration_id).scalar_one_or_none()
    return None if document is None else from_document(document)


def certified_kinds(connection: Connection, calibration_id: int) -> tuple[Kind, ...] | None:
    """Return the kinds of classes that a snapshot's policy is certified for; None if none is certified."""
    found = execute(connection, "certificates.certified_kinds", calibration_id=calibration_id).scalar_one_or_none()
    return None if found is None else tuple(map(parse_kind, found))


def policy_of(connection: Connection, calibration_id: int) -> Policy | None:
    """Return the policy of a snapshot that has one, certified or on average; None if none is certified."""
    row = execute(connection, "certificates.policy", calibration_id=calibration_id).one()
    return policy_from_document(dict(row._mapping))


@dataclass(frozen=True, slots=True)
class StoredChoice:
    """The score; if it was not asked for, the share of mc that each admits by cross-fitting.

    standard_error: of the difference between the shares, over documents; None with fewer than two documents too.
    """

    score: ScoreKind
    network_share: float | None
    reliability_share: float | None
    standard_error: float | None
    documents: int | None


def add_choice(connection: Connection, calibration_id: int, choice: StoredChoice) -> None:
    """Store the choice of a new snapshot."""
    execute(connection, "steps.add_score_choice", calibration_id=calibration_id, **asdict(choice))


def choice_of(connection: Connection, calibration_id: int) -> StoredChoice:
    """Return the score of a snapshot of Venn-Abers, and why it was chosen."""
    row = execute(connection, "steps.score_choice", calibration_id=calibration_id).one()
    return StoredChoice(**{**row._mapping, "score": ScoreKind(row.score)})


def score_of(connection: Connection, calibration_id: int) -> ScoreKind:
    """Return the score of a snapshot of Venn-Abers."""
    return choice_of(connection, calibration_id).score


def calibrator_of(connection: Connection, calibration_id: int) -> int:
    """Return the calibrator of a snapshot."""
    calibrator_id: int = execute(connection, "steps.place_of_calibration", calibration_id=calibration_id).one()[0]
    return calibrator_id


def add_steps(connection: Connection, calibration_id: int, steps: Steps) -> None:
    """Make these the open steps from a new snapshot on."""
    place = execute(connection, "steps.place_of_calibration", calibration_id=calibration_id).one()
    write_changes(connection, place.calibrator_id, place.number, steps)


def write_changes(connection: Connection, calibrator_id: int, number: int, steps: Steps) -> None:
    """Make these the open steps from a number on, writing only the rows that differ."""
    closed, opened = changed_steps(steps_of(connection, calibrator_id), steps)
    if len(closed.cell):
        parameters = {
            "calibrator_id": calibrator_id,
            "number": number,
            "cells": closed.cell.tolist(),
            "scores": closed.score.tolist(),
        }
        execute(connection, "steps.close_steps", **parameters)
    if len(opened.cell):
        n = len(opened.cell)
        columns = {
            "calibrator_id": (INT4, np.full(n, calibrator_id)),
            "valid_from": (INT4, np.full(n, number)),
            **{name: (column, getattr(opened, name)) for name, column in _COLUMNS.items()},
        }
        copy_in(driver_cursor(connection), "venn_abers_step", columns)


def changed_steps(stored: Steps, incoming: Steps) -> tuple[Steps, Steps]:
    """Return the stored steps that no longer hold, and the incoming ones that are new; steps are equal bit for bit."""
    before, after = _by_bits(stored), _by_bits(incoming)
    return stored.take(np.flatnonzero(~np.isin(before, after))), incoming.take(np.flatnonzero(~np.isin(after, before)))


def steps_of(connection: Connection, calibrator_id: int, *, number: int | None = None) -> Steps:
    """Return the steps of a snapshot of a calibrator, by cell and score; number: None for the current one."""
    parameters = {"calibrator_id": calibrator_id, "number": number}
    return Steps(**read_columns(connection, "steps.steps_of_snapshot", _COLUMNS, **parameters))


def _by_bits(steps: Steps) -> npt.NDArray[np.bytes_]:
    """Each step as a string of all its bits, (S,)."""
    floats = (steps.score, steps.lower, steps.upper_at, steps.upper_above)
    packed = np.stack([steps.cell, *(np.ascontiguousarray(values).view(np.int64) for values in floats)], axis=1)
    return np.array([row.tobytes().hex() for row in packed], dtype=np.bytes_)
