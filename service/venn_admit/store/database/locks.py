"""The advisory locks of the database: their keys, which statements name as they stand here, and who holds them."""

from collections.abc import Mapping
from types import MappingProxyType

# Arbitrary, and our own.
MIGRATION_LOCK = 0x76_65_6E_6E

# Locks with two keys, by the first; the second says of whom it is.
TWO_KEYS: Mapping[int, str] = MappingProxyType(
    {
        1: "Of a classifier: whoever stores exemplars or labels of it, asks for jobs that do, or removes decisions.",
        2: "Of a calibrator, by the hash of its classifier and settings: whoever recalibrates or retires it.",
        3: "Of none, 0: shared by the workers that live.",
        4: "Of a calibrator: whoever updates its monitors.",
    }
)

# Locks with one key, by the parameter or the function that gives it.
ONE_KEY: Mapping[str, str] = MappingProxyType(
    {
        ":key": "MIGRATION_LOCK: whoever migrates.",
        "hashtextextended": "Of a requester of jobs, by its name: whoever records a job for it.",
    }
)
