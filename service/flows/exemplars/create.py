"""Registering a classifier."""

from decimal import Decimal

from sqlalchemy import Engine

from venn_admit.service.core.splits import DEFAULT_KNN_SHARE, DEFAULT_MC_SHARE
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars import classifiers
from venn_admit.service.store.exemplars.classifiers import Classifier

LONGEST_VECTOR = 16_000  # pgvector's own limit
MOST_NEIGHBOURS = 10_000  # stored for every exemplar
_NAME_LENGTH = 100


def create(
    engine: Engine,
    name: str,
    class_names: tuple[str, ...],
    *,
    dimension: int,
    neighbour_count: int,
    seed: int,
    knn_share: Decimal = DEFAULT_KNN_SHARE,
    mc_share: Decimal = DEFAULT_MC_SHARE,
) -> Classifier:
    """Register a classifier. Raises InvalidInputError for values out of range, ConflictError for a known name."""
    check_name(name)
    if len(class_names) < 2 or not all(class_names):
        raise InvalidInputError(
            f"classes: expected at least two names, got {len([known for known in class_names if known])}"
        )
    unprintable = [known for known in class_names if not known.isprintable()]
    if unprintable:
        raise InvalidInputError(f"classes: expected printable characters, got {unprintable[0]!a}")
    repeated = sorted({known for known in class_names if class_names.count(known) > 1})
    if repeated:
        raise InvalidInputError(f"classes: expected each name once, got {', '.join(repeated)} more than once")
    if not 1 <= dimension <= LONGEST_VECTOR:
        raise InvalidInputError(f"dim: expected 1 to {LONGEST_VECTOR}, pgvector's limit, got {dimension}")
    if not 1 <= neighbour_count <= MOST_NEIGHBOURS:
        raise InvalidInputError(f"k: expected 1 to {MOST_NEIGHBOURS} neighbours, got {neighbour_count}")
    if not -(2**63) <= seed < 2**63:
        raise InvalidInputError(f"seed: expected an integer of 64 bits, got {seed}")
    with transaction(engine) as connection:
        return classifiers.create(
            connection,
            name=name,
            class_names=class_names,
            dimension=dimension,
            neighbour_count=neighbour_count,
            knn_share=knn_share,
            mc_share=mc_share,
            seed=seed,
        )


def check_name(name: str) -> None:
    """Raise InvalidInputError unless a classifier may have this name."""
    if not 1 <= len(name) <= _NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise InvalidInputError(f"name: expected 1 to {_NAME_LENGTH} printable characters, got {name!a}")
