"""Two computations timed in turns, so that whatever else the machine does falls on both alike."""

import ctypes
import gc
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], object]
_WATERMARK = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table.

    what, size, against: what is measured, on how much, and what its peer is. ours, peer: seconds, medians of
    several turns. ratio: the median of peer's time / ours, turn by turn; above 1 ours is the faster.
    ours_peak, peer_peak: bytes by which this process grew at most, results included; None where unknown.
    note: what else there is to say.
    """

    what: str
    size: str
    against: str
    ours: float
    peer: float
    ratio: float
    ours_peak: int | None = None
    peer_peak: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took. seconds: of wall clock or of CPU. peak: bytes, None where unknown."""

    seconds: float
    peak: int | None = None


def compare(
    what: str, size: str, against: str, ours: Work, peer: Work, *, turns: int, peer_share: float = 1.0
) -> Measurement:
    """Wall clock and memory of `ours` and `peer`; peer_share is how much of the work the peer's call does.

    Each is called turns + 1 times: the first call loads libraries and fills caches, and does not count.
    """
    return compare_costs(what, size, against, lambda: cost_of(ours), lambda: cost_of(peer), turns, peer_share)


def compare_costs(
    what: str,
    size: str,
    against: str,
    ours: Callable[[], Cost],
    peer: Callable[[], Cost],
    turns: int,
    peer_share: float = 1.0,
) -> Measurement:
    """As `compare`, of calls that tell their own cost."""
    ours(), peer()
    pairs = []
    for turn in range(turns):
        if turn % 2:
            later, first = peer(), ours()
            pairs.append((first, later))
        else:
            pairs.append((ours(), peer()))
    return Measurement(
        what=what,
        size=size,
        against=against,
        ours=statistics.median(mine.seconds for mine, _ in pairs),
        peer=statistics.median(other.seconds for _, other in pairs) / peer_share,
        ratio=statistics.median(other.seconds / mine.seconds for mine, other in pairs) / peer_share,
        ours_peak=_median_peak([mine for mine, _ in pairs]),
        peer_peak=_median_peak([other for _, other in pairs]) if peer_share == 1 else None,
    )


def _median_peak(costs: list[Cost]) -> int | None:
    peaks = [cost.peak for cost in costs if cost.peak is not None]
    return round(statistics.median(peaks)) if peaks else None


def cost_of(work: Work) -> Cost:
    """The wall clock of one call, and by how much this process grew at most."""
    known = _reset_watermark()
    resident = _resident("VmRSS") if known else 0
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    peak = _resident("VmHWM") - resident if known else None
    del result  # kept until here: it counts
    return Cost(seconds, peak)


def _reset_watermark() -> bool:
    """Give freed memory back and forget the peak so far; false where the system (Linux alone does) keeps none."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's: else what ran before hides what runs next
    if trim is not None:
        trim(0)
    try:
        _WATERMARK.write_text("5")
    except OSError:
        return False
    return True


def _resident(field: str) -> int:
    found = re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None, f"the kernel tells no {field}"
    return int(found[1]) * 1024
