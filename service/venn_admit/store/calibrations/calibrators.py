"""Calibrators as their users know them: numbered settings, each kept current until it is retired."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, column, table
from sqlalchemy.dialects.postgresql import insert

from venn_admit.core.calibrators.certification import Kind, parse_kind
from venn_admit.core.calibrators.promises import AskedPromise, Promised
from venn_admit.core.calibrators.settings import MethodSettings, VennAbersSettings
from venn_admit.errors import Code, NotFoundError
from venn_admit.store.calibrations.settings_rows import setting_columns, settings_digest, settings_of
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier

if TYPE_CHECKING:
    from venn_admit.core.calibrators.certified.certificate import Certificate, LaterChain


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A setting with its current snapshot, or with its newest if it was never put in use.

    is_in_use: whether new decisions are made under it. has_current: whether it was ever put in use, since when it is
    kept current. retired_at: None as long as it is. due_for: what
    changed since the snapshot, such as labels; None if nothing did. due_error: why it could not be recalibrated.
    certified: the kinds of classes that a policy is certified for; None if none passed, or none was asked for. policy:
    the thresholds of the policy, certified or of the average promise, None for never; None if there is none. standing:
    the certificate, if it stands while labels arrive. chain_has_ended: whether the score of new points is another than
    that which the thresholds of its chain are on. later: the chain of the setting that was begun since.
    """

    id: int
    settings: MethodSettings
    is_in_use: bool
    retired_at: datetime | None
    calibration_id: int
    calibrated_at: datetime
    mc_count: int
    vp_count: int
    due_for: str | None
    due_error: str | None
    has_current: bool = True
    certified: tuple[Kind, ...] | None = None
    policy: tuple[float | None, ...] | None = None
    standing: "Certificate | None" = None
    chain_has_ended: bool = False
    later: "LaterChain | None" = None

    @property
    def state(self) -> str:
        """Whether it is in use, in words."""
        if self.is_in_use:
            return "in use"
        if not self.has_current:
            return "not in use"
        return "kept current" if self.retired_at is None else "retired"

    @property
    def is_certified(self) -> bool | None:
        """Whether a policy passed; None if no certificate was asked for."""
        return None if self.settings.certify is None else self.certified is not None

    @property
    def promised(self) -> Promised:
        """What the snapshot promises of what it decides now."""
        settings = self.settings
        if not isinstance(settings, VennAbersSettings) or not settings.has_policy:
            return Promised.POINTWISE
        if self.policy is None or self.chain_has_ended:
            return Promised.NONE
        return settings.promised(self.certified, AskedPromise.AVERAGE)

    @property
    def thresholds(self) -> tuple[Decimal | None, ...]:
        """(C,) the least value at which each predicted class is admitted, the policy's if there is one; None: never."""
        if not self.settings.has_policy:
            return self.settings.thresholds
        policy = (None,) * len(self.settings.thresholds) if self.policy is None else self.policy
        return tuple(None if one is None else Decimal(repr(one)) for one in policy)


def of_classifier(connection: Connection, classifier: Classifier) -> list[Calibrator]:
    """Return all settings of a classifier, the one in use first, then the most recently chosen."""
    rows = execute(connection, "calibrators.calibrators", classifier_id=classifier.id)
    return [
        Calibrator(
            **{
                **row._mapping,
                "settings": settings_of(row.settings),
                "certified": None if row.certified is None else tuple(map(parse_kind, row.certified)),
                "policy": None if row.policy is None else tuple(row.policy),
                "standing": None if row.standing is None else _certificate(row.standing),
                **({} if row.standing is None else _of_chain(connection, classifier, row)),
            }
        )
        for row in rows
    ]


def _certificate(document: dict[str, Any]) -> "Certificate":
    from venn_admit.core.calibrators.certified.document import from_document  # which brings NumPy

    return from_document(document)


def _of_chain(connection: Connection, classifier: Classifier, row: Row[Any]) -> dict[str, Any]:
    from venn_admit.store.calibrations import chains  # which brings NumPy

    chain = chains.of_snapshot(connection, row.id, row.calibration_id)
    return {
        "chain_has_ended": chains.has_ended(connection, classifier, chain),
        "later": chains.later(connection, classifier, chain),
    }


def by_id(connection: Connection, classifier: Classifier, calibrator_id: int) -> Calibrator:
    """Return a setting of a classifier; NotFoundError, which names the known ones, if it does not exist."""
    found = of_classifier(connection, classifier)
    for one in found:
        if one.id == calibrator_id:
            return one
    known = ", ".join(map(str, sorted(one.id for one in found))) or "none yet; calibrate it first"
    raise NotFoundError(
        f"classifier {classifier.name!r} has no setting {calibrator_id}; known: {known}",
        code=Code.UNKNOWN_SETTING if found else Code.NO_SETTING,
        classifier=classifier.name,
        setting=calibrator_id,
    )


def add(connection: Connection, classifier: Classifier, settings: MethodSettings) -> int:
    """Return the key of the calibrator with these settings, which is added if it is new."""
    # The columns follow from the settings that are declared, so this statement is put together from them.
    values = {"classifier_id": classifier.id, **setting_columns(settings)}
    calibrator = table("calibrator", column("id"), column("last_number"), *map(column, values), schema=SCHEMA)
    added = (
        insert(calibrator)
        .values(values)
        .on_conflict_do_update(
            index_elements=["classifier_id", "settings_digest"],
            set_={"last_number": calibrator.c.last_number},  # the row is returned only if it is written
        )
    )
    calibrator_id: int = connection.execute(added.returning(calibrator.c.id)).scalar_one()
    return calibrator_id


def choose(connection: Connection, calibrator_id: int) -> None:
    """Let decisions be made under a calibrator that has a current snapshot from now on, and keep it current."""
    execute(connection, "calibrators.choose", calibrator_id=calibrator_id)


def lock(connection: Connection, classifier: Classifier, settings: MethodSettings) -> None:
    """Wait until nobody else calibrates under these settings; the lock is held to the end of the transaction."""
    execute(connection, "calibrators.lock", lock_key=_lock_key(classifier, settings))


def try_lock(connection: Connection, classifier: Classifier, settings: MethodSettings) -> bool:
    """Take the same lock without waiting; return False if somebody else holds it."""
    parameters = {"lock_key": _lock_key(classifier, settings)}
    return bool(execute(connection, "calibrators.try_lock", **parameters).scalar_one())


def _lock_key(classifier: Classifier, settings: MethodSettings) -> int:
    """The key of the lock, 32 bits, from the settings, as the calibrator may not exist yet. Two may share a key."""
    identity = classifier.id.to_bytes(4, "big") + settings_digest(settings)
    return int.from_bytes(blake2b(identity, digest_size=4).digest(), "big", signed=True)


def retire(connection: Connection, calibrator_id: int) -> None:
    """Stop keeping a setting current, and drop its request for recalibration."""
    parameters = {"calibrator_id": calibrator_id}
    execute(connection, "calibrators.retire_calibrator", **parameters)
    execute(connection, "calibrators.drop_request", **parameters)
