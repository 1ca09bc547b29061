"""The reference of the settings, from the fields of `Settings`."""

import inspect
from dataclasses import MISSING, Field
from typing import Any

from docs.generate.markdown import join, one_line, plain, table
from venn_admit.runtime.settings import FIELDS, accepted, variable

INTRODUCTION = """\
# Settings

Every setting is an environment variable. An empty variable counts as unset."""


def settings_page() -> str:
    """Return the page: one row a setting, in the order of the class."""
    rows = [
        (f"`{variable(name)}`", plain(field.metadata["description"]), plain(accepted(name)), _default(field))
        for name, field in FIELDS.items()
    ]
    return join(INTRODUCTION, table(["variable", "meaning", "value", "default"], rows))


def _default(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:  # which may look at the machine: what it says of itself holds on all
        said = one_line((inspect.getdoc(field.default_factory) or "").partition("\n\n")[0])
        return plain(said.removeprefix("Return "))
    return "unset" if field.default is None else f"`{field.default}`"
