"""A snapshot of Venn-Abers: the scores of mc, and the bounds of each cell as steps."""

import math
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.service.core.calibrators.bands import bin_of
from venn_admit.service.core.calibrators.snapshot_rows import CalibrationRows, rows_of_split
from venn_admit.service.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.service.core.calibrators.venn_abers.crossfit import ScoreChoice, cross_fit
from venn_admit.service.core.calibrators.venn_abers.reliability import scored_points
from venn_admit.service.core.calibrators.venn_abers.settings import ScoreKind, VennAbersSettings
from venn_admit.service.core.calibrators.venn_abers.steps import Steps
from venn_admit.service.core.types import (
    Approximation,
    CalibrationPoints,
    Float32Array,
    IntArray,
    Split,
    join_approximations,
)
from venn_admit.service.errors import Code, NotReadyError
from venn_admit.service.store.calibrations import score_choices, steps
from venn_admit.service.store.calibrations.score_choices import StoredChoice
from venn_admit.service.store.exemplars import approximations, exemplars
from venn_admit.service.store.exemplars.approximations import StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class MadeByAbers:
    """The points of mc with their scores, the steps that follow, and the choice of the score."""

    rows: CalibrationRows
    steps: Steps
    choice: StoredChoice

    def store(self, connection: Connection, calibration_id: int) -> None:
        """Store the steps that changed, and the choice."""
        steps.write_changes(connection, calibration_id, self.steps)
        score_choices.add(connection, calibration_id, self.choice)


@dataclass(frozen=True, slots=True, eq=False)
class _Mc:
    exemplar_ids: IntArray
    label: IntArray
    view: Approximation
    logits: Float32Array


def make(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters,
    settings: VennAbersSettings,
    *,
    memory_budget: int,
) -> MadeByAbers:
    """Compute a snapshot; arguments and errors are those of the protocol `Method`."""
    if settings.score is not ScoreKind.NETWORK:
        _require_model(classifier, parameters)
    mc = _read_mc(connection, classifier, parameters, memory_budget)
    choice = _choice(connection, classifier, parameters, settings, mc)
    points = _scored(choice.kind, classifier, parameters, mc)
    index = VennAbersIndex(
        points,
        points.predicted == mc.label,
        class_count=classifier.class_count,
        bin_edges=settings.bin_edges,
    )
    rows = rows_of_split(
        mc.exemplar_ids,
        CalibrationPoints(
            label=mc.label,
            predicted=points.predicted,
            match_count=points.match_count,
            distance=mc.view.distance,
            score=points.score,
        ),
        bin_of(points.match_count, settings.bin_edges),
        None,
        class_count=classifier.class_count,
    )
    return MadeByAbers(rows, index.steps, choice)


def _require_model(classifier: Classifier, parameters: StoredParameters) -> None:
    """Raise NotReadyError unless the parameters have the model of the reliability score."""
    if parameters.reliability is None:
        raise NotReadyError(
            f"the parameters of {classifier.name!r} have no reliability score, because they were given without one or "
            "are older than it: fit again, or ask for the network's score",
            code=Code.NOT_FITTED,
            classifier=classifier.name,
        )


def _choice(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters,
    settings: VennAbersSettings,
    mc: _Mc,
) -> StoredChoice:
    if settings.score is not None:
        return StoredChoice(settings.score, None, None, None, None)
    network, reliability = (_scored(kind, classifier, parameters, mc) for kind in ScoreKind)
    found: ScoreChoice = cross_fit(
        network,
        reliability,
        network.predicted == mc.label,
        exemplars.keys(connection, mc.exemplar_ids).document_keys,
        seed=classifier.seed,
        settings=settings,
    ).choice
    error = None if math.isnan(found.standard_error) else found.standard_error
    return StoredChoice(found.kind, found.network_share, found.reliability_share, error, found.documents)


def _scored(kind: ScoreKind, classifier: Classifier, parameters: StoredParameters, mc: _Mc) -> CellPoints:
    return scored_points(kind, parameters.reliability, mc.logits, mc.view, neighbour_count=classifier.neighbour_count)


def _read_mc(connection: Connection, classifier: Classifier, parameters: StoredParameters, memory_budget: int) -> _Mc:
    blocks = list(approximations.split_blocks(connection, classifier, Split.MC, parameters.id, memory_budget))
    ids = np.concatenate([block.exemplar_ids for block in blocks])
    return _Mc(
        exemplar_ids=ids,
        label=np.concatenate([block.labels for block in blocks]),
        view=join_approximations([block.approximation for block in blocks]),
        logits=exemplars.network_logits(connection, classifier, ids),
    )
