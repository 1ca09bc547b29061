"""What a result is for programs: the Python interface, `--json`, the HTTP service and its client say the same."""

from importlib import import_module
from typing import Any

_MODULES = ("data", "certificates", "calibrations", "decisions", "cascades", "reports", "reviews")


def find(name: str) -> Any:
    """Return the record of a name, None if there is none.

    It imports the modules up to the one that has it: records take long to make, and a command needs few.
    """
    modules = (import_module(f"{__name__}.{module}") for module in _MODULES)
    return next((getattr(module, name) for module in modules if hasattr(module, name)), None)
