"""The extension by which references show a method without a docstring with that of the class it is inherited from."""

from typing import Any

import griffe


class InheritedDocstrings(griffe.Extension):
    """As `inspect.getdoc` finds them."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Look through a package that was read."""
        _inherit(pkg)


def _inherit(owner: griffe.Module | griffe.Class) -> None:
    for member in owner.members.values():
        if isinstance(member, griffe.Module | griffe.Class):
            _inherit(member)
        elif isinstance(owner, griffe.Class) and isinstance(member, griffe.Function) and not member.has_docstring:
            found = (base.members[member.name] for base in owner.mro() if member.name in base.members)
            member.docstring = next((one.docstring for one in found if one.has_docstring), None)
