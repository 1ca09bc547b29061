"""The splits, by name."""

from enum import StrEnum


class Split(StrEnum):
    """The purpose that an exemplar serves (docs/PROCEDURE.md, Data)."""

    TRAIN = "train"
    KNN = "knn"
    MC = "mc"
    VP = "vp"
    SCORED = "scored"


HELD_OUT_SPLITS = (Split.KNN, Split.MC, Split.VP)
"""The splits into which held-out labelled exemplars are divided."""
