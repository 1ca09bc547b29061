"""Finding, creating and dropping the HNSW index of a classifier, which approximate searches use."""

from sqlalchemy import Engine

from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search import hnsw
from venn_admit.store.search.hnsw import BuildMemory, HnswIndex


def find_index(engine: Engine, name: str) -> HnswIndex | None:
    """Return the index, or None if there is none. Raises NotFoundError if there is no such classifier."""
    classifier = _classifier(engine, name)
    with connect(engine) as connection:
        return hnsw.find(connection, classifier)


def create_index(engine: Engine, name: str, *, m: int, ef_construction: int, memory_mb: int | None = None) -> HnswIndex:
    """Create the index; arguments and errors are those of `hnsw.create`."""
    classifier = _classifier(engine, name)
    return hnsw.create(engine, classifier, m=m, ef_construction=ef_construction, memory_mb=memory_mb)


def build_memory(engine: Engine, name: str, *, m: int) -> BuildMemory:
    """Return what memory building the index takes, and what it may; errors are those of `find_index`."""
    classifier = _classifier(engine, name)
    with connect(engine) as connection:
        return hnsw.build_memory(connection, classifier, m=m)


def drop_index(engine: Engine, name: str) -> None:
    """Drop the index. Raises NotFoundError if there is none."""
    hnsw.drop(engine, _classifier(engine, name))


def _classifier(engine: Engine, name: str) -> Classifier:
    """Return the classifier; InvalidInputError if it has logits only, and so nothing to index."""
    with connect(engine) as connection:
        classifier = classifiers.by_name(connection, name)
    classifiers.require_vectors(classifier, "an HNSW index")
    return classifier
