"""`python -m tests.year`: 365 days of a service, with the power cut on day 150; draws the picture of the docs.

A day is a round of some seconds. Its times are those of the clock: nothing makes the service believe in another date.
"""

import argparse
import signal
import sys
from dataclasses import asdict
from json import dumps
from pathlib import Path

from rich.console import Console

from tests.conftest import open_folder
from tests.faults.server import own_server
from tests.year.begun import begun
from tests.year.picture import DOTS_PER_INCH, picture
from tests.year.run import run
from tests.year.stream import YEAR, Day
from venn_admit.report.charts.charts import save_png

PICTURE = Path(__file__).parents[2] / "docs" / "assets" / "year.png"
CUTS = (150,)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.year", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="draws traffic, labels and delays")
    parser.add_argument("--days", type=Path, help="a file to write what is known of each day to, as lines of JSON")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes are ended too
    console = Console()
    told = None if given.days is None else given.days.open("w")

    def tell(day: Day) -> None:
        if told is not None:
            print(dumps(asdict(day)), file=told, flush=True)
        if day.events:
            console.print(f"day {day.day}: {', '.join(day.events)}")

    with (
        open_folder() as folder,
        own_server(folder / "home") as server,
        begun(server, folder, YEAR, given.seed) as template,
    ):
        days, _ = run(server, template, folder / "year", YEAR, given.seed, cuts=CUTS, on_day=tell)
    save_png(picture(days, YEAR), PICTURE, DOTS_PER_INCH)
    console.print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
