"""Exemplars from a source into the store: all of them, or none."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.service.core.approximation.knn import network_prediction
from venn_admit.service.core.splits import assign_splits
from venn_admit.service.core.types import IntArray, Split
from venn_admit.service.errors import Code, InvalidInputError
from venn_admit.service.files import ExemplarBatch
from venn_admit.service.files.sources import ExemplarSource
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars import classifiers, exemplars, support
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.work import recalibrations

HELD_OUT = "held-out"
"""The split of held-out labelled data: each goes to knn, mc or vp by the split hash."""

OnRows = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a source: its rows, how many were new, and the new ones per split.

    recalibrations: calibrators that are to be recalibrated for it.
    """

    rows: int
    new: int
    new_per_split: dict[Split, int]
    recalibrations: int


def ingest(
    engine: Engine,
    name: str,
    source: ExemplarSource,
    split: str,
    *,
    on_rows: OnRows = lambda _: None,
) -> Ingested:
    """Store a source's exemplars, whose labels calibrate as a random sample does.

    Re-ingesting a source is a no-op, whatever its name.

    Args:
        engine: The database.
        name: The classifier's name.
        source: The exemplars.
        split: `train`, `held-out`, or one of `knn`, `mc`, `vp` for data that were divided before. A classifier with
            logits only neither trains nor fits a KNN, so that it has no `train` and no `knn`.
        on_rows: Is told the rows of each batch.

    Raises:
        InvalidInputError: A row is not as it must be; the message names it, and nothing of the source is stored.
        ConflictError: A row contradicts what is stored, likewise.
    """
    if split not in (HELD_OUT, Split.TRAIN, Split.KNN, Split.MC, Split.VP):
        raise InvalidInputError(f"unknown split {split!r}: expected train, held-out, knn, mc or vp")
    per_split: Counter[Split] = Counter()
    rows = new = newest_support = 0
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        if split in (Split.TRAIN, Split.KNN):
            classifiers.require_vectors(classifier, f"split {split}")
        exemplars.lock_ingestion(connection, classifier)
        for batch in batches_of(source, classifier):
            _require_labels(source, batch, split)
            splits = _splits(classifier, batch, split)
            stored = store_batch(connection, classifier, batch, splits, selection="random", source=source.name)
            new_splits = [splits[row] for row in stored.new_rows.tolist()]
            per_split.update(new_splits)
            if Split.TRAIN in new_splits:
                newest_support = int(stored.ids.max())
            rows, new = rows + len(splits), new + len(stored.new_rows)
            on_rows(len(splits))
        if per_split[Split.TRAIN]:
            support.renew(connection, classifier, newest_support)
        requests = 0
        if per_split.keys() & recalibrations.CALIBRATION_SPLITS:
            what = "training data" if per_split[Split.TRAIN] else "held-out data"
            requests = recalibrations.request(connection, classifier, what)
    return Ingested(rows=rows, new=new, new_per_split=dict(per_split), recalibrations=requests)


def store_scored(
    connection: Connection, classifier: Classifier, source: ExemplarSource, on_rows: OnRows = lambda _: None
) -> IntArray:
    """Store a source's exemplars to be scored; their ids in its order, (n,) int64.

    Labels that come with them are kept for evaluation and never calibrate: what was put together to be scored is no
    random sample of the traffic.
    """
    exemplars.lock_ingestion(connection, classifier)
    ids = []
    for batch in batches_of(source, classifier):
        splits = [Split.SCORED] * len(batch.external_ids)
        stored = store_batch(connection, classifier, batch, splits, selection="selected", source=source.name)
        ids.append(stored.ids)
        on_rows(len(splits))
    return np.concatenate(ids)


def store_batch(
    connection: Connection,
    classifier: Classifier,
    batch: ExemplarBatch,
    splits: list[Split],
    *,
    selection: str,
    source: str,
) -> exemplars.StoredExemplars:
    """Store one batch, each row in the split given."""
    incoming = exemplars.IncomingExemplars(
        first_row=batch.first_row,
        external_ids=batch.external_ids,
        document_ids=batch.document_ids,
        splits=splits,
        vectors=batch.vectors,
        logits=batch.logits,
        predicted=network_prediction(batch.logits),
        labels=batch.labels,
        attributes=batch.attributes,
    )
    if batch.former_ids is not None:
        incoming = exemplars.under_former_ids(connection, classifier, incoming, batch.former_ids)
    return exemplars.store(connection, classifier, incoming, selection=selection, source=source)


def batches_of(source: ExemplarSource, classifier: Classifier) -> Iterator[ExemplarBatch]:
    """Yield a source's rows, checked to be those of a classifier."""
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


def _splits(classifier: Classifier, batch: ExemplarBatch, split: str) -> list[Split]:
    if split != HELD_OUT:
        return [Split(split)] * len(batch.external_ids)
    keys = [
        external_id if document_id is None else document_id
        for external_id, document_id in zip(batch.external_ids, batch.document_ids, strict=True)
    ]
    return assign_splits(keys, seed=classifier.seed, knn_share=classifier.knn_share, mc_share=classifier.mc_share)
