"""The decision on one vector at once, with the training exemplars that it rests on; nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from venn_admit.core.types import Float32Array
from venn_admit.errors import InvalidInputError
from venn_admit.files.records import Attributes
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.data.ingest import batches_of
from venn_admit.flows.decisions.score_one import GivenPoint, PointDecision, PointScorer, Stated
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.exemplars import DescribedExemplar


@dataclass(frozen=True, slots=True, eq=False)
class DecidedVector:
    """The decision on a vector, and the nearest training exemplars that were asked for; none with logits only."""

    decision: PointDecision

    @property
    def neighbours(self) -> Sequence[DescribedExemplar]:
        """The exemplars as users know them, nearest first."""
        return self.decision.neighbours

    @property
    def near(self) -> list[tuple[DescribedExemplar, int, float]]:
        """These exemplars, each with its label and its distance."""
        found = self.decision.nearest
        if found is None:
            return []
        count = len(self.neighbours)
        return list(zip(self.neighbours, found.labels[:count].tolist(), found.distances[:count].tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class DecidedRow:
    """A row's id, attributes and logits, (C,) float32, and what was decided on it."""

    external_id: str
    attributes: Attributes
    network_logits: Float32Array
    decided: DecidedVector


def decide_vector(
    scorer: PointScorer,
    name: str,
    vector: Float32Array | None,
    *,
    logits: Float32Array | None = None,
    weighted: bool | None,
    require_full_match: bool,
    hnsw_ef_search: int | None = None,
    neighbours: int | None = None,
) -> DecidedVector:
    """Decide on a vector by the current snapshot; arguments and errors are those of `PointScorer.score`."""
    decision = scorer.score(
        name,
        vector,
        logits=logits,
        weighted=weighted,
        require_full_match=require_full_match,
        hnsw_ef_search=hnsw_ef_search,
        neighbours=neighbours,
    )
    return DecidedVector(decision)


def decide_points(
    scorer: PointScorer,
    name: str,
    points: Sequence[GivenPoint],
    *,
    weighted: bool | None,
    require_full_match: bool,
    neighbours: int | None = None,
    stated: Stated | None = None,
) -> list[DecidedVector]:
    """Decide on each of some points by one snapshot, the current one; the rest is as in `PointScorer.score_each`."""
    decisions = scorer.score_each(
        name,
        points,
        weighted=weighted,
        require_full_match=require_full_match,
        neighbours=neighbours,
        stated=stated,
    )
    return [DecidedVector(decision) for decision in decisions]


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
    decided = decide_vector(
        scorer,
        classifier.address,
        vector,
        logits=logits,
        weighted=weighted,
        require_full_match=require_full_match,
        hnsw_ef_search=hnsw_ef_search,
        neighbours=neighbours,
    )
    return DecidedRow(external_id, attributes, logits, decided)


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
