"""Registering a classifier."""

from collections.abc import Callable
from decimal import Decimal

from sqlalchemy import Connection, Engine

from venn_admit.core.names import NAME_LENGTH_LIMIT, is_name
from venn_admit.core.splits import DEFAULT_KNN_SHARE, DEFAULT_MC_SHARE, LOGITS_ONLY_MC_SHARE
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_values import check_class_names
from venn_admit.files.records import VERSION_RULE, is_version
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier

LONGEST_VECTOR = 16_000  # pgvector's own limit
MOST_NEIGHBOURS = 10_000  # stored for every exemplar
DEFAULT_NEIGHBOURS = 25


def create(
    engine: Engine,
    name: str,
    class_names: tuple[str, ...],
    *,
    seed: int,
    dimension: int | None = None,
    neighbour_count: int | None = None,
    logits_only: bool = False,
    extractor: str | None = None,
    knn_share: Decimal = DEFAULT_KNN_SHARE,
    mc_share: Decimal = DEFAULT_MC_SHARE,
    on_stored: Callable[[Connection, Classifier], object] = lambda *_: None,
) -> Classifier:
    """Register a classifier.

    Args:
        class_names: The names of its C classes, in the order of the logits.
        seed: The seed of the split hash and of training.
        dimension: D, unless it has logits only.
        neighbour_count: K; None for the default.
        logits_only: Whether it has no vectors. Nothing is fitted then, so that held-out data are mc and vp, half each.
        extractor: The version of what its vectors come from; None: that which the first data state, if any.
        knn_share: Share of held-out data in split knn.
        mc_share: Share in split mc.

    Raises:
        InvalidInputError: A value is out of range, or is given although there are no vectors.
        ConflictError: There is a classifier of this name.
    """
    if logits_only:
        given = {"length of vectors": dimension, "number of neighbours": neighbour_count}
        for what, value in given.items():
            if value is not None:
                raise InvalidInputError(f"expected no {what} of a classifier with logits only, got {value}")
        knn_share, mc_share = Decimal(0), LOGITS_ONLY_MC_SHARE
    else:
        neighbour_count = DEFAULT_NEIGHBOURS if neighbour_count is None else neighbour_count
        _check_knn(dimension, neighbour_count)
    check_name(name)
    if extractor is not None:
        check_extractor(extractor)
    check_class_names(class_names)
    if not -(2**63) <= seed < 2**63:
        raise InvalidInputError(f"seed: expected an integer of 64 bits, got {seed}")
    with transaction(engine) as connection:
        created = classifiers.create(
            connection,
            name=name,
            class_names=class_names,
            dimension=dimension,
            neighbour_count=neighbour_count,
            knn_share=knn_share,
            mc_share=mc_share,
            seed=seed,
            extractor=extractor,
        )
        on_stored(connection, created)
    return created


def _check_knn(dimension: int | None, neighbour_count: int) -> None:
    if dimension is None:
        raise InvalidInputError("expected the length of the vectors, or a classifier with logits only, got neither")
    check_dimension(dimension)
    if not 1 <= neighbour_count <= MOST_NEIGHBOURS:
        raise InvalidInputError(f"k: expected 1 to {MOST_NEIGHBOURS} neighbours, got {neighbour_count}")


def check_dimension(dimension: int) -> None:
    """Raise InvalidInputError unless vectors of this length can be stored."""
    if not 1 <= dimension <= LONGEST_VECTOR:
        raise InvalidInputError(f"dimension: expected 1 to {LONGEST_VECTOR}, pgvector's limit, got {dimension}")


def check_extractor(extractor: str) -> None:
    """Raise InvalidInputError unless a version of an extractor may be this text."""
    if not is_version(extractor):
        raise InvalidInputError(f"extractor: expected {VERSION_RULE}, got {extractor!a}")


def check_part_of_paths(name: str) -> None:
    """Raise InvalidInputError unless what has an address over HTTP may have this name."""
    if not is_name(name):
        raise InvalidInputError(
            f"name: expected 1 to {NAME_LENGTH_LIMIT} printable characters, without / and spaces around them, and "
            f"neither . nor .., got {name!a}"
        )


def check_name(name: str) -> None:
    """Raise InvalidInputError unless a classifier may have this name."""
    check_part_of_paths(name)
    if classifiers.addressed(name)["generation"] is not None:
        raise InvalidInputError(f"name: expected no @ with a number at the end, which names a generation, got {name!a}")
