"""Many small batches as few large ones: what stores a batch takes about as long for one row as for a hundred."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from venn_admit.files.records import ExemplarBatch


def merged(batches: Iterable[ExemplarBatch], row_count: int) -> Iterator[ExemplarBatch]:
    """Yield the same rows in batches of at least `row_count` rows, the last one excepted.

    At most `row_count` rows and one batch are held at once. The batches are those of one source, in its order.
    """
    held: list[ExemplarBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch.external_ids)
        if rows >= row_count:
            yield _joined(held)
            held, rows = [], 0
    if held:
        yield _joined(held)


def _joined(batches: list[ExemplarBatch]) -> ExemplarBatch:
    first, *others = batches
    if not others:
        return first
    vectors = [batch.vectors for batch in batches if batch.vectors is not None]
    return replace(
        first,
        external_ids=list(chain.from_iterable(batch.external_ids for batch in batches)),
        document_ids=list(chain.from_iterable(batch.document_ids for batch in batches)),
        vectors=np.concatenate(vectors) if vectors else None,
        logits=np.concatenate([batch.logits for batch in batches]),
        labels=np.concatenate([batch.labels for batch in batches]),
        attributes=list(chain.from_iterable(batch.attributes for batch in batches)),
        digests=list(chain.from_iterable(batch.digests for batch in batches)),
    )
