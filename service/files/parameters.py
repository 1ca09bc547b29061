"""KNN parameters from JSON, as `export --what parameters` writes them."""

import json
from pathlib import Path

import numpy as np

from service.core.types import KnnParameters
from service.errors import InvalidInputError
from service.files.records import check_is_file


def read_parameters(path: Path) -> tuple[KnnParameters, float]:
    """beta, gamma, eta and eta_loc of a file; what else it holds is left alone.

    Raises InvalidInputError naming the field, what was expected and what came.
    """
    check_is_file(path)
    try:
        payload = json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInputError(f"{path}: expected JSON, got {error}") from error
    if not isinstance(payload, dict):
        raise InvalidInputError(f"{path}: expected an object with beta, gamma, eta and eta_loc")
    return KnnParameters(
        beta=np.array(_numbers(path, payload, "beta")),
        gamma=np.array(_numbers(path, payload, "gamma")),
        eta=_number(path, "eta", payload.get("eta")),
    ), _number(path, "eta_loc", payload.get("eta_loc"))


def _numbers(path: Path, payload: dict[str, object], field: str) -> list[float]:
    values = payload.get(field)
    if not isinstance(values, list):
        raise InvalidInputError(f"{path}: {field}: expected a list of numbers, got {values!r}")
    return [_number(path, f"{field}[{position}]", value) for position, value in enumerate(values)]


def _number(path: Path, field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"{path}: {field}: expected a number, got {value!r}")
    return float(value)
