"""Words that every shell uses, also for what is shown without a report."""

from collections.abc import Sequence
from decimal import Decimal

_MOST_BINS = 6


def waiting_text(waiting: int) -> str:
    """Return what is said of training exemplars that wait.

    >>> waiting_text(1)
    '1 training exemplar waits for jobs that are running, for ten minutes at most.'
    """
    they_wait = "1 training exemplar waits" if waiting == 1 else f"{waiting:,} training exemplars wait"
    return f"{they_wait} for jobs that are running, for ten minutes at most."


def thresholds_text(thresholds: Sequence[Decimal | None]) -> str:
    """Return the least and the greatest threshold, or the one that all are; None stands for never.

    >>> thresholds_text([Decimal("0.6123456"), None, Decimal("0.9")])
    '0.612346 to 0.9, never'
    """
    used = [one for one in thresholds if one is not None]
    never = ["never"] if len(used) < len(thresholds) else []
    if not used:
        return "never"
    least, most = (f"{one:.6g}" for one in (min(used), max(used)))
    return ", ".join([least if least == most else f"{least} to {most}", *never])


def q_bins_text(q_bins: Sequence[int]) -> str:
    """Return the lower edges of the bins of q as `calibrate --q-bins` takes them; a long run from 0 is abbreviated.

    >>> q_bins_text([0, 1, 25]), q_bins_text(range(26))
    ('0,1,25', '0,1,...,25')
    """
    if len(q_bins) > _MOST_BINS and tuple(q_bins) == tuple(range(len(q_bins))):
        return f"0,1,...,{q_bins[-1]}"
    return ",".join(map(str, q_bins))
