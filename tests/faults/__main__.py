"""`python -m tests.faults`: faults at random for minutes, counted; exits with 1 where a row is not as it should be.

With `--service`, the parts of the HTTP service are killed in turn while clients are at work.
"""

import argparse
import signal
import sys

from rich.console import Console
from rich.table import Table

from tests.conftest import open_folder
from tests.faults.chaos import service_soak
from tests.faults.soak import Soak, soak

WRONG = ("rows lost", "rows doubled", "rows differing")
SHOWN = (
    *("processes killed", "workers killed", "broker flushed", "messages lost", "messages doubled"),
    *("connections cut", "broker away"),
    *("Postgres restarted", "workers paused", "late writes refused", "quota hits"),
    *("jobs", "chunks", "chunks begun again", "rows", *WRONG),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many kills of workers and their processes")
    parser.add_argument("--seed", type=int, default=0, help="draws the faults; their effect depends on the moment too")
    parser.add_argument("--broker", metavar="URL", help="redis://... or amqp://...; without it, the database")
    parser.add_argument("--service", action="store_true", help="kill the parts of the HTTP service, a Redis included")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers and server are ended too
    console = Console()
    if given.service:
        return service(console, given.kills, given.seed)

    def report(run: Soak) -> None:
        wrong = sum(run.counts[name] for name in WRONG)
        console.print(f"round {run.counts['rounds']}: {run.kills} of {given.kills} kills, {wrong} rows wrong")

    with open_folder() as folder:
        run = soak(folder, given.broker, kills=given.kills, seed=given.seed, on_round=report)
    table = Table("what", "how often")
    for name in SHOWN:
        table.add_row(name, f"{run.counts[name]:,}")
    console.print(table)
    if run.left_out:
        console.print(run.left_out)
    return 1 if any(run.counts[name] for name in WRONG) or not run.counts["rows"] else 0


def service(console: Console, kills: int, seed: int) -> int:
    """Kill the parts of the HTTP service in turn, a number of kills or a few more, and compare with a calm run."""
    with open_folder() as folder:
        run, compared, told_the_same = service_soak(folder, kills, seed)
    table = Table("what", "how often")
    for name, count in sorted(run.counts.items()):
        table.add_row(name, f"{count:,}")
    for name in ("rows", "lost", "doubled", "differing"):
        table.add_row(name if name == "rows" else f"rows {name}", f"{getattr(compared, name):,}")
    console.print(table)
    for problem in run.problems:
        console.print(problem, markup=False)
    if not told_the_same:
        console.print("the clients were told something else than in a calm run")
    is_wrong = run.problems or not told_the_same or compared.lost or compared.doubled or compared.differing
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
