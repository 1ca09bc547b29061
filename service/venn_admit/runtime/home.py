"""The default folder of the program's data."""

import hashlib
import os
import pwd
import re
from pathlib import Path
from stat import S_IXOTH

_HOME_FOR_ROOT = Path("/var/lib/venn-admit")


def default_home() -> Path:
    """Return `venn-admit` in `XDG_DATA_HOME`, by default `~/.local/share`; root may get another folder.

    macOS's own data folder has a space in its name, which Postgres' starter does not accept. The system user of root's
    embedded Postgres must be able to reach the folder. If it cannot pass through the home, or if the home belongs to
    somebody else, root gets a folder for this home alone. A folder that already holds root's data is used again.
    """
    usual = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "venn-admit"
    if os.geteuid() or os.environ.get("XDG_DATA_HOME"):
        return usual
    home = Path.home().resolve()
    owner = home.stat().st_uid if home.exists() else 0
    data = usual.expanduser() / "postgres"
    elsewhere = _outside(home, owner)
    if data.exists() and data.stat().st_uid != owner:  # root's belong to the system user, the owner's to the owner
        return usual
    if owner != 0 or not home.exists() or (elsewhere / "postgres").exists():
        return elsewhere
    is_open = all(folder.stat().st_mode & S_IXOTH for folder in (home, *home.parents))
    return usual if is_open else elsewhere


def _outside(home: Path, owner: int) -> Path:
    """Return the folder for root's data by a home that is not to hold them."""
    if home == Path(pwd.getpwuid(0).pw_dir).resolve():
        return _HOME_FOR_ROOT
    key = hashlib.sha256(os.fsencode(f"{owner}:{home}")).hexdigest()[:12]
    return _HOME_FOR_ROOT / "homes" / f"{re.sub(r'[^a-zA-Z0-9.-]+', '-', home.name)}-{key}"
