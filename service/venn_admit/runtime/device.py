"""Whether the device that the settings name computes anything here."""

import subprocess
import sys

from venn_admit.errors import NotReadyError

_SECONDS = 120
_PROBE = "import sys, torch; torch.ones(1, device=sys.argv[1]).sum().item()"


def require_device(name: str) -> None:
    """Raise an error unless torch computes on a device.

    Another process tries it, since a process that has used CUDA cannot share it with the children that it forks.

    Args:
        name: `cpu`, which is not tried, or `cuda`.

    Raises:
        NotReadyError: torch finds no such device, or computes nothing on it within two minutes.
    """
    if name == "cpu":
        return
    try:
        tried = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-P", "-c", _PROBE, name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"nothing within {_SECONDS} seconds"
    else:
        if tried.returncode == 0:
            return
        reason = (tried.stderr.strip().splitlines() or [f"status {tried.returncode}"])[-1]
    raise NotReadyError(
        f"VENN_ADMIT_DEVICE={name}: expected a device that torch computes on, got {reason!a}; install the driver and a "
        "build of torch for it, let this process use it, or set VENN_ADMIT_DEVICE=cpu, which finds the same neighbours"
    )
