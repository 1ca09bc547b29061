"""A connection to a database of classifiers."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from venn_admit.flows.calibration import generations
from venn_admit.flows.data import catalogue, create
from venn_admit.flows.data.catalogue import every_classifier
from venn_admit.interface.advice import advising
from venn_admit.interface.classifier import Classifier
from venn_admit.records import Deletion
from venn_admit.runtime.settings import read_settings
from venn_admit.runtime.workspace import Runtime


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
        NotReadyError: The schema is missing or out of date, or torch does not compute on the device that
            `VENN_ADMIT_DEVICE` names.
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
            runtime.check_device()
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
        extractor: str | None = None,
    ) -> Classifier:
        """Register a classifier.

        Args:
            name: 1 to 100 printable characters.
            classes: The names of the C >= 2 classes, in the order of the logits.
            dimension: D, the length of a vector, 1 to 16,000; required unless there are logits only.
            neighbours: K, the nearest training exemplars that a decision looks at; 25 by default.
            logits_only: Whether there are no vectors: nothing is fitted then, and decisions are plain ones by the
                method venn-abers with the network's score.
            seed: The seed of the division of held-out data, and of training.
            extractor: The version of what its vectors come from; by default the one that the first data state.

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
            extractor=extractor,
        )
        return self.classifier(name)

    @advising()
    def classifier(self, name: str) -> Classifier:
        """Return a classifier that is stored; by NAME@NUMBER, one of its generations, otherwise the current one.

        Raises:
            NotFoundError: There is none of this name.
        """
        return Classifier(self._runtime, catalogue.find(self._runtime.engine, name))

    @advising()
    def create_generation(self, name: str, *, dimension: int | None = None, extractor: str | None = None) -> Classifier:
        """Add a generation to a classifier, for the vectors of another extractor; the current one stays in use.

        It has the classes, K and seed of the others, so that the same documents fall in the same splits. Ingest its
        exemplars, fit and calibrate it; then `switch` to it.

        Args:
            name: The classifier's name.
            dimension: D, the length of a vector; by default that of the current generation.
            extractor: The version of what its vectors come from; by default the one that the first data state.

        Returns:
            The generation.

        Raises:
            InvalidInputError: A value is out of range.
            NotFoundError: There is no classifier of this name.
            ConflictError: Another classifier has the name that the generation would have.
        """
        made = generations.create_generation(self._runtime.engine, name, dimension=dimension, extractor=extractor)
        return Classifier(self._runtime, made)

    @advising()
    def switch(self, generation: str) -> Classifier:
        """Have a classifier's name stand for another of its generations from now on; switching back is the same.

        Args:
            generation: NAME@NUMBER.

        Returns:
            The generation, which is current.

        Raises:
            InvalidInputError: It says no generation.
            NotFoundError: There is no such generation.
            NotReadyError: The generation has no calibration, or one by which everything would be rejected.
        """
        done = generations.switch(self._runtime.engine, generation)
        return Classifier(self._runtime, done.after.classifier)

    @advising()
    def state_extractor(self, name: str, extractor: str) -> Classifier:
        """State which extractor the vectors come from, or correct that while no exemplars are stored.

        Args:
            name: The classifier's name, or NAME@NUMBER.
            extractor: The version.

        Raises:
            InvalidInputError: It is not a valid version.
            NotFoundError: There is no such classifier.
            ConflictError: There are exemplars, and another one was stated for them.
        """
        return Classifier(self._runtime, generations.state_extractor(self._runtime.engine, name, extractor))

    @advising()
    def delete(self, name: str, *, dry_run: bool = False) -> Deletion:
        """Delete a classifier with all that belongs to it, or a generation of it that is not current, for good.

        From its first moment on the classifier cannot be used. After an interruption, call it again.

        Args:
            name: The classifier's name, for all its generations; or NAME@NUMBER, for that one.
            dry_run: Whether to count only what would be deleted.

        Raises:
            NotFoundError: There is no such classifier.
            ConflictError: The generation is current, or jobs are running.
        """
        from venn_admit.flows.removal.delete import delete

        return delete(self._runtime, name, dry_run=dry_run)

    def classifiers(self) -> list[Classifier]:
        """Return all classifiers and all their generations, by name."""
        return [Classifier(self._runtime, found) for found in every_classifier(self._runtime.engine)]
