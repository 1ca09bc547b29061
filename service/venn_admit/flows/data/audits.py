"""The rule by which points are drawn to be audited when they are decided on, which every shell obeys."""

from collections.abc import Callable, Mapping
from numbers import Real

from sqlalchemy import Connection, Engine

from venn_admit.core.audits import AuditRates
from venn_admit.errors import InvalidInputError
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.decisions import audits
from venn_admit.store.decisions.audits import AuditCount
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit_client.records.data import Audits


def show_audits(engine: Engine, name: str) -> Audits:
    """Return the rule of a classifier, and what was drawn so far. Raises NotFoundError."""
    with consistent_view(engine) as connection:
        return _shown(connection, classifiers.by_name(connection, name))


def set_audits(
    engine: Engine,
    name: str,
    *,
    rate: float | None,
    classes: Mapping[str, float] | None = None,
    rejected: float = 1.0,
    on_stored: Callable[[Connection, Audits], object] = lambda *_: None,
) -> Audits:
    """State by which rule points are drawn that are first decided on from now on, in all generations.

    A point that had its draw keeps it.

    Args:
        rate: That of admitted points, in (0, 1]; None: nothing is drawn any more.
        classes: Rates of some predicted classes, by their names.
        rejected: That of rejected points, in [0, 1].

    Raises:
        InvalidInputError: A rate is out of range, a class is unknown, or there are other rates without that of admitted
            points.
    """
    if rate is None and (classes or rejected != 1.0):
        raise InvalidInputError("rates of audits: expected that of admitted points beside others, got none; state it")
    with transaction(engine) as connection:
        # A generation that is added meanwhile takes over the newest rule.
        generations = exemplars.lock_ingestion_of_all(connection, classifiers.by_name(connection, name))
        classifier = classifiers.usable(connection, classifiers.by_name(connection, name))
        rates = None if rate is None else _rates(classifier, rate, classes or {}, rejected)
        audits.add_rule(connection, generations, rates)
        shown = _shown(connection, classifier)
        on_stored(connection, shown)
    return shown


def _rates(classifier: Classifier, rate: float, classes: Mapping[str, float], rejected: float) -> AuditRates:
    unknown = sorted(set(classes).difference(classifier.class_names))
    if unknown:
        raise InvalidInputError(
            f"rates of audits: expected names of classes of {classifier.name!r}, {', '.join(classifier.class_names)}, "
            f"got {unknown[0]!r}"
        )
    every: tuple[object, ...] = (rate, rejected, *classes.values())
    for given in every:
        if isinstance(given, bool) or not isinstance(given, Real):
            raise InvalidInputError(f"rates of audits: expected numbers, got {given!r}")
    return AuditRates(tuple(float(classes.get(one, rate)) for one in classifier.class_names), float(rejected))


def _shown(connection: Connection, classifier: Classifier) -> Audits:
    rule, counted = audits.rule_of(connection, classifier.id), audits.counts(connection, classifier)
    rates = None if rule is None else rule.rates
    admitted, rejected = (
        next((one for one in counted if one.is_admitted is outcome), AuditCount(outcome, 0, 0, 0))
        for outcome in (True, False)
    )
    return Audits(
        classifier=classifier.name,
        rule=None if rule is None else rule.id,
        since=None if rule is None else rule.created_at.isoformat(),
        rates=None if rates is None else dict(zip(classifier.class_names, rates.admitted, strict=True)),
        rejected_rate=None if rates is None else rates.rejected,
        admitted_points=admitted.points,
        admitted_drawn=admitted.drawn,
        admitted_reviewed=admitted.labelled,
        rejected_points=rejected.points,
        rejected_drawn=rejected.drawn,
        rejected_reviewed=rejected.labelled,
        labels_a_month=None if rates is None else audits.labels_a_month(connection, classifier, rates),
    )
