"""Renaming a classifier."""

from sqlalchemy import Engine

from venn_admit.service.flows.exemplars.create import check_name
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars import classifiers


def rename(engine: Engine, name: str, new: str) -> None:
    """Give a classifier the name `new`; jobs, caches and decisions refer to it by its key and are not affected.

    Raises:
        NotFoundError: No classifier is called `name`.
        InvalidInputError: `new` is not a valid name.
        ConflictError: Another classifier is called `new`.
    """
    check_name(new)
    with transaction(engine) as connection:
        classifiers.rename(connection, classifiers.by_name(connection, name), new)
