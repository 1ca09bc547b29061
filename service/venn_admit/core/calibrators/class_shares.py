"""Class shares that are declared of traffic, if it has the classes in other shares than the calibration data."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from venn_admit.core.calibrators.certification import Certification, ClassKind, GroupKind
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class ClassShares:
    """Shares that are declared of traffic.

    Attributes:
        shares: (C,), one for each class, in the order of the classes.
        within: How much each may be off.
    """

    shares: tuple[Decimal, ...]
    within: Decimal = Decimal(0)

    @property
    def least(self) -> tuple[float, ...]:
        """(C,), the least that each may be."""
        return tuple(float(share - self.within) for share in self.shares)

    @property
    def most(self) -> tuple[float, ...]:
        """(C,), the most that each may be."""
        return tuple(float(share + self.within) for share in self.shares)


@dataclass(frozen=True, slots=True)
class EstimatedShares:
    """Shares that were estimated from traffic without labels.

    Attributes:
        shares: (C,), one for each class, in the order of the classes; they need not sum to 1.
        least: (C,), the least that each may be.
        most: (C,), the most.
        traffic: (C,), the points of traffic by predicted class.
        level: The probability that the box of these bounds does not hold the shares is this at most.
    """

    shares: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]
    traffic: tuple[int, ...]
    level: float

    @property
    def points(self) -> int:
        """The number of points of traffic."""
        return sum(self.traffic)


def check_class_shares(declared: ClassShares, class_count: int) -> None:
    """Check shares: one in (0, 1) for each of C classes, together 1, each farther than `within` from 0.

    Args:
        declared: The shares.

    Raises:
        InvalidInputError: They are none; the message says what was expected and received.
    """
    shares, within = declared.shares, declared.within
    check_share_count(shares, class_count)
    if not (within.is_finite() and 0 <= within < 1):
        raise InvalidInputError(f"class_shares_within: expected a number from 0 to below 1, got {within}")
    for number, share in enumerate(shares):
        if not (share.is_finite() and within < share < 1):
            raise InvalidInputError(
                f"class_shares: expected shares above class_shares_within = {within} and below 1, since an error among "
                f"the points of a class that may be absent counts without limit; got {share} for class {number}"
            )
    if sum(shares) != 1:
        raise InvalidInputError(f"class_shares: expected shares that sum to 1 exactly, got a sum of {sum(shares)}")


def check_share_count(shares: Sequence[Decimal], class_count: int) -> None:
    """Raise InvalidInputError unless there is one share for each of C classes.

    Args:
        shares: The shares.
    """
    if len(shares) != class_count:
        raise InvalidInputError(
            f"class_shares: expected one share for each of {class_count} classes, in their order, got {len(shares)}"
        )


def checked_class_shares(
    shares: tuple[Decimal, ...] | None,
    within: Decimal | None,
    class_count: int,
    certification: Certification | None,
    *,
    estimated: bool,
    standing: bool,
) -> ClassShares | None:
    """Return the shares that are declared for a certificate, checked; None if there are none, or they are estimated.

    Args:
        within: How much each may be off; None for 0.
        certification: None if something else is promised.

    Raises:
        InvalidInputError: They are none, `within` stands alone, or they are declared or estimated for something else
            than a certificate of predicted classes, also within groups, that is made once.
    """
    if estimated:
        for name, given in (("class_shares", shares), ("class_shares_within", within)):
            if given is not None:
                raise InvalidInputError(
                    f"{name}: the class shares of traffic are either declared or estimated; leave out either {name} or "
                    "class_shares_estimated"
                )
        _check_use("class_shares_estimated", certification, standing=standing)
    if shares is None:
        if within is None:
            return None
        raise InvalidInputError(
            f"class_shares_within: expected with class_shares, by how much they may be off, got {within} alone; "
            "declare class_shares too, or leave it out"
        )
    declared = ClassShares(shares, Decimal(0) if within is None else within)
    check_class_shares(declared, class_count)
    _check_use("class_shares", certification, standing=standing)
    return declared


def _check_use(setting: str, certification: Certification | None, *, standing: bool) -> None:
    if certification is None:
        raise InvalidInputError(
            f"{setting}: a certificate alone can be made for class shares of traffic, got another promise; certify "
            f"predicted, or leave {setting} out"
        )
    kinds = certification.kinds
    mixed = [kind for kind in kinds if isinstance(kind, GroupKind) and not kind.by_predicted]
    if ClassKind.PREDICTED not in kinds:
        raise InvalidInputError(
            f"{setting}: expected a certificate of predicted classes, got one of {', '.join(kinds)}; what is "
            f"promised of a true class holds whatever shares the classes have, so leave {setting} out"
        )
    if mixed and not any(f"predicted*{kind}" in kinds for kind in mixed):
        raise InvalidInputError(
            f"{setting}: a group's points of all classes cannot be weighed together, got {mixed[0]}; certify "
            f"predicted*{mixed[0]}, which holds for the group too"
        )
    if standing:
        raise InvalidInputError(
            f"standing: a certificate for class shares of traffic is made once; leave out either standing or {setting}"
        )
