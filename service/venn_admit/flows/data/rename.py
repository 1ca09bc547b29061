"""Renaming a classifier."""

from sqlalchemy import Engine

from venn_admit.errors import InvalidInputError
from venn_admit.flows.data.create import check_name
from venn_admit.flows.data.settings import Check, ClassifierSettings, OnChanged, locked_settings
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers, exemplars


def rename(
    engine: Engine, name: str, new: str, *, check: Check = lambda _: None, on_stored: OnChanged = lambda *_: None
) -> ClassifierSettings:
    """Give a classifier the name `new`; jobs, caches and decisions refer to it by its key and are not affected.

    Its generations are called by the new name too. Returns its settings as they are then.

    Args:
        name: Its name.
        new: The new one.
        check: Is given the settings as they are when nobody else can change them.
        on_stored: Is called with the settings in the transaction that renames.

    Raises:
        NotFoundError: No classifier is called `name`.
        InvalidInputError: `new` is not a valid name, or `name` is that of a generation that is not current.
        ConflictError: Another classifier is called `new`.
    """
    check_name(new)
    with transaction(engine) as connection:
        exemplars.lock_ingestion_of_all(connection, classifiers.by_name(connection, name))
        found = locked_settings(connection, name)
        check(found)
        if not found.classifier.is_current:
            raise InvalidInputError(
                f"expected the name of a classifier, got that of a generation, {name!r}; rename "
                f"{found.classifier.shared_name!r}, and its generations are called by the new name too"
            )
        classifiers.rename(connection, found.classifier, new)
        renamed = locked_settings(connection, new)
        on_stored(connection, renamed)
    return renamed
