"""The advisory locks of the database: their keys, which statements name as they stand here, and who holds them."""

from collections.abc import Mapping
from types import MappingProxyType

# Arbitrary, and our own.
MIGRATION_LOCK = 0x76_65_6E_6E

# Locks with two keys, by the first; the second says of whom it is.
TWO_KEYS: Mapping[int, str] = MappingProxyType(
    {
        1: "A classifier: held to store exemplars or labels of it, to ask for jobs that do, or to remove decisions.",
        2: "A calibrator, by the hash of its classifier and settings: held to recalibrate, retire or use it.",
        3: "None, 0: shared by the workers that live.",
        4: "A calibrator: held to update its monitors.",
        5: "A classifier: held to decide which of its calibrations is in use.",
        6: "The first generation of a classifier: held to begin a standing chain, or to certify within a family.",
        7: "A classifier: shared to make a snapshot of it, held to empty its ledger of changed points.",
        8: "The first generation of a classifier: held to send points of a queue to a tool for labelling.",
        9: "The first generation of a classifier: held to record the labels of reviewers that a file or a tool has.",
    }
)

# Locks with one key, by the parameter or the function that gives it.
ONE_KEY: Mapping[str, str] = MappingProxyType(
    {
        ":key": "MIGRATION_LOCK: held to migrate.",
        "hashtextextended": "A requester of jobs, by its name: held to record a job for it.",
    }
)
