"""What decisions of Venn-ADMIT rest on, besides what every decision has."""

from venn_admit.core.types import AdmitSets, VennProbabilities
from venn_admit.store.database.binary_copy import INT4, Array, Bits
from venn_admit.store.decisions.decisions import EvidenceRows


def evidence_rows(sets: AdmitSets, probabilities: VennProbabilities) -> EvidenceRows:
    """Return the rows of the table `admit_evidence` for n points."""
    class_count = sets.included.shape[1]
    return EvidenceRows(
        table="admit_evidence",
        columns={
            "admit_set": Bits(class_count),
            "band_size": Array(">i4", class_count),
            "threshold": Array(">f8", class_count),
            "category_size": INT4,
        },
        values={
            "admit_set": sets.included,
            "band_size": sets.band_size,
            "threshold": sets.threshold,
            "category_size": probabilities.category_size,
        },
    )
