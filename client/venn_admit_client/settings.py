"""How requests have the settings of a calibration."""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from operator import index
from typing import Any


def settings_json(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name as JSON has them; what is None stays so."""
    return {name: None if value is None else _SENT.get(name, _sent)(value) for name, value in given.items()}


def _sent(value: Any) -> Any:
    """Return texts and exact decimals as texts, several in a list, and yes or no as it is."""
    if isinstance(value, bool):
        return value
    return list(map(_sent, value)) if isinstance(value, Iterable) and not isinstance(value, str) else str(value)


def _whole(value: Any) -> Any:
    """Return a whole number of whatever type as JSON has it; anything else as it is, which the service refuses."""
    return value if isinstance(value, float) else index(value)


def _number(value: Any) -> float | str:
    return float(value) if isfinite(value) else str(float(value))


def _words(value: Any) -> list[str]:
    return [one.strip() for one in value.split(",")] if isinstance(value, str) else list(value)


# Those that are numbers, and the words that one text may list.
_SENT: Mapping[str, Callable[[Any], Any]] = {
    "q_bins": lambda given: list(map(_whole, given)),
    "delta": _number,
    "kappa": _whole,
    "certify": _words,
}
