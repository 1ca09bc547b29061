"""A connection to a database of classifiers."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from venn_admit.advice import advising
from venn_admit.classifier import Classifier
from venn_admit.service.flows.exemplars import catalogue, create
from venn_admit.service.runtime import Runtime
from venn_admit.service.settings import read_settings


def connect(
    database_url: str | None = None,
    *,
    home: str | Path | None = None,
    broker_url: str | None = None,
    memory_budget_mb: int | None = None,
    migrate: bool | None = None,
) -> "Connection":
    """Connect to a database, and see that it has the schema that this version needs.

    What is not given is taken from the environment, as the command line does: `VENN_ADMIT_DATABASE_URL` and so on.

    Args:
        database_url: `postgresql://user:password@host:port/database`, Postgres 15 or newer with pgvector. If neither
            this nor the environment names one, the Postgres that comes with the package is started, or used if it runs
            already; it ends with the last process that uses it.
        home: Folder of that Postgres, of caches and of logs.
        broker_url: Where workers take their messages; only of use if there are workers.
        memory_budget_mb: MiB that one computation may take.
        migrate: Whether to bring the schema up to date; by default only that of the Postgres that comes with the
            package.

    Returns:
        The connection. Use it in a `with` statement, or close it.

    Raises:
        InvalidInputError: A value is not one that its setting accepts.
        DatabaseError: The server cannot be reached or started, or is too old.
        NotReadyError: The schema is missing or out of date.
    """
    given = {
        "database_url": database_url,
        "home": home,
        "broker_url": broker_url,
        "memory_budget_mb": memory_budget_mb,
    }
    settings = read_settings(**{name: value for name, value in given.items() if value is not None})
    runtime = Runtime.start(settings, application_name="venn-admit Python")
    try:
        with advising():
            runtime.open_schema(migrate=migrate)
    except BaseException:
        runtime.engine.dispose()
        raise
    return Connection(runtime)


class Connection:
    """Classifiers in one database. It is made by `connect`, and may be used by one thread at a time."""

    def __init__(self, runtime: Runtime) -> None:
        """Use a runtime that is open, and close it in the end."""
        self._runtime = runtime

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the database; what is stored stays."""
        self._runtime.engine.dispose()

    @advising()
    def create(
        self,
        name: str,
        classes: Sequence[str],
        *,
        dimension: int | None = None,
        neighbours: int | None = None,
        logits_only: bool = False,
        seed: int = 0,
    ) -> Classifier:
        """Register a classifier.

        Args:
            name: 1 to 100 printable characters.
            classes: The names of the C >= 2 classes, in the order of the logits.
            dimension: D, the length of a vector, 1 to 16,000; required unless there are logits only.
            neighbours: K, the nearest training exemplars that a decision looks at; 25 by default.
            logits_only: Whether there are no vectors: nothing is fitted then, and decisions are plain ones by the
                method venn-abers with the network's score.
            seed: Of the division of held-out data, and of training.

        Raises:
            InvalidInputError: A value is out of range.
            ConflictError: There is a classifier of this name.
        """
        create.create(
            self._runtime.engine,
            name,
            tuple(classes),
            dimension=dimension,
            neighbour_count=neighbours,
            logits_only=logits_only,
            seed=seed,
        )
        return self.classifier(name)

    @advising()
    def classifier(self, name: str) -> Classifier:
        """Return a classifier that is stored.

        Raises:
            NotFoundError: There is none of this name.
        """
        return Classifier(self._runtime, catalogue.find(self._runtime.engine, name))

    def classifiers(self) -> list[Classifier]:
        """Return all classifiers, by name."""
        return [
            Classifier(self._runtime, listed.classifier) for listed in catalogue.list_classifiers(self._runtime.engine)
        ]
