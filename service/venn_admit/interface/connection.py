"""A connection to a database of classifiers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from venn_admit.errors import InvalidInputError
from venn_admit.flows.calibration import generations
from venn_admit.flows.cascades import manage
from venn_admit.flows.data import catalogue, create
from venn_admit.flows.data.catalogue import every_classifier
from venn_admit.interface.advice import advising
from venn_admit.interface.arguments import checked, checking_arguments
from venn_admit.interface.cascade import Cascade
from venn_admit.interface.classifier import Classifier
from venn_admit.interface.shell import log
from venn_admit.report.wording import never_admitted_text
from venn_admit.runtime.settings import read_settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.audit import Origin
from venn_admit.store.database.driver_errors import shown_name
from venn_admit_client.given import class_names, stage_costs, whole_number
from venn_admit_client.interface import ConnectionInterface
from venn_admit_client.records.data import Deletion


@checked
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
    given = {"database_url": database_url, "home": home, "broker_url": broker_url, "memory_budget_mb": memory_budget_mb}
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


@checking_arguments
class Connection(ConnectionInterface):
    """Classifiers in one database. It is made by `connect`, and may be used by one thread at a time."""

    def __init__(self, runtime: Runtime) -> None:
        """Use a runtime that is open, and close it in the end."""
        self._runtime = runtime

    def __repr__(self) -> str:
        return f"<Connection to {shown_name(self._runtime.engine)}>"

    def close(self) -> None:
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
        create.create(
            self._runtime.engine,
            name,
            tuple(class_names(classes, InvalidInputError)),
            dimension=whole_number("dimension", dimension, InvalidInputError),
            neighbour_count=whole_number("neighbours", neighbours, InvalidInputError),
            logits_only=logits_only,
            seed=whole_number("seed", seed, InvalidInputError),
            extractor=extractor,
        )
        return self.classifier(name)

    @advising()
    def classifier(self, name: str) -> Classifier:
        return Classifier(self._runtime, catalogue.find(self._runtime.engine, name))

    @advising()
    def create_generation(self, name: str, *, dimension: int | None = None, extractor: str | None = None) -> Classifier:
        length = whole_number("dimension", dimension, InvalidInputError)
        made = generations.create_generation(
            self._runtime.engine, name, dimension=length, extractor=extractor, by=Origin.PYTHON
        )
        return Classifier(self._runtime, made)

    @advising()
    def switch(self, generation: str) -> Classifier:
        done = generations.switch(self._runtime.engine, generation, by=Origin.PYTHON)
        if done.never_admitted:
            log.warning(never_admitted_text(done.after.classifier.generation, done.never_admitted))
        return Classifier(self._runtime, done.after.classifier)

    @advising()
    def state_extractor(self, name: str, extractor: str) -> Classifier:
        stated = generations.state_extractor(self._runtime.engine, name, extractor, by=Origin.PYTHON)
        return Classifier(self._runtime, stated)

    @advising()
    def delete(self, name: str, *, dry_run: bool = False) -> Deletion:
        from venn_admit.flows.removal.delete import delete

        return delete(self._runtime, name, dry_run=dry_run, by=Origin.PYTHON)

    def classifiers(self) -> list[Classifier]:
        return [Classifier(self._runtime, found) for found in every_classifier(self._runtime.engine)]

    @advising()
    def create_cascade(self, name: str, stages: Mapping[str, float] | Sequence[str]) -> Cascade:
        costs = stage_costs(stages, InvalidInputError)
        return Cascade(self._runtime, manage.create(self._runtime.engine, name, list(costs.items())))

    @advising()
    def cascade(self, name: str) -> Cascade:
        return Cascade(self._runtime, manage.show(self._runtime.engine, name))

    @advising()
    def cascades(self) -> list[Cascade]:
        return [Cascade(self._runtime, one) for one in manage.every(self._runtime.engine)]
