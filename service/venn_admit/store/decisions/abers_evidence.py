"""What decisions of Venn-Abers rest on, besides what every decision has."""

from venn_admit.core.types import FloatArray
from venn_admit.store.database.binary_copy import FLOAT8
from venn_admit.store.decisions.decisions import EvidenceRows


def evidence_rows(score: FloatArray, step_score: FloatArray) -> EvidenceRows:
    """Return the rows of the table `abers_evidence` for n points; score, step_score: (n,) float64."""
    return EvidenceRows(
        table="abers_evidence",
        columns={"score": FLOAT8, "step_score": FLOAT8},
        values={"score": score, "step_score": step_score},
    )
