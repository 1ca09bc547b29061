"""What a result is for programs. The client, a distribution of its own, says it; the program has it from there."""

from venn_admit_client.members import as_json, described, members
from venn_admit_client.records import Deletion, Fit, Forgetting, Ingestion, Labelling, ListedCalibration, Neighbour

__all__ = [
    "Deletion",
    "Fit",
    "Forgetting",
    "Ingestion",
    "Labelling",
    "ListedCalibration",
    "Neighbour",
    "as_json",
    "described",
    "members",
]
