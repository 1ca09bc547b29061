"""Small files of text: KNN parameters as JSON, as an export writes them, and ids, one a line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel
from venn_admit.core.types import KnnParameters
from venn_admit.errors import Code, InvalidInputError
from venn_admit.files.inputs import check_is_file

_SIZE_LIMIT = 4 << 20
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, eq=False)
class GivenParameters:
    """The parameters in a file. reliability: None if it has none."""

    knn: KnnParameters
    eta_loc: float
    reliability: ReliabilityModel | None


def read_parameters(path: Path) -> GivenParameters:
    """Return beta, gamma, eta, eta_loc and, if it has one, the model of the reliability score of a file.

    Any other content is ignored.

    Raises InvalidInputError naming the field, what was expected and received.
    """
    check_is_file(path)
    try:
        with path.open("rb") as file:
            payload = json.loads(file.read(_SIZE_LIMIT))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path}: expected JSON, got {error}; export the parameters again", code=Code.PARAMETERS_UNREADABLE
        ) from error
    if not isinstance(payload, dict):
        raise InvalidInputError(f"{path}: expected an object with beta, gamma, eta and eta_loc")
    return given_parameters(str(path), payload)


def given_parameters(where: str, payload: Mapping[str, object]) -> GivenParameters:
    """Return the parameters that an object of JSON holds; any other content is ignored.

    where: what the object came in, for messages. Raises InvalidInputError naming the field, what was expected and
    received.
    """
    knn = KnnParameters(
        beta=np.array(_numbers(where, payload, "beta")),
        gamma=np.array(_numbers(where, payload, "gamma")),
        eta=_number(where, "eta", payload.get("eta")),
    )
    return GivenParameters(knn, _number(where, "eta_loc", payload.get("eta_loc")), _reliability(where, payload))


def _reliability(where: str, payload: Mapping[str, object]) -> ReliabilityModel | None:
    document = payload.get("reliability")
    if document is None:
        return None
    if not isinstance(document, dict):
        raise InvalidInputError(f"{where}: reliability: expected an object with median_d and models, got {document!r}")
    try:
        return ReliabilityModel.of_document(document)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: reliability: {error}") from error


def _numbers(where: str, payload: Mapping[str, object], field: str) -> list[float]:
    values = payload.get(field)
    if not isinstance(values, list):
        raise InvalidInputError(f"{where}: {field}: expected a list of numbers, got {values!r}")
    return [_number(where, f"{field}[{position}]", value) for position, value in enumerate(values)]


def _number(where: str, field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"{where}: {field}: expected a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidInputError(
            f"{where}: {field}: expected a number that float64 can hold, got a larger one"
        ) from None


def read_ids(path: Path) -> list[str]:
    """Return the ids in a file, in its order, without a byte order mark; empty lines are left out.

    Raises:
        InvalidInputError: It cannot be read, is not UTF-8, is too large, or holds no id.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInputError(f"{path}: expected at most {MOST_BYTES:,} bytes of ids; divide it")
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} cannot be read as text: {getattr(error, 'strerror', None) or 'it is not UTF-8'}; name a file with "
            "an id a line"
        ) from error
    ids = [one for line in text.split("\n") if (one := line.removesuffix("\r"))]
    if not ids:
        raise InvalidInputError(f"{path}: expected an id a line, got none")
    return ids
