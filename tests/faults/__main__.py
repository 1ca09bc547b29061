"""`python -m tests.faults`: faults at random for minutes, counted; exits with 1 where a row is not as it should be."""

import argparse
import signal
import sys

from rich.console import Console
from rich.table import Table

from tests.conftest import open_folder
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
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers and server are ended too
    console = Console()

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


if __name__ == "__main__":
    sys.exit(main())
