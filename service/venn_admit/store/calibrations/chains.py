"""Certificates that stand while labels arrive: their chains, the labels that count, and their states by difference."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.calibrators.certification import ClassKind, OneClass, PromisedClass
from venn_admit.core.calibrators.certified.certificate import LaterChain
from venn_admit.core.calibrators.certified.chains import finite_thresholds
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.copies import united
from venn_admit.core.monitoring.anytime.plan import KIND_OF_LAMP, Lamp
from venn_admit.core.monitoring.history import ChainAdvance, ChainHistory, PointChanges, PromiseAlarm
from venn_admit.core.split_names import Split
from venn_admit.core.splits import hash_keys
from venn_admit.core.standing import against
from venn_admit.core.standing.chains import ClassChain, StandingChain
from venn_admit.core.standing.state import ClassState, State, initial_state, refuted
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.binary_copy import FLOAT8, INT4, INT8, FixedColumn, copy_in, read_columns
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.statements import execute, statement
from venn_admit.store.exemplars import approximations
from venn_admit.store.exemplars.classifiers import Classifier

MOST_ADVANCES = 1000
"""At most this many snapshots are in a history, the newest."""

_POINT: dict[str, FixedColumn] = {"document": INT4, "predicted": INT4, "label": INT4, "score": FLOAT8, "weight": FLOAT8}


@dataclass(frozen=True, slots=True, eq=False)
class StoredChain:
    """A chain.

    number: among all generations of the classifier. knn_parameters_id: None if the classifier has logits only.
    support_version: of the training exemplars that its score depends on; None if that is the network's. proposing: the
    points that fixed it. restarts: the numbers of documents after which the games against what is certified started
    again, ascending.
    """

    id: int
    calibrator_id: int
    number: int
    knn_parameters_id: int | None
    support_version: int | None
    score: ScoreKind
    proposing: int
    chain: StandingChain
    restarts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """How far a chain was advanced.

    documents: those that came to count. event: the last label event that was seen. counted, points: of these documents,
    those of which a label was not taken back, and their points with such a label.
    """

    documents: int
    event: int
    counted: int
    points: int


@dataclass(frozen=True, slots=True, eq=False)
class CountingLabels:
    """Labelled points that have not counted, (n,) each, in the order in which their documents count.

    document: from 0. weight: in [0, 1]. events: the label event before which each document has no label. newest: the
    last event of all.
    """

    exemplar_ids: IntArray
    label: IntArray
    document: IntArray
    weight: FloatArray
    events: IntArray
    newest: int

    def take(self, rows: Any) -> "CountingLabels":
        """Return some whole documents, numbered from 0; rows: (n,) bool."""
        _, document = np.unique(self.document[rows], return_inverse=True)
        return replace(
            self,
            exemplar_ids=self.exemplar_ids[rows],
            label=self.label[rows],
            document=document,
            weight=self.weight[rows],
            events=self.events[rows],
        )


def lock(connection: Connection, classifier: Classifier) -> None:
    """Wait until nobody else begins a chain or adds to a family of it; held to the end of the transaction."""
    execute(connection, "chains.lock", first_id=classifier.first_id)


def begun(connection: Connection, classifier: Classifier) -> Row[Any]:
    """Return the largest number of a chain of all generations of a classifier, and whether this one has any."""
    return execute(connection, "chains.begun", classifier_id=classifier.id, first_id=classifier.first_id).one()


def add(connection: Connection, calibrator_id: int, chain: StoredChain) -> StoredChain:
    """Begin a chain of a calibrator; its ids are given here."""
    chain_id: int = execute(
        connection,
        "chains.add_chain",
        calibrator_id=calibrator_id,
        number=chain.number,
        knn_parameters_id=chain.knn_parameters_id,
        support_version=chain.support_version,
        score=chain.score,
        proposing=chain.proposing,
        chain=json.dumps(_document(chain.chain)),
    ).scalar_one()
    return replace(chain, id=chain_id, calibrator_id=calibrator_id)


def newest(connection: Connection, calibrator_id: int) -> StoredChain:
    """Return the chain that was begun last of a calibrator that has one."""
    return _chain(execute(connection, "chains.chain", calibrator_id=calibrator_id, calibration_id=None).one())


def of_calibration(connection: Connection, calibration: Calibration) -> StoredChain:
    """Return the chain that certified a snapshot of a standing certificate."""
    return of_snapshot(connection, calibration.calibrator_id, calibration.id)


def of_snapshot(connection: Connection, calibrator_id: int, calibration_id: int) -> StoredChain:
    """Return the same by its keys."""
    return _chain(execute(connection, "chains.chain", calibrator_id=calibrator_id, calibration_id=calibration_id).one())


def has_ended(connection: Connection, classifier: Classifier, chain: StoredChain) -> bool:
    """Return whether the score of new points is another than that which the thresholds of a chain are on."""
    if chain.support_version is None:
        return False
    parameters = approximations.current_parameters(connection, classifier)
    return (
        parameters is None
        or parameters.id != chain.knn_parameters_id
        or classifier.support_version != chain.support_version
    )


def newest_calibration(connection: Connection, chain: StoredChain) -> int:
    """Return the newest snapshot that a chain certified."""
    calibration_id: int = execute(connection, "chains.newest_calibration", chain_id=chain.id).scalar_one()
    return calibration_id


def later(connection: Connection, classifier: Classifier, chain: StoredChain) -> LaterChain | None:
    """Return the newest chain of the same setting; None if it is this one, or has ended and is not in use."""
    parameters = {"calibrator_id": chain.calibrator_id, "chain_id": chain.id}
    in_use_id = calibrations.latest_id(connection, classifier)
    row = execute(connection, "chains.later", in_use_id=in_use_id, **parameters).one_or_none()
    if row is None:
        return None
    can_be_used = row.is_in_use or not has_ended(connection, classifier, newest(connection, chain.calibrator_id))
    return LaterChain(**row._mapping) if can_be_used else None


def waits(connection: Connection, calibrator_id: int) -> bool:
    """Return whether the newest chain of a calibrator waits while an earlier one is in use."""
    return bool(execute(connection, "chains.waits", calibrator_id=calibrator_id).scalar_one())


def is_begun_since(connection: Connection, calibrator_id: int, in_use_id: int) -> bool:
    """Return whether the newest chain of a calibrator was begun since the setting of the snapshot in use was chosen."""
    parameters = {"calibrator_id": calibrator_id, "in_use_id": in_use_id}
    return bool(execute(connection, "chains.is_begun_since", **parameters).scalar_one())


def are_same(connection: Connection, calibration_id: int, other_id: int) -> bool:
    """Return whether one chain certified two snapshots."""
    return bool(execute(connection, "chains.are_same", ids=[calibration_id, other_id]).scalar_one())


def labels(
    connection: Connection, classifier: Classifier, chain: StoredChain | None = None, *, after: int = 0
) -> CountingLabels:
    """Return the labels after an event that were random or drawn, by documents, each of which counts once.

    Without a chain, these are all labels that calibrate, a sample at one rate, in an order that depends on no time.

    A document counts by the labels that came together with its first one, and equal documents, like parts of one
    document, count when the first of them does. A hash says which of those that came together counts first, because
    rows of a file are often sorted by what their labels say.
    """
    parameters = {"classifier_id": classifier.id, "event": after}
    newest: int = execute(connection, "chains.newest_event", **parameters).scalar_one()
    of_all = chain is not None and chain.chain.is_path
    rows = execute(connection, "chains.new_labels", at_start=chain is None, of_all=of_all, **parameters).all()
    seen = _Seen()
    if chain is not None:
        seen.add_counted(connection, classifier, chain, rows, after)
    kept: list[Row[Any]] = []
    units: list[str] = []
    events: list[int] = []
    came_with: dict[str, int] = {}
    for number, together in enumerate(_transactions(rows)):
        for row, unit in zip(together, seen.new_units(together), strict=True):
            if unit is None or row.label is None:
                continue
            came_with[unit] = 0 if chain is None else number
            kept.append(row)
            units.append(unit)
            events.append(together[0].event)
    hashes = hash_keys(list(came_with), seed=classifier.seed, purpose="chain order")
    ranked = sorted(zip(came_with.values(), hashes.tolist(), came_with, strict=True))
    place = {unit: number for number, (_, _, unit) in enumerate(ranked)}
    document = np.array([place[unit] for unit in units], dtype=np.int64)
    order = np.argsort(document, kind="stable")
    return CountingLabels(
        exemplar_ids=np.array([row.exemplar_id for row in kept], dtype=np.int64)[order],
        label=np.array([row.label for row in kept], dtype=np.int64)[order],
        document=document[order],
        weight=np.array([1.0 if row.weight is None else row.weight for row in kept], dtype=np.float64)[order],
        events=np.array(events, dtype=np.int64)[order],
        newest=newest,
    )


def waiting_points(
    connection: Connection, classifier: Classifier, calibrator_id: int, knn_parameters_id: int
) -> IntArray:
    """Return the reviewed points that wait for an approximation to count for the newest chain of a setting.

    They were decided on under other parameters of the KNN, and unlike those that calibrate they get none by themselves.
    """
    row = execute(connection, "chains.chain", calibrator_id=calibrator_id, calibration_id=None).one_or_none()
    if row is None or row.score != ScoreKind.RELIABILITY or row.knn_parameters_id != knn_parameters_id:
        return np.empty(0, dtype=np.int64)
    chain = _chain(row)
    waiting = labels(connection, classifier, chain, after=position(connection, chain).event).exemplar_ids
    return approximations.without_approximation(connection, classifier, [Split.SCORED], knn_parameters_id, waiting)


def pending(connection: Connection, classifier: Classifier, chain: StoredChain, *, has_ended: bool) -> PointChanges:
    """Return which labels a chain would let count now, and which that count it would change.

    has_ended: whether new ones can have no score any more that the thresholds are on.
    """
    event = position(connection, chain).event
    changed = execute(connection, "chains.changed_labels", chain_id=chain.id, event=event).scalars("label").all()
    left = changed.count(None)
    arrived = 0 if has_ended else len(labels(connection, classifier, chain, after=event).exemplar_ids)
    return PointChanges(arrived=arrived, changed=len(changed) - left, left=left)


def _transactions(rows: Sequence[Row[Any]]) -> Iterable[list[Row[Any]]]:
    """The rows that came together, in the order in which they came."""
    found: dict[Any, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        found[row.arrived_at].append(row)
    return found.values()


class _Seen:
    """Which documents have counted, by their ids and by what they hold."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._contents: set[tuple[bytes, ...]] = set()

    def add_counted(
        self, connection: Connection, classifier: Classifier, chain: StoredChain, rows: Sequence[Row[Any]], event: int
    ) -> None:
        """Add what counts for a chain, or was labelled up to an event, of the documents of some rows."""
        parameters = {"classifier_id": classifier.id, "chain_id": chain.id, "event": event}
        ids = sorted({row.document_id for row in rows if row.document_id is not None})
        digests = list({row.point_digest for row in rows if row.point_digest is not None})
        if ids:
            self._keys |= set(execute(connection, "chains.known_documents", document_ids=ids, **parameters).scalars())
        if digests:
            found = execute(connection, "chains.known_contents", digests=digests, **parameters).scalars()
            self._contents |= {tuple(sorted(map(bytes, one))) for one in found}

    def new_units(self, together: Sequence[Row[Any]]) -> list[str | None]:
        """Return the unit of each of the points that came together; None for one whose document counted before."""
        contents: dict[str, list[bytes]] = defaultdict(list)
        for row in together:
            if row.point_digest is not None:
                contents[row.document_key].append(bytes(row.point_digest))
        held = {key: tuple(sorted(content)) for key, content in contents.items()}
        keys = [row.document_key for row in together]
        units = united(keys, [None if row.point_digest is None else bytes(row.point_digest) for row in together])
        new = [key not in self._keys and held.get(key) not in self._contents for key in keys]
        self._keys |= set(keys)
        self._contents |= set(held.values())
        return [unit if is_new else None for unit, is_new in zip(units, new, strict=True)]


