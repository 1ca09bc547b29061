"""Arguments of the Python interface: of the types that its signatures declare, before anything is done with them."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import wraps
from numbers import Real
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin

import numpy as np

from venn_admit.errors import InvalidInputError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C")
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    timedelta: "a timedelta",
}
_MANY = (Sequence, Collection)


def checking_arguments(kind: type[_C]) -> type[_C]:
    """Have every public method of a class check its arguments, as `checked` does."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            checking = checked(method)
            if name not in vars(kind):
                # So it inherits the docstring, too.
                checking.__doc__, checking.__module__ = None, kind.__module__
                checking.__qualname__ = f"{kind.__qualname__}.{name}"
            setattr(kind, name, checking)
    return kind


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse flags, numbers, texts and times that are none: as a flag, the text "no" would mean yes."""
    parameters = inspect.signature(function).parameters
    declared = {name: one.annotation for name, one in parameters.items()}
    # What comes after these is refused by Python itself.
    by_place = [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for name, value in (*zip(by_place, args, strict=False), *kwargs.items()):
            _check(name, value, declared.get(name))
        return function(*args, **kwargs)

    return called


def _check(name: str, value: Any, declared: Any) -> None:
    """Raises InvalidInputError if a value is not of a declared type, or of one of those that are declared."""
    kinds = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    others = [kind for kind in kinds if kind is not NoneType]
    if len(others) != 1 or (value is None and NoneType in kinds):
        return
    (kind,) = others
    if kind in _WORDS:
        if not _is_a(value, kind):
            raise InvalidInputError(f"{name}: expected {_WORDS[kind]}, got {value!r:.200}")
    elif get_origin(kind) is Mapping:
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"{name}: expected a dictionary or another mapping, got {value!r:.200}")
    elif get_origin(kind) in _MANY:
        (of,) = get_args(kind)
        # One text for several texts is refused, or means something, where it is read.
        if not isinstance(value, Iterable) or (isinstance(value, str) and of is not str):
            raise InvalidInputError(f"{name}: expected several values, in a list for example, got {value!r:.200}")
        if get_origin(of) in _MANY:
            for one in value if isinstance(value, Sequence) else ():
                _check(name, one, of)


def _is_a(value: Any, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is int:
        # As JSON has it, 5.0 is a whole number.
        is_whole = isinstance(value, float | np.floating) and value.is_integer()
        return is_whole or (hasattr(value, "__index__") and not isinstance(value, bool | np.bool_))
    if kind is float:
        return isinstance(value, Real | Decimal) and not isinstance(value, bool)
    return isinstance(value, kind)
