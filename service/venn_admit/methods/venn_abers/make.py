"""A snapshot of Venn-Abers: the scores of mc, the bounds of each cell as steps, and the policy if one is asked for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.average.policy import AveragePolicy, select_on_average
from venn_admit.core.calibrators.certification import Kind, attributes_of
from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.family import confidence_of_next
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.calibrators.certified.strongest import gives_way
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, join_rows
from venn_admit.core.calibrators.venn_abers.cells import VennAbersIndex
from venn_admit.core.calibrators.venn_abers.certified_cells import certify_cells
from venn_admit.core.calibrators.venn_abers.crossfit import ScoreChoice, cross_fit
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.core.comparison.held_out import ScoredSplits
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray
from venn_admit.errors import Code, NotReadyError
from venn_admit.methods.venn_abers.shares import shares_of_traffic
from venn_admit.methods.venn_abers.split_points import (
    SplitPoints,
    has_documents,
    read_knn,
    read_split,
    read_traffic,
    require_evidence,
    require_labels,
)
from venn_admit.methods.venn_abers.standing import BegunChain, begin_chain
from venn_admit.store.calibrations import listing, venn_abers
from venn_admit.store.calibrations.venn_abers import StoredChoice
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors


@dataclass(frozen=True, slots=True, eq=False)
class MadeByAbers:
    """The points of a snapshot with their scores, the steps that follow from mc, and the choice of the score.

    rows: of vp too if a policy was asked for. certificate: None if none was. average: the policy of the average
    promise; None if another was asked for, or if the strongest was and a certified policy decides. standing: the chain
    that begins, if the certificate stands while labels arrive.
    """

    rows: CalibrationRows
    steps: Steps
    choice: StoredChoice
    certificate: Certificate | None = None
    average: AveragePolicy | None = None
    standing: BegunChain | None = None

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
            chain_id = None if self.standing is None else self.standing.store(connection, calibration_id).id
            venn_abers.add_certificate(connection, calibration_id, self.certificate, self.rows, chain_id=chain_id)


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
        attributes = () if asked is None else attributes_of(asked.kinds)
        evidence = PolicySplits(connection, knn, mc, vp, attributes, other_training=instead is not None)
    choice = _choice(connection, mc, settings) if evidence is None else evidence.choice(settings)
    points = mc.scored(choice.score)
    index = VennAbersIndex(
        points, points.predicted == mc.label, class_count=classifier.class_count, q_bins=settings.q_bins
    )
    rows = mc.rows(points, settings.q_bins)
    if evidence is None:
        return MadeByAbers(rows, index.steps, choice)
    rows = join_rows([rows, evidence.vp.rows(evidence.vp.scored(choice.score), settings.q_bins)])
    if settings.standing:
        begun = begin_chain(
            connection, classifier, parameters, evidence.splits, evidence.exemplar_ids, choice.score, settings
        )
        return MadeByAbers(rows, index.steps, choice, begun.certificate, standing=begun)
    if settings.family:
        settings = _within_family(connection, classifier, settings)
    return MadeByAbers(rows, index.steps, choice, *evidence.promised(choice.score, settings))


def _within_family(connection: Connection, classifier: Classifier, settings: VennAbersSettings) -> VennAbersSettings:
    """The settings with the confidence that the next certificate of the family has by itself."""
    assert settings.confidence is not None, "a certificate is asked for"
    looks, spent = listing.spent(connection, classifier)
    confidence = confidence_of_next(settings.confidence, spent, looks)
    if confidence is None:
        raise NotReadyError(
            f"family: the {looks:,} certificates that looked at labels of {classifier.name!r} have "
            f"{spent.normalize():f} of 1 - confidence, and {1 - settings.confidence} may be spent in all, so nothing "
            "is left for another; ask for less confidence, or leave family out for a certificate that holds by itself"
        )
    return replace(settings, confidence=confidence)


class PolicySplits:
    """The points that a policy rests on. What proposes is not evidence, so that the score is chosen by it too."""

    def __init__(
        self,
        connection: Connection,
        knn: SplitPoints | None,
        mc: SplitPoints,
        vp: SplitPoints,
        attributes: Sequence[str],
        *,
        other_training: bool = False,
    ) -> None:
        self.vp = vp
        self._connection = connection
        self._other_training = other_training
        parts = [split for split in (knn, mc, vp) if split is not None]
        held_out = [split.held_out(connection) for split in parts]
        self.exemplar_ids = ids = np.concatenate([split.exemplar_ids for split in parts])
        classifier, parameters = mc.classifier, mc.parameters
        self.splits = ScoredSplits(
            None if knn is None else held_out[0],
            held_out[-2:],
            None if parameters is None else parameters.reliability,
            neighbour_count=classifier.neighbours,
            seed=classifier.seed,
            groups=exemplars.groups(connection, ids, attributes),
        )

    def choice(self, settings: VennAbersSettings) -> StoredChoice:
        """Return the score asked for, or the one that admits more of the proposing points."""
        if settings.score is not None:
            return StoredChoice(settings.score, None, None, None, None)
        return _stored(self.splits.choice(settings))

    def promised(self, kind: ScoreKind, settings: VennAbersSettings) -> tuple[Certificate | None, AveragePolicy | None]:
        """Return the certificate, if one was asked for, and the policy of the average promise, if that decides.

        If the strongest promise was asked for, it decides if nothing is certified, or a policy that admits less than
        the softmax and than the average promise, which is set aside then. Raises as `certificate` and `average`.
        """
        certificate = None if settings.certification is None else self.certificate(kind, settings)
        if settings.promise is AskedPromise.POINTWISE or settings.loss is not None:
            return certificate, None
        if certificate is None or certificate.policy is None:
            return certificate, self.average(kind, settings)
        evidence = ~self.splits.proposing
        by_softmax = int(np.count_nonzero(self.splits.by_softmax(settings.alpha) & evidence))
        if certificate.admitted >= by_softmax:
            return certificate, None
        average, points = self.average(kind, settings), self.splits.cells(kind).points
        on_average = int(np.count_nonzero(admit(points.score, points.predicted, average.policy) & evidence))
        if not gives_way(certificate.admitted, on_average, by_softmax):
            return certificate, None
        return certificate.without_policy(by_softmax), average

    def certificate(self, kind: ScoreKind, settings: VennAbersSettings) -> Certificate | None:
        """Return the certificate under a score.

        If the points cannot serve one, return None if the average promise may take its place; else raise NotReadyError.
        """
        assert settings.certification is not None, "one was asked for"
        cells, proposing = self.splits.cells(kind), self.splits.proposing
        if settings.promise is not AskedPromise.STRONGEST:
            require_evidence(self.vp.classifier, settings.certification, cells, proposing)
        elif not all(has_documents(cells.take(rows)) for rows in (proposing, ~proposing)):
            if settings.loss is None:
                return None
            require_evidence(self.vp.classifier, settings.certification, cells, proposing)
        shares = None
        if settings.is_for_other_shares:
            of_vp = self.vp
            shares = shares_of_traffic(self._connection, of_vp.classifier, of_vp.parameters, cells, proposing, settings)
        by_softmax = self.splits.by_softmax(settings.alpha) if settings.promise is AskedPromise.STRONGEST else None
        return certify_cells(cells, proposing, settings, settings.certification, by_softmax, shares)

    def average(self, kind: ScoreKind, settings: VennAbersSettings) -> AveragePolicy:
        """Return the policy of the average promise under a score. Raises NotReadyError if no point is left for it."""
        evidence = self.splits.cells(kind).take(self._evidence(settings))
        require_labels(self.vp.classifier, evidence)
        traffic = read_traffic(
            self._connection,
            self.vp.classifier,
            self.vp.parameters,
            kind,
            self.splits.keys,
            other_training=self._other_training,
        )
        return select_on_average(evidence, traffic, class_count=len(settings.thresholds), alpha=settings.alpha)

    def _evidence(self, settings: VennAbersSettings) -> BoolArray:
        """Which points calibrate: all of mc and vp, less those that the score was chosen by."""
        return ~self.splits.of_knn if settings.score is not None else ~self.splits.proposing


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
    """The score asked for, or the one that admits more of mc by cross-fitting."""
    if settings.score is not None:
        return StoredChoice(settings.score, None, None, None, None)
    points, held_out = {kind: mc.scored(kind) for kind in ScoreKind}, mc.held_out(connection)
    found = cross_fit(
        points[ScoreKind.NETWORK],
        points[ScoreKind.RELIABILITY],
        held_out.right,
        held_out.keys,
        seed=mc.classifier.seed,
        settings=settings,
    )
    return _stored(found.choice)


def _stored(found: ScoreChoice) -> StoredChoice:
    error = None if math.isnan(found.standard_error) else found.standard_error
    return StoredChoice(found.kind, found.network_share, found.reliability_share, error, found.documents)
