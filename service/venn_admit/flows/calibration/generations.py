"""Generations of a classifier: a new one for a new extractor, calibrated beside the current one, then switched to."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from venn_admit.errors import Code, ConflictError, InvalidInputError, NotReadyError
from venn_admit.flows.calibration.approximate import require_support
from venn_admit.flows.data.catalogue import Listed, listed
from venn_admit.flows.data.create import check_dimension, check_extractor
from venn_admit.flows.keys.keys import Asker, note
from venn_admit.store.access import keys
from venn_admit.store.access.audit import Origin
from venn_admit.store.calibrations import calibrations, calibrators
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.decisions import audits
from venn_admit.store.exemplars import classifiers, exemplars, generations
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class Switch:
    """What a classifier's name stood for, and stands for from now on, each named as it is from now on.

    is_made: whether it was done, rather than only looked at. Nothing changes if both are the same generation.
    """

    before: Listed
    after: Listed
    is_made: bool

    @property
    def changes(self) -> bool:
        """Whether the name stands for another generation than before."""
        return self.before.classifier.id != self.after.classifier.id

    @property
    def never_admitted(self) -> tuple[str, ...]:
        """The predicted classes of which nothing is admitted from now on."""
        in_use = self.after.in_use
        if in_use is None:
            return ()
        classes = zip(self.after.classifier.class_names, in_use.thresholds, strict=True)
        return tuple(name for name, least in classes if least is None)


def create_generation(
    engine: Engine,
    name: str,
    *,
    dimension: int | None = None,
    extractor: str | None = None,
    by: Asker = Origin.COMMAND_LINE,
    on_stored: Callable[[Connection, Classifier], object] = lambda *_: None,
) -> Classifier:
    """Add a generation to a classifier, for the exemplars of another extractor; it is not current.

    It has the classes, K, split shares and seed of the others, so that the same documents fall in the same splits.

    Args:
        dimension: D; None for that of the current generation.
        extractor: The version of what its vectors will come from; None: that which the first data state, if any.

    Raises:
        InvalidInputError: A value is out of range, or D is given for a classifier with logits only.
        ConflictError: Another classifier has the name that the generation would have.
    """
    with transaction(engine) as connection:
        named = classifiers.by_name(connection, name)
        # Labels reach all generations that there are, so that none appears while they are recorded.
        locked = exemplars.lock_ingestion_of_all(connection, named)
        classifiers.lock(connection, locked[0])
        current = _current(connection, locked[0])
        classifiers.require_usable(current)
        if current.knn is None:
            if dimension is not None:
                raise InvalidInputError(
                    f"expected no length of vectors of a classifier with logits only, got {dimension}: leave it out"
                )
        else:
            dimension = current.knn.dimension if dimension is None else dimension
            check_dimension(dimension)
        if extractor is not None:
            check_extractor(extractor)
        made = generations.add_generation(connection, current, dimension=dimension, extractor=extractor)
        audits.carry_rule(connection, current.id, made.id)
        note(connection, "create_generation", made.address, by)
        on_stored(connection, made)
    return made


def list_generations(engine: Engine, name: str) -> list[Listed]:
    """Return all generations of a classifier, in the order of their numbers. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return listed(connection, generations.of_same(connection, classifiers.by_name(connection, name)))


def switch(
    engine: Engine,
    address: str,
    *,
    dry_run: bool = False,
    by: Asker = Origin.COMMAND_LINE,
    on_stored: Callable[[Connection, Switch], object] = lambda *_: None,
) -> Switch:
    """Have a classifier's name stand for another of its generations, from one moment to the next.

    Whatever looked the name up before goes on with the generation that it found. Keys for the classifier are for it as
    before.

    Args:
        address: The generation, such as `reviews@2`.

    Raises:
        InvalidInputError: The name of the classifier is given, which says no generation.
        NotReadyError: The generation has no calibration, or one by which everything would be rejected.
    """
    with transaction(engine) as connection:
        named = classifiers.by_name(connection, address)
        if address == named.name == named.shared_name:
            raise InvalidInputError(
                f"expected a generation, such as {named.address!r}, got {address!r}, which stands for it already"
            )
        if not dry_run:
            exemplars.lock_ingestion_of_all(connection, named)
            named = classifiers.usable(connection, named)
        classifiers.lock(connection, named)
        after = classifiers.usable(connection, named)
        before = _current(connection, after)
        _require_usable(connection, after)
        if not dry_run and before.id != after.id:
            generations.make_current(connection, before, after)
            keys.move(connection, before, after)
            note(connection, "switch_generation", after.address, by)
        ids = before.id, after.id
        was, now = listed(connection, [classifiers.by_id(connection, one) for one in ids])
        switched = Switch(was, now, is_made=not dry_run)
        on_stored(connection, switched)
    return switched


def state_extractor(
    engine: Engine,
    name: str,
    extractor: str,
    *,
    by: Asker = Origin.COMMAND_LINE,
    on_stored: Callable[[Connection, Classifier], object] = lambda *_: None,
) -> Classifier:
    """State which extractor the exemplars of a generation come from; once it has some, this cannot be changed.

    Raises:
        InvalidInputError: It is not a valid version.
        ConflictError: The generation has exemplars, and has stated another one.
    """
    check_extractor(extractor)
    with transaction(engine) as connection:
        found = classifiers.by_name(connection, name)
        exemplars.lock_ingestion(connection, found)
        classifiers.lock(connection, found)
        found = classifiers.by_id(connection, found.id)
        if found.extractor not in (None, extractor) and any(exemplars.split_counts(connection, found).values()):
            raise ConflictError(
                f"the exemplars of {found.name!r} come from extractor {found.extractor!r}, and cannot come from "
                f"{extractor!r} too; add a generation for it",
                code=Code.EXTRACTOR_DIFFERS,
                classifier=found.shared_name,
            )
        if found.extractor != extractor:
            classifiers.set_extractor(connection, found, extractor)
            note(connection, "state_extractor", found.address, by)
        stated = classifiers.by_id(connection, found.id)
        on_stored(connection, stated)
    return stated


def _current(connection: Connection, classifier: Classifier) -> Classifier:
    left = classifiers.left_of(connection, classifier, {classifier.id})
    (current,) = (one for one in generations.of_same(connection, left) if one.is_current)
    return current


def _require_usable(connection: Connection, generation: Classifier) -> None:
    """Raise NotReadyError unless a generation admits predictions."""
    calibrations.latest(connection, generation)
    in_use = calibrators.of_classifier(connection, generation)[0]
    if all(least is None for least in in_use.thresholds):
        raise NotReadyError(
            f"calibration {in_use.calibration_id} of {generation.name!r} admits no class at any score, so the "
            "generation would reject everything; label more, or calibrate it without a certificate"
        )
    if generation.knn is not None:
        require_support(connection, generation)