def add_evidence(
    connection: Connection, chain: StoredChain, exemplar_ids: IntArray, points: CertificatePoints, first: int
) -> None:
    """Let further points count for a chain; first: the number of their first document."""
    if len(exemplar_ids):
        columns = {
            "chain_id": (INT8, np.full(len(exemplar_ids), chain.id)),
            "exemplar_id": (INT8, exemplar_ids),
            "document": (INT4, points.document + first),
            "predicted": (INT4, points.predicted),
            "score": (FLOAT8, points.score),
            "label": (INT4, points.label),
            "weight": (FLOAT8, weight := points.weights),
        }
        copy_in(driver_cursor(connection), "standing_evidence", columns, nulls={"weight": weight == 1})


def correct(connection: Connection, chain: StoredChain, *, after: int) -> int | None:
    """Let labels count as they were corrected after an event; return the first document with one, None for none."""
    rows = execute(connection, "chains.changed_labels", chain_id=chain.id, event=after).all()
    if not rows:
        return None
    changed = {"exemplar_ids": [row.exemplar_id for row in rows], "labels": [row.label for row in rows]}
    execute(connection, "chains.change_labels", chain_id=chain.id, **changed)
    return int(rows[0].document)


def evidence(connection: Connection, chain: StoredChain, *, first: int) -> CertificatePoints:
    """Return the points that count for a chain, from a document on, which gets the number 0."""
    found = read_columns(connection, "chains.evidence", _POINT, chain_id=chain.id, document=first)
    return CertificatePoints(
        found["score"], found["predicted"], found["label"], found["document"] - first, weight=found["weight"]
    )


