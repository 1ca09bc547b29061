"""Stored rows as JSON has them."""

from datetime import datetime
from typing import Any


def plain(row: Any) -> dict[str, Any]:
    """Return a row for JSON: times as text, with their offset."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row._mapping.items()}
