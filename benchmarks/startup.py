"""What the command line costs before it does anything, in CPU time beyond that of the bare interpreter."""

import resource
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Cost, Measurement, compare_costs

_HELP = ["-c", "from venn_admit.cli.main import main; main()", "--help"]
_NOTHING = ["-c", "pass"]


def measure(large: bool) -> Iterator[Measurement]:  # noqa: ARG001 - a start has one size
    yield compare_costs(
        "cold start, beyond the peer",
        "--help, CPU time",
        "python -c pass",
        lambda: Cost(_cpu_seconds(_HELP) - _cpu_seconds(_NOTHING)),
        lambda: Cost(_cpu_seconds(_NOTHING)),
        turns=7,
    )


def _cpu_seconds(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
