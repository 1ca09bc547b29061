"""Where flows log: as structlog is configured, as in services, and otherwise to the logger `venn_admit`."""

import logging
from typing import Any, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger


def _as_message(_: object, __: str, event: EventDict) -> tuple[tuple[str], dict[str, Any]]:
    """The arguments for the standard library's logging: the event with what belongs to it, and its traceback."""
    shown, trace = event.pop("event"), event.pop("exc_info", None)
    rest = ", ".join(f"{name} {value}" for name, value in event.items())
    return (f"{shown} ({rest})",), {"exc_info": trace}


in_process: FilteringBoundLogger = structlog.wrap_logger(logging.getLogger("venn_admit"), processors=[_as_message])


class _Log:
    """structlog by itself would print to standard output."""

    def __getattr__(self, name: str) -> Any:
        return getattr(structlog.get_logger() if structlog.is_configured() else in_process, name)


log = cast("FilteringBoundLogger", _Log())
