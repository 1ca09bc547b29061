"""The held-out points of a classifier under the score of its calibration, for a certificate of several classifiers."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray
from venn_admit.errors import InvalidInputError
from venn_admit.methods.venn_abers.make import PolicySplits
from venn_admit.methods.venn_abers.split_points import read_knn, read_split
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class RankedHeldOut:
    """The labelled points of `knn`, `mc` and `vp`, n of them.

    ids: their external ids. cells: under the score. proposing: (n,) bool, which of them anything of the score may rest
    on. kind: the score.
    """

    ids: list[str]
    cells: LabelledCells
    proposing: BoolArray
    kind: ScoreKind


def held_out_points(
    connection: Connection,
    classifier: Classifier,
    calibration: Calibration,
    parameters: StoredParameters | None,
    memory_budget: int,
) -> RankedHeldOut:
    """Read the points under the score of a calibration.

    Raises InvalidInputError if the score is not one that can be certified on `mc` and `vp`.
    """
    kind = require_fixed_score(connection, classifier, calibration)
    mc, vp = (read_split(connection, classifier, parameters, split, memory_budget) for split in (Split.MC, Split.VP))
    knn = read_knn(connection, classifier, parameters, memory_budget)
    splits = PolicySplits(connection, knn, mc, vp, ()).splits
    ids = np.concatenate([split.exemplar_ids for split in (() if knn is None else (knn,)) + (mc, vp)])
    return RankedHeldOut(exemplars.keys(connection, ids).row_keys, splits.cells(kind), splits.proposing, kind)


def require_fixed_score(connection: Connection, classifier: Classifier, calibration: Calibration) -> ScoreKind:
    """Return the score of a calibration; InvalidInputError if it has none, or one that was chosen by labels of mc."""
    settings = calibration.method_settings
    if not isinstance(settings, VennAbersSettings):
        raise InvalidInputError(
            f"a cascade goes by scores, which calibration {calibration.id} of {classifier.name!r}, made by "
            f"{calibration.method}, does not have: calibrate it by venn-abers"
        )
    if not settings.has_policy and settings.score is None:
        raise InvalidInputError(
            f"the score of calibration {calibration.id} of {classifier.name!r} was chosen by the labels that would "
            "test it: calibrate with another promise than the pointwise one, or name the score"
        )
    return venn_abers.score_of(connection, calibration.id)
