"""Parts of models: texts that the database can hold, bounded numbers, answers made from records, and errors."""

from collections.abc import Mapping
from dataclasses import Field as DataclassField
from dataclasses import is_dataclass
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, create_model, model_validator

from venn_admit.core.names import ID_LENGTH_LIMIT, NAME_LENGTH_LIMIT, PRINTABLE, SOURCE_LENGTH_LIMIT, STORABLE
from venn_admit.files.records import Stated
from venn_admit.http.paging import LARGEST_KEY
from venn_admit_client.members import described, members

LARGEST_INTEGER = 2**31 - 1

Key = Annotated[int, Field(ge=1, le=LARGEST_KEY)]

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH_LIMIT, pattern=PRINTABLE)]
Extractor = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=PRINTABLE)]
StoredId = Annotated[str, StringConstraints(min_length=1, max_length=ID_LENGTH_LIMIT, pattern=STORABLE)]
ExternalId = Annotated[str, StringConstraints(min_length=1, max_length=ID_LENGTH_LIMIT, pattern=PRINTABLE)]

ClassName = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=PRINTABLE)]

PROBABILITIES = (
    "Whether what is given as logits are probabilities, whose logarithms are taken; false: they are logits, whatever "
    "they look like; null: refused if every row lies in [0, 1] and sums to 1."
)

Finite = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Finite], Field(fail_fast=True, min_length=1, max_length=16_000)]
PerClass = Annotated[list[Finite], Field(fail_fast=True, min_length=2, max_length=100_000)]
_Text = Annotated[str, StringConstraints(max_length=100_000, pattern=STORABLE)]
_Scalar = bool | Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | Finite | _Text | None
AttributesOfOne = Annotated[
    dict[_Text, _Scalar],
    Field(
        max_length=100,
        examples=[{"text": "A film."}],
        # Without this, the document would allow any value under a name that the pattern refuses.
        json_schema_extra={"additionalProperties": False},
    ),
]
# JSON has no infinities and no NaN: they are texts.
Number = Annotated[float, Field(allow_inf_nan=False)] | Literal["inf", "-inf", "nan"]


def _whole(given: object) -> object:
    """As JSON Schema has it, 41.0 is an integer: JSON has one kind of numbers."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


# It stands after the bounds of an integer, which the document would lack if they came last.
WHOLE = BeforeValidator(_whole)
ClassNumber = Annotated[int, Field(ge=0, le=LARGEST_INTEGER), WHOLE]
# A decimal that is exact, which a binary number is not; `parse_decimal` says which texts are.
Decimals = Annotated[str, StringConstraints(max_length=100)]


# How many of an object's unknown members are named.
_MOST_UNKNOWN = 20


class Model(BaseModel):
    """An answer, or a part of one: of these fields and no others."""

    model_config = ConfigDict(extra="forbid")


def answer_of(record: type, name: str) -> Any:
    """Return the model of an answer that is a record: its members as JSON has them, with their descriptions."""
    title, said = described(record)
    types = get_type_hints(record)
    fields: dict[str, Any] = {
        member: (
            _json_type(types[one.name]),
            Field(description=said[one.name].replace("None", "null"), examples=_examples(one)),
        )
        for member, one in members(record).items()
    }
    return create_model(name, __base__=Model, __doc__=title, **fields)


@cache
def _part(record: type) -> Any:
    """The model of a record that is part of others."""
    return answer_of(record, record.__name__)


def _examples(one: DataclassField[Any]) -> list[Any] | None:
    example = one.metadata["example"]
    return None if example is ... else [example]


def _json_type(kind: Any) -> Any:
    """The type that a value of a type has in JSON."""
    if kind is Decimal:
        return str
    if isinstance(kind, type) and is_dataclass(kind):
        return _part(kind)
    arguments = tuple(map(_json_type, get_args(kind)))
    if isinstance(kind, UnionType):
        return Union[arguments]  # noqa: UP007 - of as many as there are
    if get_origin(kind) is tuple:
        return list[arguments[0]]  # type: ignore[valid-type]
    if get_origin(kind) is Mapping:
        return dict[arguments[0], arguments[1]]  # type: ignore[valid-type]
    return kind


class Given(Model):
    """A request, or a part of it; a text that holds a number is no number, and true is not 1."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def _have_no_crowd_of_members(cls, given: object) -> object:
        # Each member that is not known is an error of its own, and a million of them would take many seconds.
        if not isinstance(given, dict) or len(given) <= _MOST_UNKNOWN:
            return given
        most = len(cls.model_fields) + _MOST_UNKNOWN
        if len(given) > most:
            raise ValueError(f"expected at most {most} members, got {len(given)}")
        return given


class StatedInRequest(BaseModel):
    """What a request states of vectors and logits, in its body or, beside a file, in its address."""

    extractor: Extractor | None = Field(
        default=None,
        description="Version of the extractor that the vectors come from, if a file does not state it.",
        examples=[None],
    )
    probabilities: bool | None = Field(default=None, description=PROBABILITIES, examples=[None])

    @property
    def stated(self) -> Stated:
        """The same, as flows take it."""
        return Stated(self.extractor, self.probabilities)


class FromSource(BaseModel):
    """What is recorded of data that come in."""

    source: Annotated[str, StringConstraints(min_length=1, max_length=SOURCE_LENGTH_LIMIT, pattern=PRINTABLE)] = Field(
        default="http", description="What is recorded as their source.", examples=["nightly"]
    )


class AnswerPage(Model):
    """A part of a list."""

    next_cursor: str | None = Field(
        description="The `cursor` of the page that follows; null on the last page.", examples=["YmVmb3JlIDQy"]
    )


class InvalidValue(Model):
    """A value of a request that is invalid."""

    at: list[str | int] = Field(description="Where it stands.", examples=[["body", "points", 3, "vector"]])
    message: str = Field(description="What was expected.", examples=["Field required"])


class ProblemAnswer(Model):
    """An error, as RFC 9457 has it, in the words of the command line."""

    type: str = Field(
        description="The same for every error with this code.", examples=["urn:venn-admit:problem:not-calibrated"]
    )
    title: str = Field(description="The kind of error.", examples=["An earlier step is missing"])
    status: int = Field(ge=400, le=599, description="The status of the answer.", examples=[409])
    detail: str = Field(
        description="What was expected, what was received, where, and what to do.",
        examples=[
            "classifier 'reviews' has no calibration yet: calibrate it first; send "
            "`POST /v1/classifiers/reviews/calibrations`"
        ],
    )
    code: str = Field(
        description="What the error is about, which stays the same while the words may change: one of the reference of "
        "errors, or of HTTP alone.",
        examples=["not-calibrated"],
    )
    parameters: dict[str, Any] = Field(description="What the error names.", examples=[{"classifier": "reviews"}])
    errors: list[InvalidValue] | None = Field(
        default=None, description="Each value of the request that is invalid, if any is."
    )
