"""What a certificate is asked for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

from venn_admit.core.names import is_group_attribute
from venn_admit.errors import InvalidInputError

DEFAULT_CONFIDENCE = Decimal("0.95")


class ClassKind(StrEnum):
    """The classes among whose admitted points a share is promised."""

    PREDICTED = "predicted"
    TRUE = "true"


OneClass: TypeAlias = tuple[ClassKind, int]
"""A class by its kind and its number."""


class GroupKind(str):
    """The groups of points that have one value of an attribute, or such groups within each predicted class.

    It is written `group:COLUMN` or `predicted*group:COLUMN`.
    """

    __slots__ = ()

    @property
    def attribute(self) -> str:
        """The name of the attribute."""
        return self.partition(":")[2]

    @property
    def by_predicted(self) -> bool:
        """Whether the points of a predicted class within a group count by themselves."""
        return self.startswith(_WITHIN)


Kind: TypeAlias = ClassKind | GroupKind
"""What is promised something: the classes of a kind, where the groups of an attribute count as classes."""

_GROUP, _WITHIN = "group:", "predicted*group:"
KIND_FORMS = (*ClassKind, f"{_GROUP}COLUMN", f"{_WITHIN}COLUMN")
"""How kinds are written."""
MOST_KINDS = 20


def parse_kind(text: str) -> Kind:
    """Return the kind that a text stands for.

    Raises:
        ValueError: It stands for none.

    Examples:
        >>> parse_kind("predicted*group:region").attribute
        'region'
    """
    for prefix in (_GROUP, _WITHIN):
        if text.startswith(prefix) and is_group_attribute(text.removeprefix(prefix)):
            return GroupKind(text)
    return ClassKind(text)


@dataclass(frozen=True, slots=True)
class PromisedClass:
    """A class of a kind: what a promise, its test and its lamp are about.

    Attributes:
        number: The number of the predicted or true class; None for a group of all classes.
        value: The attribute's value that its group has; None if the kind is not of groups.
    """

    kind: Kind
    number: int | None
    value: str | None


def class_document(of: PromisedClass) -> dict[str, Any]:
    """Return a class as JSON holds it; without a group if its kind has none.

    Args:
        of: The class.

    Examples:
        >>> class_document(PromisedClass(GroupKind("group:region"), None, "north"))
        {'kind': 'group:region', 'class': None, 'group': 'north'}
    """
    return {"kind": str(of.kind), "class": of.number, **({} if of.value is None else {"group": of.value})}


def class_from_document(document: Mapping[str, Any]) -> PromisedClass:
    """Return the class in a document that `class_document` made, among other things; ValueError if it is of no kind."""
    return PromisedClass(parse_kind(document["kind"]), document["class"], document.get("group"))


def attributes_of(kinds: Sequence[Kind]) -> tuple[str, ...]:
    """Return the attributes whose groups are asked for, each once, in the order of their names."""
    return tuple(sorted({kind.attribute for kind in kinds if isinstance(kind, GroupKind)}))


def part_kind(kinds: Sequence[Kind]) -> Kind | None:
    """Return the kind whose classes are disjoint and imply all that is asked, so that each may have a chain of its own.

    A promise for each predicted class within each group holds for their sums too: for predicted classes and for groups.

    Returns:
        None if what is asked for is coupled, as by true classes or by several attributes.

    Examples:
        >>> part_kind(make_certification(["predicted", "predicted*group:region"]).kinds)
        'predicted*group:region'
        >>> part_kind(make_certification(["predicted", "group:region"]).kinds) is None
        True
    """
    *others, finest = kinds
    implied: set[Kind] = set()
    if isinstance(finest, GroupKind) and finest.by_predicted:
        implied = {ClassKind.PREDICTED, GroupKind(f"{_GROUP}{finest.attribute}")}
    return finest if finest is not ClassKind.TRUE and set(others) <= implied else None


class DocumentTest(StrEnum):
    """How documents of several points are tested."""

    FINITE_SAMPLE = "finite-sample"
    ASYMPTOTIC = "asymptotic"

    @property
    def of_confidence(self) -> str:
        """What is said of a confidence that rests on it, to be put before the word."""
        return "asymptotic " if self is DocumentTest.ASYMPTOTIC else ""


@dataclass(frozen=True, slots=True)
class Certification:
    """What a certificate is asked for, besides the error level.

    Attributes:
        kinds: The kinds of classes for which the promise shall hold, each once: in the order of `ClassKind`, then
            groups, then groups within predicted classes, by attribute.
        test: How documents of several points are tested.
    """

    kinds: tuple[Kind, ...]
    confidence: Decimal = DEFAULT_CONFIDENCE
    test: DocumentTest = DocumentTest.FINITE_SAMPLE


def make_certification(
    kinds: Collection[str],
    confidence: Decimal = DEFAULT_CONFIDENCE,
    test: DocumentTest | str = DocumentTest.FINITE_SAMPLE,
) -> Certification:
    """Return what is asked for, checked.

    What is promised for predicted classes within groups holds for their sums, so predicted classes are promised it too.

    Args:
        kinds: Any of `predicted`, `true`, `group:COLUMN` and `predicted*group:COLUMN`, in any order.
        test: `finite-sample` or `asymptotic`.

    Raises:
        InvalidInputError: There is no such kind or test, no kind is given, or the confidence is out of range.

    Examples:
        >>> [str(kind) for kind in make_certification(["true", "predicted"]).kinds]
        ['predicted', 'true']
    """
    known, unknown = set[Kind](), []
    for kind in kinds:
        try:
            known.add(parse_kind(kind))
        except ValueError:
            unknown.append(str(kind))
    if unknown or not 1 <= len(known) <= MOST_KINDS:
        raise InvalidInputError(
            f"a certificate is for {' or '.join(ClassKind)} classes, for groups, or for several of these: expected 1 "
            f"to {MOST_KINDS} of {', '.join(KIND_FORMS)}; got {', '.join(unknown) or len(known) or 'neither'}"
        )
    if any(isinstance(kind, GroupKind) and kind.by_predicted for kind in known):
        known.add(ClassKind.PREDICTED)
    if not (confidence.is_finite() and 0 < confidence < 1):
        raise InvalidInputError(f"confidence must lie strictly between 0 and 1, got {confidence}; 0.95 is usual")
    if test not in tuple(DocumentTest):
        raise InvalidInputError(f"documents are tested by {' or '.join(DocumentTest)}; got {test}")
    return Certification(tuple(sorted(known, key=kind_place)), confidence, DocumentTest(test))


def kind_place(kind: Kind) -> tuple[int, str]:
    """Return what kinds are sorted by.

    Args:
        kind: A kind, which stands after those that come before it in `Certification`.
    """
    if isinstance(kind, GroupKind):
        return len(ClassKind) + kind.by_predicted, kind.attribute
    return list(ClassKind).index(kind), ""
