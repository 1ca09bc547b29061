"""The decision on one row of a file at once, with the training exemplars it rests on; nothing is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from venn_admit.service.core.types import Float32Array
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.files import DEFAULT_MEMORY_BUDGET, count_rows, read_exemplars
from venn_admit.service.flows.decisions.score_one import PointDecision, PointScorer
from venn_admit.service.store.database.engine import connect
from venn_admit.service.store.exemplars import classifiers, exemplars
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.exemplars.exemplars import DescribedExemplar


@dataclass(frozen=True, slots=True, eq=False)
class DecidedRow:
    """A row's id, the decision on it, and its K nearest training exemplars, nearest first."""

    external_id: str
    decision: PointDecision
    neighbours: Sequence[DescribedExemplar]


def decide_row(
    engine: Engine,
    scorer: PointScorer,
    name: str,
    path: Path,
    row: int,
    *,
    weighted: bool,
    require_full_match: bool,
    hnsw_ef_search: int | None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> DecidedRow:
    """Decide on a row of a file by the current snapshot.

    row: counted from 0. memory_budget: bytes that reading the file may take. The other options, and what is raised,
    are as for `PointScorer.score`; InvalidInputError is raised too if the file has no such row.
    """
    count = count_rows(path)
    if row >= count:
        raise InvalidInputError(f"{path}: expected a row from 0 to {count - 1}, got {row}")
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, name)
    external_id, vector = _read_row(classifier, path, row, memory_budget)
    decision = scorer.score(
        name, vector, weighted=weighted, require_full_match=require_full_match, hnsw_ef_search=hnsw_ef_search
    )
    with connect(engine) as connection:
        return DecidedRow(external_id, decision, exemplars.described(connection, decision.nearest.ids))


def _read_row(classifier: Classifier, path: Path, row: int, memory_budget: int) -> tuple[str, Float32Array]:
    for batch in read_exemplars(
        path,
        dimension=classifier.dimension,
        class_count=classifier.class_count,
        class_names=classifier.class_names,
        memory_budget=memory_budget,
    ):
        if row < batch.first_row + len(batch.vectors):
            return batch.external_ids[row - batch.first_row], batch.vectors[row - batch.first_row]
    raise AssertionError("a file of fewer rows than its headers tell")
