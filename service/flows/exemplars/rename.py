"""Another name for a classifier."""

from sqlalchemy import Engine

from venn_admit.service.flows.exemplars.create import check_name
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars import classifiers


def rename(engine: Engine, name: str, new: str) -> None:
    """Call a classifier `new` from now on; jobs, caches and decisions refer to it by its key and go on.

    Raises NotFoundError for a name that is not stored, InvalidInputError for one that nobody may have, ConflictError
    for one that another classifier has.
    """
    check_name(new)
    with transaction(engine) as connection:
        classifiers.rename(connection, classifiers.by_name(connection, name), new)