def position(connection: Connection, chain: StoredChain) -> Position:
    """Return how far a chain was advanced."""
    return Position(**execute(connection, "chains.newest_position", chain_id=chain.id).one()._mapping)


def go_back(connection: Connection, chain: StoredChain, document: int) -> Position:
    """Go back to a position at which a document did not count yet, and delete what was found after it."""
    row = execute(connection, "chains.position_before", chain_id=chain.id, document=document).one_or_none()
    base = Position(0, 0, 0, 0) if row is None else Position(**row._mapping)
    execute(connection, "chains.delete_positions", chain_id=chain.id, documents=base.documents)
    return base


def state_at(connection: Connection, chain: StoredChain, documents: int) -> State:
    """Return the state after a number of documents, from which further ones go on."""
    state = list(initial_state(chain.chain))
    for row in execute(connection, "chains.states", chain_id=chain.id, documents=documents):
        is_over = row.against is None or any(row.documents <= one <= documents for one in chain.restarts)
        admitted, right, capped = (np.array(of, dtype=np.int64) for of in (row.admitted, row.correct, row.capped))
        state[row.place] = ClassState(
            np.array(row.wealth).reshape(state[row.place].wealth.shape),
            np.array(row.most),
            admitted,
            right,
            capped,
            None if is_over else against.from_document(row.against),
        )
    return tuple(state)


