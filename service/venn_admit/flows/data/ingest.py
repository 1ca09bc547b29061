"""Exemplars from a source into the store: all of them, or none."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.split_names import Split
from venn_admit.core.types import IntArray
from venn_admit.errors import Code, ConflictError, InvalidInputError
from venn_admit.files.records import ExemplarBatch
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.data.carried_labels import CarriedLabels, labels_carried_to
from venn_admit.flows.data.create import check_extractor
from venn_admit.flows.data.placing import Placement, TrainingCopies, document_keys
from venn_admit.flows.shell import OnRows
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, exemplars, generations, storing, support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import recalibrations
from venn_admit_client.records.data import Ingestion

HELD_OUT = "held-out"
"""The split of held-out labelled data: each goes to knn, mc or vp by the split hash."""


def ingest(
    engine: Engine,
    name: str,
    source: ExemplarSource,
    split: str,
    *,
    allow_training_rows: bool = False,
    on_rows: OnRows = lambda _: None,
    on_stored: Callable[[Connection, Ingestion], object] = lambda *_: None,
) -> Ingestion:
    """Store a source's exemplars, whose labels calibrate as a random sample does.

    Re-ingesting a source is a no-op, whatever its name. A classifier without exemplars whose extractor was not stated
    takes over the one that the source states.

    Training exemplars that arrive while a recalibration, a calibration or a fit is under way, or while a chunk is
    scored again that they disturbed, wait until it is done, or for ten minutes: data that arrive without a pause would
    put it off for ever.

    Documents, or points without one, that are held out with the same vectors and logits share a split, whatever their
    ids are.

    Args:
        split: `train`, `held-out`, or one of `knn`, `mc`, `vp` for data that were divided before, except for copies of
            what lies in another of these. A classifier with logits only neither trains nor fits a KNN, so that it has
            no `train` and no `knn`.
        allow_training_rows: Whether exemplars may be held out that have the vector and logits, or the document, of
            one that trains.

    Raises:
        InvalidInputError: A row is invalid; the message names it, and nothing of the source is stored.
        ConflictError: A row contradicts what is stored, the source comes from another extractor, or rows would be held
            out that train too.
    """
    if split not in (HELD_OUT, Split.TRAIN, Split.KNN, Split.MC, Split.VP):
        raise InvalidInputError(f"unknown split {split!r}: expected train, held-out, knn, mc or vp")
    per_split: Counter[Split] = Counter()
    rows = new = labels_carried = 0
    training_copies = TrainingCopies(source)
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if split in (Split.TRAIN, Split.KNN):
            classifiers.require_vectors(classifier, f"split {split}")
        exemplars.lock_ingestion(connection, classifier)
        # Meanwhile its extractor may have been stated, or its deletion may have begun.
        classifier = classifiers.usable(connection, classifier)
        has_others = len(generations.of_same(connection, classifier)) > 1
        placement = Placement(connection, classifier, None if split == HELD_OUT else Split(split))
        for batch in _read(source, classifier):
            if not rows:
                classifier = _take_over_extractor(connection, classifier, batch.extractor)
            require_extractor(classifier, batch.extractor, str(source))
            carried = labels_carried_to(connection, classifier, batch, str(source), has_others=has_others)
            labelled = carried.with_labels(batch)
            placed = placement.place(batch.external_ids, batch.document_ids, batch.point_digests)
            splits = placed.splits
            carried.require_for(labelled, splits)
            _require_labels(source, labelled, split)
            stored = store_batch(connection, classifier, labelled, splits, carried, selection="random", source=source)
            new_rows = stored.new_rows.tolist()
            keys = document_keys(batch.external_ids, batch.document_ids)
            placement.note_new((keys[row] for row in new_rows), stored.ids[new_rows].tolist())
            training_copies.add(batch, placed, new_rows)
            labels_carried += len(carried.known)
            per_split.update(splits[row] for row in new_rows)
            rows, new = rows + len(splits), new + len(new_rows)
            on_rows(len(splits))
        if not allow_training_rows:
            training_copies.require_none(classifier)
        gathered = placement.finish()
        moved = gathered.moved
        per_split = +Counter({one: per_split[one] + moved.new[one] for one in Split})
        requests = 0
        if per_split[Split.TRAIN]:
            # A request now might be taken for served by the snapshot that they wait for.
            if support.join_waiting(connection, classifier.id, wait=True):
                requests = recalibrations.request(connection, classifier, recalibrations.TRAINING_DATA)
            support.analyze(connection, classifier, per_split[Split.TRAIN])
        elif (per_split.keys() | moved.others.keys()) & recalibrations.CALIBRATION_SPLITS:
            requests = recalibrations.request(connection, classifier, "held-out data")
        waiting = support.waiting(connection, classifier)
        ingested = Ingestion(
            rows=rows,
            new=new,
            already_stored=rows - new,
            new_per_split={str(split): per_split[split] for split in Split if per_split[split]},
            copies=gathered.copies,
            training_copies=training_copies.count,
            labels_carried=labels_carried,
            recalibrations_due=requests,
            training_waiting=waiting,
        )
        on_stored(connection, ingested)
    return ingested


def store_scored(
    connection: Connection, classifier: Classifier, source: ExemplarSource, on_rows: OnRows = lambda _: None
) -> IntArray:
    """Store a source's exemplars to be scored; their ids in its order, (n,) int64.

    Labels that come with them are kept for evaluation and never calibrate: what was put together to be scored is no
    random sample of the traffic. Labels that came for them in other generations are carried over, and calibrate if they
    were random.
    """
    exemplars.lock_ingestion(connection, classifier)
    classifier = classifiers.usable(connection, classifier)  # as in `ingest`
    has_others = len(generations.of_same(connection, classifier)) > 1
    placement = Placement(connection, classifier)
    ids, calibrates = [], False
    for batch in batches_of(source, classifier):
        carried = labels_carried_to(connection, classifier, batch, str(source), has_others=has_others)
        labelled, splits = carried.with_labels(batch), carried.splits_of_scored(batch, placement)
        stored = store_batch(connection, classifier, labelled, splits, carried, selection="selected", source=source)
        placement.note_new(stored.ids[stored.new_rows])
        ids.append(stored.ids)
        calibrates = calibrates or bool(recalibrations.CALIBRATION_SPLITS & set(splits))
        on_rows(len(splits))
    if calibrates:
        placement.finish()
        recalibrations.request(connection, classifier, recalibrations.LABELS)
    return np.concatenate(ids)


def store_batch(
    connection: Connection,
    classifier: Classifier,
    batch: ExemplarBatch,
    splits: list[Split],
    carried: CarriedLabels,
    *,
    selection: str,
    source: ExemplarSource,
) -> storing.StoredExemplars:
    """Store one batch, each row in the split given, with the ledgers that are carried over."""
    incoming = storing.IncomingExemplars(
        first_row=batch.first_row,
        external_ids=batch.external_ids,
        document_ids=batch.document_ids,
        splits=splits,
        vectors=batch.vectors,
        logits=batch.logits,
        predicted=network_prediction(batch.logits),
        labels=batch.labels,
        attributes=batch.attributes,
        digests=batch.digests,
        point_digests=batch.point_digests,
        ledgers=carried.ledgers(),
    )
    return storing.store(connection, classifier, incoming, selection=selection, source=source.name)


def batches_of(source: ExemplarSource, classifier: Classifier) -> Iterator[ExemplarBatch]:
    """Yield a source's rows, checked to be those of a classifier and to come from its extractor."""
    for batch in _read(source, classifier):
        require_extractor(classifier, batch.extractor, str(source))
        yield batch


