"""A snapshot of Venn-Abers: the scores of mc, the bounds of each cell as steps, and the policy if one is asked for."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.average.policy import AveragePolicy, select_on_average
from venn_admit.core.calibrators.certification import Kind, attributes_of
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, join_rows
from venn_admit.core.calibrators.venn_abers.cells import VennAbersIndex, join_points
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells, certify_cells, proposing_rows
from venn_admit.core.calibrators.venn_abers.crossfit import ScoreChoice, cross_fit
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.core.comparison.confidence import fit_temperature
from venn_admit.core.comparison.selective import admitted_by_softmax
from venn_admit.core.types import BoolArray, Split
from venn_admit.errors import Code, NotReadyError
from venn_admit.methods.venn_abers.split_points import (
    SplitPoints,
    has_documents,
    read_knn,
    read_split,
    read_traffic,
    require_evidence,
    require_labels,
)
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.calibrations.venn_abers import StoredChoice
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors


@dataclass(frozen=True, slots=True, eq=False)
class MadeByAbers:
    """The points of a snapshot with their scores, the steps that follow from mc, and the choice of the score.

    rows: of vp too if a policy was asked for. certificate: None if none was. average: the policy of the average
    promise; None if another was asked for, or if the strongest was and something is certified.
    """

    rows: CalibrationRows
    steps: Steps
    choice: StoredChoice
    certificate: Certificate | None = None
    average: AveragePolicy | None = None

    @property
    def policy(self) -> Policy | None:
        """The policy that decides, certified or on average."""
        if self.average is not None:
            return self.average.policy
        return None if self.certificate is None else self.certificate.policy

    @property
    def certified(self) -> tuple[Kind, ...] | None:
        """The kinds of classes that the policy is certified for; None if it is not."""
        return None if self.certificate is None or self.certificate.policy is None else self.certificate.kinds

    def store(self, connection: Connection, calibration_id: int) -> None:
        """Store the steps that changed, the choice, and the policy."""
        venn_abers.add_steps(connection, calibration_id, self.steps)
        venn_abers.add_choice(connection, calibration_id, self.choice)
        if self.average is not None:
            venn_abers.add_average(connection, calibration_id, self.average, self.certificate, self.rows)
        elif self.certificate is not None:
            venn_abers.add_certificate(connection, calibration_id, self.certificate, self.rows)


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
    evidence = None
    if settings.has_policy:
        vp = read_split(connection, classifier, parameters, Split.VP, memory_budget, instead)
        knn = read_knn(connection, classifier, parameters, memory_budget, instead)
        asked = settings.certification
        evidence = PolicySplits(connection, knn, mc, vp, () if asked is None else attributes_of(asked.kinds))
    choice = _choice(connection, mc, settings) if evidence is None else evidence.choice(settings)
    points = mc.scored(choice.kind)
    index = VennAbersIndex(
        points,
        points.predicted == mc.label,
        class_count=classifier.class_count,
        q_bins=settings.q_bins,
    )
    rows = mc.rows(points, settings.q_bins)
    if evidence is None:
        return MadeByAbers(rows, index.steps, choice)
    rows = join_rows([rows, evidence.vp.rows(evidence.vp.scored(choice.kind), settings.q_bins)])
    certificate = None if settings.certification is None else evidence.certificate(choice.kind, settings)
    average = None
    takes_average = settings.promise is not AskedPromise.POINTWISE and settings.loss is None
    if takes_average and (certificate is None or certificate.policy is None):
        average = evidence.average(choice.kind, settings)
    return MadeByAbers(rows, index.steps, choice, certificate, average)


class PolicySplits:
    """The points that a policy rests on. What proposes is not evidence, so that the score is chosen by it too."""

    def __init__(
        self,
        connection: Connection,
        knn: SplitPoints | None,
        mc: SplitPoints,
        vp: SplitPoints,
        attributes: Sequence[str],
    ) -> None:
        self.vp = vp
        self._connection = connection
        self._splits = [mc, vp] if knn is None else [knn, mc, vp]
        self._keys = [key for split in self._splits for key in split.keys(connection)]
        ids = np.concatenate([split.exemplar_ids for split in self._splits])
        self._groups = exemplars.groups(connection, ids, attributes)
        of_knn = np.concatenate([np.full(len(split.label), split.split is Split.KNN) for split in self._splits])
        self._seed = mc.classifier.seed
        self._of_knn = of_knn
        self._proposing = proposing_rows(self._keys, of_knn, seed=self._seed)
        self._under: dict[ScoreKind, LabelledCells] = {}

    def choice(self, settings: VennAbersSettings) -> StoredChoice:
        """Return the score asked for, or the one that admits more of the proposing points."""
        return _chosen(lambda kind: self._cells(kind).take(self._proposing), settings, seed=self._seed)

    def certificate(self, kind: ScoreKind, settings: VennAbersSettings) -> Certificate | None:
        """Return the certificate under a score.

        If the points cannot serve one, return None if the average promise may take its place; else raise NotReadyError.
        """
        assert settings.certification is not None, "one was asked for"
        cells = self._cells(kind)
        if settings.promise is not AskedPromise.STRONGEST:
            require_evidence(self.vp.classifier, settings.certification, cells, self._proposing)
        elif not all(has_documents(cells.take(rows)) for rows in (self._proposing, ~self._proposing)):
            if settings.loss is None:
                return None
            require_evidence(self.vp.classifier, settings.certification, cells, self._proposing)
        by_softmax = self._by_softmax(settings.alpha) if settings.promise is AskedPromise.STRONGEST else None
        return certify_cells(cells, self._proposing, settings, settings.certification, by_softmax)

    def average(self, kind: ScoreKind, settings: VennAbersSettings) -> AveragePolicy:
        """Return the policy of the average promise under a score. Raises NotReadyError if no point is left for it."""
        evidence = self._cells(kind).take(self._evidence(settings))
        require_labels(self.vp.classifier, evidence)
        traffic = read_traffic(self._connection, self.vp.classifier, self.vp.parameters, kind, self._keys)
        return select_on_average(evidence, traffic, class_count=len(settings.thresholds), alpha=settings.alpha)

    def _by_softmax(self, alpha: Decimal) -> BoolArray:
        """Which points the network's softmax at 1 - alpha admits, with a temperature that the proposing points fit."""
        logits, label = (np.concatenate([getattr(split, of) for split in self._splits]) for of in ("logits", "label"))
        temperature = fit_temperature(logits[self._proposing], label[self._proposing])
        return admitted_by_softmax(logits, temperature, alpha)

    def _evidence(self, settings: VennAbersSettings) -> BoolArray:
        """Which points calibrate: all of mc and vp, less those that the score was chosen by."""
        return ~self._of_knn if settings.score is not None else ~self._proposing

    def _cells(self, kind: ScoreKind) -> LabelledCells:
        """All points under a score; that of `knn` is cross-fitted, because it is fitted there."""
        if kind not in self._under:
            knn_keys = self._keys[: int(np.count_nonzero(self._of_knn))]
            points = join_points(
                [
                    split.crossfitted(kind, knn_keys) if split.split is Split.KNN else split.scored(kind)
                    for split in self._splits
                ]
            )
            label = np.concatenate([split.label for split in self._splits])
            self._under[kind] = LabelledCells(points, label, self._keys, self._groups)
        return self._under[kind]


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
    keys = mc.keys(connection)

    def cells(kind: ScoreKind) -> LabelledCells:
        return LabelledCells(mc.scored(kind), mc.label, keys)

    return _chosen(cells, settings, seed=mc.classifier.seed)


def _chosen(cells: Callable[[ScoreKind], LabelledCells], settings: VennAbersSettings, *, seed: int) -> StoredChoice:
    """The score asked for, or the one that admits more by cross-fitting; cells: the same points under a score."""
    if settings.score is not None:
        return StoredChoice(settings.score, None, None, None, None)
    network, reliability = (cells(kind) for kind in ScoreKind)
    found: ScoreChoice = cross_fit(
        network.points,
        reliability.points,
        network.points.predicted == network.label,
        network.keys,
        seed=seed,
        settings=settings,
    ).choice
    error = None if math.isnan(found.standard_error) else found.standard_error
    return StoredChoice(found.kind, found.network_share, found.reliability_share, error, found.documents)
