"""The fields of a decision: names, types and words, for all modules that store, write or show decisions."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from venn_admit.core.method_names import VENN_ABERS, VENN_ADMIT
from venn_admit.core.reasons import Reason


class Kind(Enum):
    """What a field holds, of one point."""

    INTEGER = auto()
    CLASS = auto()  # the number of a class
    REAL = auto()  # float64, finite
    UNBOUNDED = auto()  # float64, maybe infinite
    REASON = auto()
    # One for each class.
    INTEGERS = auto()
    UNBOUNDEDS = auto()
    BITS = auto()

    @property
    def is_per_class(self) -> bool:
        """Whether a field holds a value for each class."""
        return self in (Kind.INTEGERS, Kind.UNBOUNDEDS, Kind.BITS)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a decision.

    Attributes:
        name: Its column in the database, its key in JSON, and its array in what decides.
        words: What tables for people call it.
        meaning: What it is, for the reference of tables and that of the HTTP service.
        example: A value, for the latter.
        nullable: Whether it may be null. It is if it is younger than the method: the decisions from before lack it.
        out: Its column in what `score` writes; None if it has none.
        absent: What tables for people show in place of null; None: they leave it out.
    """

    name: str
    kind: Kind
    words: str
    meaning: str
    example: Any
    nullable: bool = False
    out: str | None = None
    absent: str | None = None


@dataclass(frozen=True, slots=True)
class MethodEvidence:
    """What the decisions of one method rest on, besides what every decision has.

    Attributes:
        table: Where it is kept, by decision.
        fields: The first is never null.
    """

    method: str
    table: str
    fields: tuple[Field, ...]


NOT_COMPUTED = "not computed"

PREDICTION = (
    Field(
        "predicted",
        Kind.CLASS,
        "predicted class",
        f"Prediction that was decided on: the KNN's for {VENN_ADMIT}, the network's for {VENN_ABERS}.",
        1,
        out="predicted",
    ),
)
VIEW = (
    Field(
        "match_count",
        Kind.INTEGER,
        "q, matching neighbours",
        "q, number of consecutive nearest neighbours that match the prediction; null without vectors.",
        25,
        nullable=True,
        out="q",
    ),
    Field(
        "distance",
        Kind.REAL,
        "d, distance to training",
        "d, distance to the nearest training exemplar; null without vectors.",
        3.25,
        nullable=True,
        out="d",
    ),
    Field(
        "logits",
        Kind.UNBOUNDEDS,
        "KNN logit",
        "KNN(x), one per class; null without vectors.",
        [-2.5, 2.5],
        nullable=True,
        out="logits",
    ),
)
"""What a decision has of the KNN."""

VERDICT = (
    Field(
        "upweight",
        Kind.UNBOUNDED,
        "up-weight, w",
        "w; infinite if psi' = 0; null if the set is not a singleton.",
        0.125,
        nullable=True,
        out="upweight",
        absent=NOT_COMPUTED,
    ),
    Field(
        "lower",
        Kind.REAL,
        "lower probability",
        "Lower probability of the prediction; null if the set is not a singleton.",
        0.93,
        nullable=True,
        out="lower",
        absent=NOT_COMPUTED,
    ),
    Field(
        "upper",
        Kind.REAL,
        "upper probability",
        "Upper probability of the prediction; null if the set is not a singleton.",
        0.95,
        nullable=True,
        out="upper",
        absent=NOT_COMPUTED,
    ),
    Field(
        "decision",
        Kind.CLASS,
        "decision",
        "Admitted class; null if rejected.",
        1,
        nullable=True,
        out="decision",
        absent="none (rejected)",
    ),
    Field(
        "reason",
        Kind.REASON,
        "reason of rejection",
        "Why it was rejected; null if admitted.",
        None,
        nullable=True,
        out="reason",
    ),
)
SHARED = (*PREDICTION, *VIEW, *VERDICT)
"""What every decision has."""

ADMIT = MethodEvidence(
    VENN_ADMIT,
    "admit_evidence",
    (
        Field("admit_set", Kind.BITS, "in set", "ADMIT set, one bit per class.", "01", out="set"),
        Field(
            "band_size",
            Kind.INTEGERS,
            "points in band",
            "n_c, number of points of each class in the band, in mc.",
            [1200, 1500],
            out="band_size",
        ),
        Field(
            "threshold",
            Kind.UNBOUNDEDS,
            "threshold",
            "tau_c of each class; may be -infinity.",
            [0.5, 0.75],
            out="threshold",
        ),
        Field(
            "category_size",
            Kind.INTEGER,
            "category size, |T|",
            "|T|, in vp; 0 if the set is not a singleton.",
            900,
            out="category_size",
        ),
    ),
)
ABERS = MethodEvidence(
    VENN_ABERS,
    "abers_evidence",
    (
        Field("score", Kind.UNBOUNDED, "score, s", "s, the score of the prediction.", 2.5, out="score"),
        Field(
            "step_score",
            Kind.UNBOUNDED,
            "step of the score, from",
            "Score from which the plain step of its cell holds; -infinity for the first, and in an empty cell.",
            2.25,
        ),
    ),
)
EVIDENCE = {evidence.method: evidence for evidence in (ADMIT, ABERS)}
UNBOUNDED = frozenset(
    field.name for field in (*SHARED, *ADMIT.fields, *ABERS.fields) if field.kind in (Kind.UNBOUNDED, Kind.UNBOUNDEDS)
)
"""The names of the fields that may hold infinities."""


def own_fields(stored: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of the method that made a decision, of which those of other methods are null or left out."""
    return next((one.fields for one in EVIDENCE.values() if stored.get(one.fields[0].name) is not None), ())


def decision_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a decision, in order, without those of other methods."""
    return {field.name: stored[field.name] for field in (*PREDICTION, *VIEW, *own_fields(stored), *VERDICT)}


def values_of(field: Field, values: list[Any]) -> list[Any]:
    """Return the values of points as JSON and the driver have them.

    Args:
        values: What arrays of the field hold of each point: a number, in which -1 stands for no class and NaN for null,
            or one for each class.

    >>> values_of(ADMIT.fields[0], [[True, False]]), values_of(VERDICT[-1], [5]), values_of(VERDICT[1], [float("nan")])
    (['10'], ['q below K'], [None])
    """
    match field.kind:
        case Kind.BITS:
            return ["".join(map("01".__getitem__, of_each_class)) for of_each_class in values]
        case Kind.CLASS:
            return [None if value < 0 else value for value in values]
        case Kind.REASON:
            reasons = {code: Reason.of_code(code) for code in set(values)}
            return [None if reasons[code] is None else str(reasons[code]) for code in values]
        case Kind.REAL | Kind.UNBOUNDED:
            return [None if math.isnan(value) else value for value in values]
    return values


def scalar_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return the fields that hold one value."""
    return tuple(field for field in fields if not field.kind.is_per_class)
