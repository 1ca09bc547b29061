"""Old names that this version still accepts: help and completion show only the new ones."""

from typing import Any


def accepting(**new_names: str) -> dict[str, Any]:
    """Return the settings of a command that accepts old names of its options, given without dashes.

    >>> accepting(report="out")["token_normalize_func"]("report")
    'out'
    """
    names = {old.replace("_", "-"): new for old, new in new_names.items()}
    return {"token_normalize_func": lambda name: names.get(name, name)}


MODE_OPTIONS = accepting(no_weights="unweighted", q_equals_k="require-full-match")
LIMIT_OPTION = accepting(most="limit")