def add_position(connection: Connection, chain: StoredChain, at: Position, state: State, before: State) -> None:
    """Store how far a chain was advanced, and the state of the classes whose record is another than before."""
    execute(connection, "chains.add_position", chain_id=chain.id, **asdict(at))
    for place, (now, then) in enumerate(zip(state, before, strict=True)):
        if now is not then:
            of = {"chain_id": chain.id, "documents": at.documents, "place": place}
            execute(connection, "chains.delete_older_states", **of)
            connection.execute(
                statement("chains.add_state"),
                {
                    **of,
                    "wealth": now.wealth.ravel().tolist(),
                    "most": now.most.tolist(),
                    "admitted": now.admitted.tolist(),
                    "correct": now.right.tolist(),
                    "capped": now.capped.tolist(),
                    "against": None if now.against is None else json.dumps(against.to_document(now.against)),
                },
            )
    execute(connection, "chains.delete_older_positions", chain_id=chain.id, documents=at.documents)


def restart(connection: Connection, calibrator_id: int) -> None:
    """Start the games against what the chains of a calibrator certify again, with the documents to come."""
    execute(connection, "chains.restart", calibrator_id=calibrator_id)


def refuted_classes(connection: Connection, chain: StoredChain) -> list[OneClass]:
    """Return the classes whose labels refute what a chain certified of them."""
    places = refuted(state_at(connection, chain, position(connection, chain).documents))
    return [chain.chain.named(place) for place in places]


