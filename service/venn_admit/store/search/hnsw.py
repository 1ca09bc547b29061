"""The HNSW index on a classifier's training vectors, which is created on request."""

from dataclasses import dataclass

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import Column, Connection, Engine, Index, MetaData, Table, cast
from sqlalchemy.schema import CreateIndex, DropIndex

from venn_admit.errors import Code, ConflictError, InvalidInputError, NotFoundError, NotReadyError
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.engine import unlimited
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier

# pgvector's limit for the type vector.
DIMENSION_LIMIT = 2000
EF_SEARCH_LIMIT = 1000
# Postgres' limit for maintenance_work_mem.
MEMORY_LIMIT_MB = (1 << 21) - 1
# What a vector in a graph that is being built takes besides its numbers, and each link of it (pgvector 0.8).
_VECTOR_BYTES, _LINK_BYTES = 200, 16


@dataclass(frozen=True, slots=True)
class HnswIndex:
    """An existing index. m: links per vector; ef_construction: candidates while it was built; size: bytes."""

    m: int
    ef_construction: int
    size: int


def find(connection: Connection, classifier: Classifier) -> HnswIndex | None:
    """Return the index, or None if there is none; an index whose creation was interrupted does not count."""
    row = execute(connection, "hnsw.index", index=_name(classifier)).one_or_none()
    if row is None or not row.valid:
        return None
    options = dict(option.split("=") for option in row.options)
    return HnswIndex(int(options["m"]), int(options["ef_construction"]), row.bytes)


def create(
    engine: Engine, classifier: Classifier, *, m: int, ef_construction: int, memory_mb: int | None = None
) -> HnswIndex:
    """Create the index while others read and write; the remains of an interrupted attempt are replaced.

    Args:
        m: Links of each vector, 2 to 100.
        ef_construction: Candidates considered for them, 2 m to 1000.
        memory_mb: MiB that the server may take for it; None: as many as it is set up to take.

    Raises:
        InvalidInputError: Another value is given, or vectors have more dimensions than pgvector can index.
        ConflictError: There is an index already.
    """
    if classifier.dimension > DIMENSION_LIMIT:
        raise InvalidInputError(
            f"classifier {classifier.name!r} has vectors of {classifier.dimension} dimensions, pgvector's HNSW index "
            f"accepts {DIMENSION_LIMIT} at most; search exactly"
        )
    if not (2 <= m <= 100 and 2 * m <= ef_construction <= 1000):
        raise InvalidInputError(
            f"expected m from 2 to 100 and ef_construction from twice m to 1000, got {m} and {ef_construction}"
        )
    if memory_mb is not None and not 1 <= memory_mb <= MEMORY_LIMIT_MB:
        raise InvalidInputError(f"memory: expected 1 to {MEMORY_LIMIT_MB:,} MiB, got {memory_mb:,}")
    with unlimited(engine) as connection:
        found = find(connection, classifier)
        if found is not None:
            raise ConflictError(
                f"classifier {classifier.name!r} has an HNSW index, m = {found.m}, ef_construction = "
                f"{found.ef_construction}; to make another, drop it first",
                code=Code.INDEX_EXISTS,
                classifier=classifier.name,
            )
        index = _index(classifier, m=m, ef_construction=ef_construction)
        connection.execute(DropIndex(index, if_exists=True))
        if memory_mb is not None:
            execute(connection, "hnsw.allow_memory", memory=f"{memory_mb}MB")
        connection.execute(CreateIndex(index))
        made = find(connection, classifier)
    assert made is not None
    return made


@dataclass(frozen=True, slots=True)
class BuildMemory:
    """MiB that building an index takes, roughly, for all of it to be in memory; and that the server may take for it."""

    needed_mb: int
    allowed_mb: int


def build_memory(connection: Connection, classifier: Classifier, *, m: int) -> BuildMemory:
    """Return what building an index takes. m: as in `create`."""
    row = execute(connection, "hnsw.build_memory", classifier_id=classifier.id).one()
    # A vector has twice as many links in the lowest layer; higher ones are rare.
    each = 4 * classifier.dimension + 2 * m * _LINK_BYTES + _VECTOR_BYTES
    return BuildMemory(-(-row.vectors * each >> 20), row.allowed_bytes >> 20)


def drop(engine: Engine, classifier: Classifier) -> None:
    """Remove the index, complete or not; NotFoundError if there is none."""
    with unlimited(engine) as connection:
        if execute(connection, "hnsw.index", index=_name(classifier)).one_or_none() is None:
            raise NotFoundError(
                f"classifier {classifier.name!r} has no HNSW index", code=Code.UNKNOWN_INDEX, classifier=classifier.name
            )
        connection.execute(DropIndex(_index(classifier), if_exists=True))


def prefer(connection: Connection, classifier: Classifier, ef_search: int) -> None:
    """Make searches use the index, to the end of the transaction.

    ef_search: candidates that a search keeps, K to 1000. Raises InvalidInputError for another number, and NotReadyError
    if there is no index.
    """
    if not classifier.neighbour_count <= ef_search <= EF_SEARCH_LIMIT:
        raise InvalidInputError(
            f"expected ef_search from K = {classifier.neighbour_count} to {EF_SEARCH_LIMIT}, got {ef_search}"
        )
    if not execute(connection, "hnsw.prefer", index=_name(classifier), ef_search=ef_search).one().indexed:
        raise NotReadyError(
            f"classifier {classifier.name!r} has no HNSW index: create it, or search exactly",
            code=Code.INDEX_MISSING,
            classifier=classifier.name,
        )


def sample(connection: Connection, classifier: Classifier, count: int) -> list[int]:
    """Return ids of at most `count` stored points that are not training exemplars, in no particular order."""
    return list(execute(connection, "hnsw.sample", classifier_id=classifier.id, count=count).scalars())


def _name(classifier: Classifier) -> str:
    return f"exemplar_vector_{classifier.id}_support_hnsw_idx"


def _index(classifier: Classifier, **options: int) -> Index:
    """An index on an expression of fixed dimension, because the column has none."""
    table = Table(f"exemplar_vector_{classifier.id}_support", MetaData(schema=SCHEMA), Column("vector", VECTOR))
    return Index(
        _name(classifier),
        cast(table.c.vector, VECTOR(classifier.dimension)).label("vector"),
        postgresql_using="hnsw",
        postgresql_ops={"vector": "vector_l2_ops"},
        postgresql_with=options,
        postgresql_concurrently=True,
    )
