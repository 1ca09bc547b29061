"""Folders that come with the program: at its top in a checkout, inside the package in an installed wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]


def bundled_folder(name: str) -> Path:
    """`migrations` or `examples`."""
    return (_CHECKOUT if (_CHECKOUT / "pyproject.toml").exists() else _PACKAGE) / name
