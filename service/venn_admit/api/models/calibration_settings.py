"""The members of requests and answers that are settings of a calibration, from what is declared of them."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, StringConstraints, create_model

from venn_admit.api.models.common import WHOLE, Decimals, Number
from venn_admit.core.calibrators.arguments import ALL_DECLARED, about, documentation
from venn_admit.core.calibrators.declaration import Declared, SettingKind
from venn_admit.core.calibrators.settings import DECLARED
from venn_admit.core.method_names import VENN_ADMIT

ModelType = TypeVar("ModelType", bound=BaseModel)

IGNORED = "Part of a calibration; ignored, so that what was exported can be sent as it is."

_LONGEST_WORD = 20
_EXPORTED = ("alpha", "delta", "kappa", "thresholds", "q_bins")  # and those that were added
_NUMBERS = (SettingKind.DECIMAL, SettingKind.NUMBER, SettingKind.INTEGER)


def with_given_settings(model: type[ModelType]) -> type[ModelType]:
    """Add what a request may give of each setting; their ranges are checked where settings are made."""
    members: dict[str, Any] = {}
    for name, one in ALL_DECLARED.items():
        given = _many(one, _given(one), one.most_values)
        members[name] = (
            given if one.usual is not None else given | None,
            Field(
                default=one.usual,
                max_length=one.most_values,
                description=documentation(name),
                # An example of all members together is valid: those of the method in its example.
                examples=[one.example if name in DECLARED[VENN_ADMIT] else None],
            ),
        )
    return _with(model, members)


def with_asked_settings(model: type[ModelType]) -> type[ModelType]:
    """Add what an answer says of each setting that was asked for, except for those that the model has itself."""
    members: dict[str, Any] = {}
    for name, one in ALL_DECLARED.items():
        if name not in model.model_fields:
            told: Any = {
                SettingKind.DECIMAL: str,
                SettingKind.NUMBER: Number,
                SettingKind.INTEGER: int,
                SettingKind.WORD: str,
                SettingKind.FLAG: bool,
            }[one.kind]
            told = _many(one, told)
            shared = all(name in of_method for of_method in DECLARED.values())
            members[name] = (
                told if shared else told | None,
                Field(description=f"{about(name)}.", examples=[one.example]),
            )
    return _with(model, members)


def with_ignored_settings(model: type[ModelType]) -> type[ModelType]:
    """Add what exported parameters hold of settings, in any number, since nothing is made of it."""
    members: dict[str, Any] = {
        name: (
            _many(one, Number if one.kind in _NUMBERS else _given(one), one.most_values) | None,
            Field(default=None, max_length=one.most_values, description=IGNORED, examples=[None]),
        )
        for name, one in ALL_DECLARED.items()
        if one.added or name in _EXPORTED
    }
    return _with(model, members)


def _many(one: Declared, value: Any, most: int | None = None) -> Any:
    """The type of a setting from that of each of its values; most: how many a row may have."""
    if one.rows:
        value = list[value] if most is None else Annotated[list[value], Field(max_length=most)]
    return list[value] if one.many else value


def _given(one: Declared) -> Any:
    match one.kind:
        case SettingKind.DECIMAL:
            return Decimals
        case SettingKind.NUMBER:
            return Number
        case SettingKind.INTEGER:
            return Annotated[int, Field(ge=one.least, le=one.most), WHOLE]
        case SettingKind.WORD:
            return Annotated[str, StringConstraints(max_length=_LONGEST_WORD)]
        case SettingKind.FLAG:
            return bool


def _with(model: type[ModelType], members: dict[str, Any]) -> type[ModelType]:
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, __module__=model.__module__, **members)
