"""Which score a snapshot of Venn-Abers was made with, and why."""

from dataclasses import dataclass

from sqlalchemy import Connection

from venn_admit.core.calibrators.venn_abers.settings import ScoreKind
from venn_admit.store.database.statements import statement


@dataclass(frozen=True, slots=True)
class StoredChoice:
    """The kind of score; if it was not asked for, the share of mc that each admits by cross-fitting.

    standard_error: of the difference between the shares, over documents; None with fewer than two documents too.
    """

    kind: ScoreKind
    network_share: float | None
    reliability_share: float | None
    standard_error: float | None
    documents: int | None


def add(connection: Connection, calibration_id: int, choice: StoredChoice) -> None:
    """Store the choice of a new snapshot."""
    connection.execute(
        statement("steps.add_score_choice"),
        {
            "calibration_id": calibration_id,
            "score": choice.kind,
            "network_share": choice.network_share,
            "reliability_share": choice.reliability_share,
            "standard_error": choice.standard_error,
            "documents": choice.documents,
        },
    )


def choice_of(connection: Connection, calibration_id: int) -> StoredChoice:
    """Return the score of a snapshot of Venn-Abers, and why it was chosen."""
    row = connection.execute(statement("steps.score_choice"), {"calibration_id": calibration_id}).one()
    return StoredChoice(
        ScoreKind(row.score), row.network_share, row.reliability_share, row.standard_error, row.documents
    )


def score_of(connection: Connection, calibration_id: int) -> ScoreKind:
    """Return the score of a snapshot of Venn-Abers."""
    return choice_of(connection, calibration_id).kind
