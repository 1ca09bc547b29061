"""Temporary files in a folder of this program, and the removal of those whose process was killed."""

import os
import re
import secrets
import socket
import time
from contextlib import suppress
from pathlib import Path

# No upload takes as long. Whether a process on another machine lives cannot be told.
ABANDONED_SECONDS = 24 * 60 * 60
UPLOADS = "uploads"
"""The folder in the home in which bodies of requests are kept while they are taken in."""
_NAME = re.compile(r"(?P<machine>.+)\.(?P<process>\d+)-[0-9a-f]{16}")


def temporary_name(ending: str) -> str:
    """Return a name for a file, by which others can tell whether its process lives."""
    return f"{socket.gethostname()}.{os.getpid()}-{secrets.token_hex(8)}{ending}"


def remove_abandoned(folder: Path) -> int:
    """Remove the files of processes of this machine that are dead, and what is a day old; return how many."""
    removed = 0
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            if _is_abandoned(path):
                path.unlink()
                removed += 1
    return removed


def _is_abandoned(path: Path) -> bool:
    if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
        return True
    named = _NAME.match(path.name)
    if named is None or named["machine"] != socket.gethostname():
        return False
    return not is_running(int(named["process"]))


def is_running(process: int) -> bool:
    """Return whether a process of this machine lives, also that of another user."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
