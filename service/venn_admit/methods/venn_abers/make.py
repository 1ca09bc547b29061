"""A snapshot of Venn-Abers: the scores of mc, the bounds of each cell as steps, and the certificate if one is asked."""

import math
from dataclasses import dataclass

from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, join_rows
from venn_admit.core.calibrators.venn_abers.cells import VennAbersIndex
from venn_admit.core.calibrators.venn_abers.crossfit import LabelledCells, ScoreChoice, certify_cells, cross_fit
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.core.types import Split
from venn_admit.errors import Code, NotReadyError
from venn_admit.methods.venn_abers.split_points import SplitPoints, read_split, require_evidence
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.calibrations.venn_abers import StoredChoice
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors


@dataclass(frozen=True, slots=True, eq=False)
class MadeByAbers:
    """The points of a snapshot with their scores, the steps that follow from mc, and the choice of the score.

    rows: of vp too if a certificate was asked for. certificate: None if none was.
    """

    rows: CalibrationRows
    steps: Steps
    choice: StoredChoice
    certificate: Certificate | None

    def store(self, connection: Connection, calibration_id: int) -> None:
        """Store the steps that changed, the choice, and the certificate."""
        venn_abers.write_changes(connection, calibration_id, self.steps)
        venn_abers.add_choice(connection, calibration_id, self.choice)
        if self.certificate is not None:
            venn_abers.add_certificate(connection, calibration_id, self.certificate)


def make(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    settings: VennAbersSettings,
    *,
    memory_budget: int,
    instead: Replacements | None = None,
) -> MadeByAbers:
    """Compute a snapshot; arguments and errors are those of the protocol `Method`."""
    if settings.score is not ScoreKind.NETWORK:
        require_model(classifier, parameters)
    mc = read_split(connection, classifier, parameters, Split.MC, memory_budget, instead)
    choice = _choice(connection, mc, settings)
    points = mc.scored(choice.kind)
    index = VennAbersIndex(
        points,
        points.predicted == mc.label,
        class_count=classifier.class_count,
        q_bins=settings.q_bins,
    )
    rows = mc.rows(points, settings.q_bins)
    certificate = None
    if settings.certification is not None:
        # The score is chosen by now: nothing else may look at vp.
        vp = read_split(connection, classifier, parameters, Split.VP, memory_budget, instead)
        vp_points = vp.scored(choice.kind)
        rows = join_rows([rows, vp.rows(vp_points, settings.q_bins)])
        of_mc = LabelledCells(points, mc.label, mc.keys(connection))
        of_vp = LabelledCells(vp_points, vp.label, vp.keys(connection))
        for split, of_split in ((Split.MC, of_mc), (Split.VP, of_vp)):
            require_evidence(classifier, settings.certification, split, of_split)
        certificate = certify_cells(index, of_mc, of_vp, settings, settings.certification, seed=classifier.seed)
    return MadeByAbers(rows, index.steps, choice, certificate)


def require_model(classifier: Classifier, parameters: StoredParameters | None) -> None:
    """Raise NotReadyError unless the parameters have the model of the reliability score."""
    require_vectors(classifier, "the reliability score")
    if parameters is None or parameters.reliability is None:
        raise NotReadyError(
            f"the parameters of {classifier.name!r} have no reliability score, because they were given without one or "
            "are older than it: fit again, or ask for the network's score",
            code=Code.NOT_FITTED,
            classifier=classifier.name,
        )


def _choice(connection: Connection, mc: SplitPoints, settings: VennAbersSettings) -> StoredChoice:
    if settings.score is not None:
        return StoredChoice(settings.score, None, None, None, None)
    network, reliability = (mc.scored(kind) for kind in ScoreKind)
    found: ScoreChoice = cross_fit(
        network,
        reliability,
        network.predicted == mc.label,
        mc.keys(connection),
        seed=mc.classifier.seed,
        settings=settings,
    ).choice
    error = None if math.isnan(found.standard_error) else found.standard_error
    return StoredChoice(found.kind, found.network_share, found.reliability_share, error, found.documents)
