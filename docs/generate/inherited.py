"""The extension by which a class or method without a docstring has that of what it is inherited from, in references."""

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
        if isinstance(member, griffe.Class) and not member.has_docstring:
            member.docstring = next((base.docstring for base in member.mro() if base.has_docstring), None)
        elif isinstance(owner, griffe.Class) and isinstance(member, griffe.Function) and not member.has_docstring:
            found = (base.members[member.name] for base in owner.mro() if member.name in base.members)
            member.docstring = next((one.docstring for one in found if one.has_docstring), None)
