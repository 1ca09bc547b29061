"""The reference of the settings, from the fields of `Settings`."""

import inspect
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from docs.generate.markdown import join, one_line, plain, table
from venn_admit.runtime.settings import PREFIX, Settings

INTRODUCTION = """\
# Settings

Every setting is an environment variable. An empty variable counts as unset."""


def settings_page() -> str:
    """Return the page: one row a setting, in the order of the class."""
    rows = [
        (f"`{PREFIX}{name.upper()}`", plain(field.description or ""), _kind(field), _default(field))
        for name, field in Settings.model_fields.items()
    ]
    return join(INTRODUCTION, table(["variable", "meaning", "value", "default"], rows))


def _kind(field: FieldInfo) -> str:
    bounds = [
        f"{words} {getattr(limit, name):g}"
        for limit in field.metadata
        for name, words in (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
        if hasattr(limit, name)
    ]
    return ", ".join([_type_name(field.annotation), *bounds])


def _type_name(annotation: Any) -> str:
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "path"}
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)] or [annotation]
    return " or ".join(names.get(kind, str(kind)) for kind in kinds)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:  # which may look at the machine: what it says of itself holds on all
        return plain(one_line((inspect.getdoc(field.default_factory) or "").partition("\n\n")[0]))
    return "unset" if field.default is None else f"`{field.default}`"
