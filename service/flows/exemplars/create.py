"""Registering a classifier."""

from decimal import Decimal

from sqlalchemy import Engine

from venn_admit.service.core.splits import DEFAULT_KNN_SHARE, DEFAULT_MC_SHARE, LOGITS_ONLY_MC_SHARE
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars import classifiers
from venn_admit.service.store.exemplars.classifiers import Classifier

LONGEST_VECTOR = 16_000  # pgvector's own limit
MOST_NEIGHBOURS = 10_000  # stored for every exemplar
DEFAULT_NEIGHBOURS = 25
_NAME_LENGTH = 100


def create(
    engine: Engine,
    name: str,
    class_names: tuple[str, ...],
    *,
    seed: int,
    dimension: int | None = None,
    neighbour_count: int | None = None,
    logits_only: bool = False,
    knn_share: Decimal = DEFAULT_KNN_SHARE,
    mc_share: Decimal = DEFAULT_MC_SHARE,
) -> Classifier:
    """Register a classifier.

    Args:
        engine: The database.
        name: Its name.
        class_names: Of its C classes, in the order of the logits.
        seed: Of the split hash and of training.
        dimension: D, unless it has logits only.
        neighbour_count: K; None for the default.
        logits_only: Whether it has no vectors. Nothing is fitted then, so that held-out data are mc and vp, half each.
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


def _check_knn(dimension: int | None, neighbour_count: int) -> None:
    if dimension is None:
        raise InvalidInputError("expected the length of the vectors, or a classifier with logits only, got neither")
    if not 1 <= dimension <= LONGEST_VECTOR:
        raise InvalidInputError(f"dim: expected 1 to {LONGEST_VECTOR}, pgvector's limit, got {dimension}")
    if not 1 <= neighbour_count <= MOST_NEIGHBOURS:
        raise InvalidInputError(f"k: expected 1 to {MOST_NEIGHBOURS} neighbours, got {neighbour_count}")


def check_name(name: str) -> None:
    """Raise InvalidInputError unless a classifier may have this name."""
    if not 1 <= len(name) <= _NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise InvalidInputError(f"name: expected 1 to {_NAME_LENGTH} printable characters, got {name!a}")
