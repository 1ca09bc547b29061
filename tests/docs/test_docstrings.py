"""The docstrings of the core, as the generator of the reference reads them."""

from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[2]


def described(owner: griffe.Object, kind: str) -> list[str]:
    """The names of the arguments or attributes that a docstring describes, in its order."""
    sections = owner.docstring.parse("google") if owner.docstring else []
    return [entry.name.lstrip("*") for section in sections if section.kind.value == kind for entry in section.value]


def public(owner: griffe.Object) -> Iterator[griffe.Function | griffe.Class]:
    """Functions, methods and classes, except private ones and the initialisers of dataclasses."""
    for member in owner.members.values():
        is_written = member.name == "__init__" and member.has_docstring
        if member.is_alias or (member.name.startswith("_") and not is_written):
            continue
        if isinstance(member, griffe.Function | griffe.Class):
            yield member
        if isinstance(member, griffe.Module | griffe.Class):
            yield from public(member)


def test_core_describes_every_argument_and_no_other() -> None:
    core = griffe.load("venn_admit.core", search_paths=[ROOT / "service"])
    assert isinstance(core, griffe.Module)
    once = set(described(core, "parameters"))  # those that mean the same everywhere
    assert {"alpha", "memory_budget"} <= once
    documented = set()
    for found in public(core):
        if isinstance(found, griffe.Function):
            taken = [parameter.name for parameter in found.parameters if parameter.name not in {"self", "cls"}]
            words = described(found, "parameters")
            assert words == [name for name in taken if name in words or name not in once], found.path
        else:
            fields = described(found, "attributes")
            assert fields == [name for name in found.members if name in fields], found.path
        documented.add(found.path)
    assert {
        "venn_admit.core.types.Neighbours",
        "venn_admit.core.neighbours.search.exact_neighbours",
    } <= documented
