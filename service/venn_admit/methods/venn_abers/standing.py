"""Certificates that stand while labels arrive: a chain begins with a snapshot, and later labels advance it."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.certificate import Certificate, NextChain
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.logistic import LEAST_POINTS
from venn_admit.core.calibrators.settings import ScoreKind, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.certified_cells import certificate_points
from venn_admit.core.calibrators.venn_abers.reliability import scored_points
from venn_admit.core.comparison.held_out import ScoredSplits
from venn_admit.core.standing.certificate import standing_certificate
from venn_admit.core.standing.chains import level_of_chain, standing_chain
from venn_admit.core.standing.following import MOST_DOCUMENTS, foretell_following
from venn_admit.core.standing.state import State, advance, certified_counts, initial_state, refuted, restarted, start
from venn_admit.core.types import IntArray
from venn_admit.methods.venn_abers.split_points import require_evidence
from venn_admit.store.calibrations import chains, venn_abers
from venn_admit.store.calibrations.chains import CountingLabels, Position, StoredChain
from venn_admit.store.exemplars import approximations, exemplars
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class BegunChain:
    """A chain that begins with a snapshot.

    chain: its ids are given when it is stored. exemplar_ids, points: the labels that count from the start. state: what
    they have shown. at: how far it came.
    """

    chain: StoredChain
    exemplar_ids: IntArray
    points: CertificatePoints
    state: State
    at: Position
    certificate: Certificate

    def store(self, connection: Connection, calibration_id: int) -> StoredChain:
        """Store the chain with what has counted; return it."""
        chain = chains.add(connection, venn_abers.calibrator_of(connection, calibration_id), self.chain)
        chains.add_evidence(connection, chain, self.exemplar_ids, self.points, 0)
        before = initial_state(chain.chain)
        chains.add_position(connection, chain, Position(0, self.at.event, 0, 0), before, before)
        chains.add_position(connection, chain, self.at, self.state, before)
        return chain


def begin_chain(
    connection: Connection,
    classifier: Classifier,
    parameters: StoredParameters | None,
    splits: ScoredSplits,
    exemplar_ids: IntArray,
    kind: ScoreKind,
    settings: VennAbersSettings,
) -> BegunChain:
    """Begin a chain under a score; exemplar_ids: of all points of the splits.

    The first of a generation is fixed by what proposes a certificate, and all other labels count, in the order in which
    they came. Why a later one begins, and under which settings, may depend on all labels before it, so that these fix
    it and do not count. As long as an alarm stands, only labels since the alarm count for a first one, and fix a later
    one, if there are enough of them.
    """
    assert settings.certification is not None, "a certificate is asked for"
    begun, cells = chains.begun(connection, classifier), splits.cells(kind)
    proposing = np.ones_like(splits.proposing) if begun.is_begun else splits.proposing
    labels = chains.labels(connection, classifier)
    order = np.argsort(exemplar_ids)
    places = order[np.minimum(np.searchsorted(exemplar_ids, labels.exemplar_ids, sorter=order), len(order) - 1)]
    known = exemplar_ids[places] == labels.exemplar_ids
    counts = known & ~proposing[places]
    if (alarm := chains.event_of_alarm(connection, classifier)) is not None:
        since = known & (labels.events > alarm)
        if not begun.is_begun:
            counts &= since
        elif len(np.unique(labels.document[since])) >= LEAST_POINTS:
            # What traffic was like before would foretell too much of where it is right.
            proposing = np.isin(np.arange(len(proposing)), places[since])
    if not begun.is_begun:
        require_evidence(classifier, settings.certification, cells, proposing)
    number = begun.newest + 1
    level = level_of_chain(float(1 - settings.certification.confidence), number)
    chain = standing_chain(
        certificate_points(cells.take(proposing), {}),
        class_count=classifier.class_count,
        alpha=float(settings.alpha),
        level=level,
        kinds=settings.certification.kinds,
    )
    counting, rows = labels.take(counts), places[counts]
    points = CertificatePoints(
        cells.points.score[rows], cells.points.predicted[rows], counting.label, counting.document
    )
    chain = replace(chain, at_start=_documents(points))
    stored = StoredChain(
        id=0,
        calibrator_id=0,
        number=number,
        knn_parameters_id=None if parameters is None else parameters.id,
        support_version=classifier.support_version if kind is ScoreKind.RELIABILITY else None,
        score=kind,
        proposing=int(np.count_nonzero(proposing)),
        chain=chain,
    )
    state = start(chain, initial_state(chain), points)
    at = _after(Position(0, 0, 0, 0), _documents(points), labels.newest, points)
    certificate = certificate_at(stored, state, at, settings, refuted(state))
    return BegunChain(stored, counting.exemplar_ids, points, state, at, certificate)


def certificate_at(
    chain: StoredChain,
    state: State,
    at: Position,
    settings: VennAbersSettings,
    withdrawn: tuple[int, ...],
    following: NextChain | None = None,
) -> Certificate:
    """Return what a chain certifies at a position; withdrawn: as in `standing_certificate`."""
    assert settings.certification is not None, "a certificate is asked for"
    return standing_certificate(
        chain.chain,
        state,
        number=chain.number,
        alpha=settings.alpha,
        confidence=settings.certification.confidence,
        documents=at.counted,
        points=at.points,
        proposing=chain.proposing,
        kinds=settings.certification.kinds,
        withdrawn=withdrawn,
        following=following,
    )


def advance_chain(
    connection: Connection, classifier: Classifier, chain: StoredChain, settings: VennAbersSettings, *, has_ended: bool
) -> tuple[Certificate, int]:
    """Let the labels since the last advance count, in time in proportion to them.

    Return the certificate, and how many new points wait because they have no score that the thresholds are on.
    Labels that were corrected or taken back count as they are now, from the first of them on. has_ended: whether new
    points can have no score any more that the thresholds are on.
    """
    before = chains.position(connection, chain)
    labels = chains.labels(connection, classifier, chain, after=before.event)
    event, taken, points = before.event, labels.take(np.zeros(len(labels.label), dtype=np.bool_)), _NO_POINTS
    if not has_ended:
        event, taken, points = _scored(connection, classifier, chain, labels)
    corrected = chains.correct(connection, chain, after=before.event)
    chains.add_evidence(connection, chain, taken.exemplar_ids, points, before.documents)
    base, counting = before, points
    if corrected is not None:
        base = chains.go_back(connection, chain, corrected)
        counting = chains.evidence(connection, chain, first=base.documents)
    earlier = chains.state_at(connection, chain, base.documents)
    documents = before.documents + _documents(points)
    state = _followed(chain, earlier, counting, base.documents, documents)
    at = _after(base, documents, event, counting)
    chains.add_position(connection, chain, at, state, earlier)
    alarmed = {chain.chain.place(*of) for of in chains.alarmed(connection, chain.calibrator_id)}
    withdrawn = tuple(sorted({place for place in alarmed if place < len(state)}.union(refuted(state))))
    following = None
    if not has_ended and chains.begun(connection, classifier).newest == chain.number:
        following = _following(connection, chain, state, at, settings, withdrawn)
    certificate = certificate_at(chain, state, at, settings, withdrawn, following)
    return certificate, len(labels.label) - len(taken.label)


def _followed(chain: StoredChain, state: State, points: CertificatePoints, first: int, end: int) -> State:
    """The state after the documents from one number to before another; points: theirs, numbered from 0."""
    for since, until in pairwise([first, *(one for one in chain.restarts if first < one < end), end]):
        part = points.take((points.document >= since - first) & (points.document < until - first))
        state = (advance if since else start)(chain.chain, restarted(state) if since > first else state, part)
    return state


def _following(
    connection: Connection,
    chain: StoredChain,
    state: State,
    at: Position,
    settings: VennAbersSettings,
    withdrawn: tuple[int, ...],
) -> NextChain | None:
    """The next chain, if the newest labels that count foretell that it would admit clearly more."""
    assert settings.certification is not None, "a certificate is asked for"
    points = chains.evidence(connection, chain, first=max(at.documents - MOST_DOCUMENTS, 0))
    # Kept as often as they weigh, those of drawn points are a random sample too.
    kept = np.random.default_rng(chain.number).random(len(points.score)) < points.weights
    return foretell_following(
        chain.chain,
        certified_counts(chain.chain, state),
        replace(points.take(kept), weight=None),
        number=chain.number + 1,
        level=float(1 - settings.certification.confidence),
        documents=at.counted,
        kinds=settings.certification.kinds,
        withdrawn=withdrawn,
    )


_NO_POINTS = CertificatePoints(np.empty(0), *np.empty((3, 0), dtype=np.int64))


def _after(base: Position, documents: int, event: int, counting: CertificatePoints) -> Position:
    """The position after further points."""
    counted = base.counted + len(np.unique(counting.document))
    return Position(documents, event, counted, base.points + len(counting.score))


def _documents(points: CertificatePoints) -> int:
    return int(points.document.max(initial=-1)) + 1


def _scored(
    connection: Connection, classifier: Classifier, chain: StoredChain, labels: CountingLabels
) -> tuple[int, CountingLabels, CertificatePoints]:
    """The labels whose points have a score, up to the first that has none, and the last event up to there."""
    view, event = None, labels.newest
    if chain.score is ScoreKind.RELIABILITY:
        assert chain.knn_parameters_id is not None, "the reliability score needs the KNN"
        ids, found = approximations.read_approximations(
            connection, classifier, labels.exemplar_ids, chain.knn_parameters_id
        )
        lacking = ~np.isin(labels.exemplar_ids, ids)
        if lacking.any():
            first = int(labels.events[lacking].min())
            event, labels = first - 1, labels.take(labels.events < first)
        view = found.take(approximations.positions(ids, labels.exemplar_ids))
    parameters = approximations.parameters_of(connection, chain.knn_parameters_id)
    cells = scored_points(
        chain.score,
        None if parameters is None else parameters.reliability,
        exemplars.network_logits(connection, classifier, labels.exemplar_ids),
        view,
        neighbour_count=classifier.neighbours,
    )
    points = CertificatePoints(cells.score, cells.predicted, labels.label, labels.document, weight=labels.weight)
    return event, labels, points