def require_extractor(classifier: Classifier, stated: str | None, where: str) -> None:
    """Raise ConflictError unless data come from the extractor of a classifier's exemplars, as far as they say.

    stated: None if the data do not say, which is enough for a classifier of which it was not stated either. where: what
    messages call the data.
    """
    own, its = classifier.extractor, f"the exemplars of {classifier.name!r}"
    if stated == own:
        return
    if own is None:
        code = Code.EXTRACTOR_UNSTATED
        problem = (
            f"expected none, as that of {its} is not stated, got {stated!r}; if they come from it too, state that for "
            "the classifier"
        )
    elif stated is None:
        code = Code.EXTRACTOR_MISSING
        problem = (
            f"expected {own!r}, which {its} come from, got none; if the data come from it too, state that for them"
        )
    else:
        code = Code.EXTRACTOR_DIFFERS
        problem = (
            f"expected {own!r}, which {its} come from, got {stated!r}; vectors of two extractors do not mix: use the "
            "generation of the classifier for this one, or add it"
        )
    raise ConflictError(f"{where}: extractor: {problem}", code=code, classifier=classifier.name)


def _take_over_extractor(connection: Connection, classifier: Classifier, stated: str | None) -> Classifier:
    """State the extractor of a classifier that has none and no exemplars."""
    if stated is None or classifier.extractor is not None:
        return classifier
    if any(exemplars.split_counts(connection, classifier).values()):
        return classifier
    check_extractor(stated)
    classifiers.set_extractor(connection, classifier, stated)
    return classifiers.by_id(connection, classifier.id)


def _read(source: ExemplarSource, classifier: Classifier) -> Iterator[ExemplarBatch]:
    return source.batches(
        dimension=None if classifier.knn is None else classifier.knn.dimension,
        class_count=classifier.class_count,
        class_names=classifier.class_names,
    )


def _require_labels(source: ExemplarSource, batch: ExemplarBatch, split: str) -> None:
    unlabelled = np.flatnonzero(batch.labels < 0)
    if unlabelled.size:
        raise InvalidInputError(
            f"{source}: row {batch.first_row + unlabelled[0]}, label: expected a label, which split {split} needs, "
            "got none; leave such rows out, or score them instead",
            code=Code.UNLABELLED,
            split=split,
        )
