"""Renaming a classifier."""

from sqlalchemy import Engine

from venn_admit.service.flows.exemplars.create import check_name
from venn_admit.service.flows.exemplars.settings import Check, locked_settings
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars import classifiers


def rename(engine: Engine, name: str, new: str, *, check: Check = lambda _: None) -> None:
    """Give a classifier the name `new`; jobs, caches and decisions refer to it by its key and are not affected.

    Args:
        engine: The database.
        name: Its name.
        new: The new one.
        check: Is given the settings as they are when nobody else can change them.

    Raises:
        NotFoundError: No classifier is called `name`.
        InvalidInputError: `new` is not a valid name.
        ConflictError: Another classifier is called `new`.
    """
    check_name(new)
    with transaction(engine) as connection:
        found = locked_settings(connection, name)
        check(found)
        classifiers.rename(connection, found.classifier, new)
