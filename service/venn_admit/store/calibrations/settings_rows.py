"""Settings as the columns of a calibrator's row."""

import json
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from venn_admit.core.calibrators.arguments import ALL_DECLARED, canonical, column_of, plain_settings
from venn_admit.core.calibrators.settings import DECLARED, RECORDS, MethodSettings


def setting_columns(settings: MethodSettings) -> dict[str, Any]:
    """Return the values of a calibrator's columns, the method and the digest included; None for other methods'."""
    values = plain_settings(settings)
    columns = {column_of(name): values.get(name) for name in ALL_DECLARED}
    return {"method": settings.method, "settings_digest": settings_digest(settings), **columns}


def settings_of(row: str) -> MethodSettings:
    """Return the settings in a calibrator's row, given as the text of a JSON object with its columns."""
    columns = json.loads(row, parse_float=Decimal)
    method = columns["method"]
    return RECORDS[method](**{name: one.from_plain(columns[column_of(name)]) for name, one in DECLARED[method].items()})


def settings_digest(settings: MethodSettings) -> bytes:
    """Return the BLAKE2b-128 digest of the settings; equal numbers give equal digests, however they are written."""
    return blake2b(repr(canonical(settings)).encode(), digest_size=16).digest()
