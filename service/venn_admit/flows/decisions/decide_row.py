"""The decision on a row of a source at once; nothing is stored."""

from dataclasses import dataclass

from sqlalchemy import Engine

from venn_admit.core.types import Float32Array
from venn_admit.errors import InvalidInputError
from venn_admit.files.records import Attributes
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.data.ingest import batches_of
from venn_admit.flows.decisions.score_one import PointDecision, PointScorer
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class DecidedRow:
    """A row's id, attributes and logits, (C,) float32, and what was decided on it."""

    external_id: str
    attributes: Attributes
    network_logits: Float32Array
    decision: PointDecision


def decide_row(
    engine: Engine,
    scorer: PointScorer,
    name: str,
    source: ExemplarSource,
    row: int,
    *,
    weighted: bool | None,
    require_full_match: bool,
    hnsw_ef_search: int | None = None,
    neighbours: int | None = None,
) -> DecidedRow:
    """Decide on a row of a source by the current snapshot.

    row: counted from 0. The other options, and what is raised, are as in `PointScorer.score`; InvalidInputError is
    raised too if the source has no such row.
    """
    count = source.count_rows()
    if count is not None and row >= count:
        raise _no_such_row(source, count, row)
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, name)
    external_id, vector, logits, attributes = _read_row(classifier, source, row)
    decision = scorer.score(
        classifier.address,
        vector,
        logits=logits,
        attributes=attributes,
        weighted=weighted,
        require_full_match=require_full_match,
        hnsw_ef_search=hnsw_ef_search,
        neighbours=neighbours,
    )
    return DecidedRow(external_id, attributes, logits, decision)


def _read_row(
    classifier: Classifier, source: ExemplarSource, row: int
) -> tuple[str, Float32Array | None, Float32Array, Attributes]:
    count = 0
    for batch in batches_of(source, classifier):
        count = batch.first_row + len(batch.logits)
        if row < count:
            place = row - batch.first_row
            vector = None if batch.vectors is None else batch.vectors[place]
            return batch.external_ids[place], vector, batch.logits[place], batch.attributes[place]
    raise _no_such_row(source, count, row)


def _no_such_row(source: ExemplarSource, count: int, row: int) -> InvalidInputError:
    return InvalidInputError(f"{source}: expected a row from 0 to {count - 1}, got {row}")
