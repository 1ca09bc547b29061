"""The decision on a row of a source at once; nothing is stored."""

from sqlalchemy import Engine

from venn_admit.errors import InvalidInputError
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.data.ingest import batches_of
from venn_admit.flows.decisions.score_one import GivenPoint, PointDecision, PointScorer
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier


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
) -> PointDecision:
    """Decide on a row of a source by the snapshot in use.

    row: counted from 0. The other options, and what is raised, are as in `PointScorer.score_each`; InvalidInputError is
    raised too if the source has no such row.
    """
    count = source.count_rows()
    if count is not None and row >= count:
        raise _no_such_row(source, count, row)
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, name)
    (decision,) = scorer.score_each(
        classifier.address,
        [_read_row(classifier, source, row)],
        weighted=weighted,
        require_full_match=require_full_match,
        hnsw_ef_search=hnsw_ef_search,
        neighbours=neighbours,
    )
    return decision


def _read_row(classifier: Classifier, source: ExemplarSource, row: int) -> GivenPoint:
    count = 0
    for batch in batches_of(source, classifier):
        count = batch.first_row + len(batch.logits)
        if row < count:
            place = row - batch.first_row
            vector = None if batch.vectors is None else batch.vectors[place]
            return GivenPoint(vector, batch.logits[place], batch.attributes[place], batch.external_ids[place])
    raise _no_such_row(source, count, row)


def _no_such_row(source: ExemplarSource, count: int, row: int) -> InvalidInputError:
    return InvalidInputError(f"{source}: expected a row from 0 to {count - 1}, got {row}")
