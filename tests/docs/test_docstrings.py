"""The docstrings of the core, as the generator of the reference reads them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[2]


def described(owner: griffe.Object, kind: str) -> dict[str, str]:
    """What a docstring says of arguments or attributes, by their names and in its order."""
    sections = owner.docstring.parse("google") if owner.docstring else []
    entries = [entry for section in sections if section.kind.value == kind for entry in section.value]
    return {entry.name.lstrip("*"): entry.description for entry in entries}


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


def meant_everywhere(module: griffe.Module) -> dict[str, str]:
    """What the packages around a module say of arguments, because they mean the same in all of their modules."""
    own = described(module, "parameters")
    return own if module.parent is None else meant_everywhere(module.parent.module) | own


def used_elsewhere() -> set[str]:
    """The paths of what modules import from another folder of the core than their own."""
    found = set()
    for path in (ROOT / "service").rglob("*.py"):
        folder = ".".join(path.relative_to(ROOT / "service").parent.parts)
        source = path.read_text("utf-8")
        # Parsing takes long, and most modules import nothing from there.
        for node in ast.walk(ast.parse(source if "venn_admit.core." in source else "")):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("venn_admit.core."):
                assert node.module is not None
                if node.module.rpartition(".")[0] != folder:
                    found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_core_describes_every_argument_that_another_room_gives_and_no_other() -> None:
    core = griffe.load("venn_admit.core", search_paths=[ROOT / "service"])
    assert isinstance(core, griffe.Module)
    assert {"alpha", "memory_budget"} <= set(meant_everywhere(core))
    elsewhere, documented = used_elsewhere(), set()
    meant = cache(meant_everywhere)
    for found in public(core):
        shared = meant(found.module)
        if isinstance(found, griffe.Function):
            taken = [parameter.name for parameter in found.parameters if parameter.name not in {"self", "cls"}]
            words = described(found, "parameters")
            owner = found.parent.path if isinstance(found.parent, griffe.Class) else found.path
            needed = set(taken) - set(shared) if owner in elsewhere else set()
            assert list(words) == [name for name in taken if name in words or name in needed], found.path
        else:
            words = described(found, "attributes")
            assert list(words) == [name for name in found.members if name in words], found.path
        assert not [name for name, text in words.items() if shared.get(name) == text], (found.path, "said by its room")
        documented.add(found.path)
    assert {
        "venn_admit.core.types.Neighbours",
        "venn_admit.core.neighbours.search.exact_neighbours",
    } <= documented