def history(connection: Connection, calibration: Calibration) -> ChainHistory:
    """Return what the chains of a classifier had come to in the snapshots up to one that stands."""
    parameters = {"classifier_id": calibration.classifier_id, "calibration_id": calibration.id, "most": MOST_ADVANCES}
    advances = [
        ChainAdvance(
            **{
                **row._mapping,
                "created_at": row.created_at.astimezone(UTC),
                "evidence": {None if of == "all" else int(of): part for of, part in row.evidence.items()},
            }
        )
        for row in execute(connection, "chains.advances", **parameters)
    ]
    alarms = [
        PromiseAlarm(
            PromisedClass(ClassKind(row.kind), row.class_number, None),
            row.created_at.astimezone(UTC),
            None if row.ended_at is None else row.ended_at.astimezone(UTC),
        )
        for row in execute(connection, "chains.promise_alarms", classifier_id=calibration.classifier_id)
    ]
    return ChainHistory(tuple(reversed(advances)), tuple(alarms))


def alarmed(connection: Connection, calibrator_id: int) -> set[OneClass]:
    """Return the predicted and true classes for which an alarm of the monitor of a calibrator stands."""
    found = execute(connection, "chains.alarmed", calibrator_id=calibrator_id, lamps=list(KIND_OF_LAMP))
    return {(KIND_OF_LAMP[Lamp(row.lamp)], row.number) for row in found}


def event_of_alarm(connection: Connection, classifier: Classifier) -> int | None:
    """Return the label event by which the first alarm of the promise was raised that stands; None if none stands."""
    event: int | None = execute(connection, "chains.event_of_alarm", classifier_id=classifier.id).scalar_one()
    return event


def _chain(row: Row[Any]) -> StoredChain:
    of = row.chain
    classes = tuple(
        ClassChain(
            _thresholds(one["shares"]),
            _thresholds(one["scores"]),
            np.array(one["largest"], dtype=np.int64),
            one["documents"],
            None if one.get("stakes") is None else np.array(one["stakes"]),
        )
        for one in of["classes"]
    )
    chain = StandingChain(of["alpha"], of["level"], classes, of.get("at_start", 0), of.get("is_path", False))
    parsed = {"score": ScoreKind(row.score), "chain": chain, "restarts": tuple(row.restarts)}
    return StoredChain(**{**row._mapping, **parsed})


def _thresholds(values: Sequence[float | None]) -> FloatArray:
    return np.array([math.inf if value is None else value for value in values], dtype=np.float64)


def _document(chain: StandingChain) -> dict[str, Any]:
    """A chain as JSON holds it: numbers have the same bits when they are read, and a threshold of null is never."""
    return {
        "alpha": chain.alpha,
        "level": chain.level,
        "at_start": chain.at_start,
        "is_path": chain.is_path,
        "classes": [
            {
                "shares": finite_thresholds(of.shares),
                "scores": finite_thresholds(of.scores),
                "largest": of.largest.tolist(),
                "documents": of.documents,
                "stakes": None if of.stakes is None else of.stakes.tolist(),
            }
            for of in chain.classes
        ],
    }
