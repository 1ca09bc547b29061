"""`python -m benchmarks.machines`: workers on hosts of their own, which reach database and broker over a network.

Network namespaces stand in for hosts, so it takes Linux, root, and the programs `ip` and `nft`. All hosts share the
processors of this machine: more hosts than processors are no faster. Each run is checked to decide as the first did,
bit for bit.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.hosts import Host, hosts
from benchmarks.remote_scoring import CHUNK_ROWS, LEASE_SECONDS, Scored, Scoring, slowed
from benchmarks.served import calibrated
from benchmarks.storage import database, folder

_DELAY_SECONDS, _LOSS_PERCENT = 0.001, 1
_AWAY_SECONDS = 20.0
_MOST_HOSTS = 4
_SLOW_SHARES = (0.1, 0.02)


@dataclass(frozen=True, slots=True)
class _Run:
    """workers, network: what is measured. round_trip: seconds."""

    workers: str
    network: str
    round_trip: float
    scored: Scored
    note: str = ""

    def cells(self) -> list[str]:
        """Return a row of the table."""
        done, chunks = self.scored, self.scored.chunks.total()
        return [
            self.workers,
            self.network,
            f"{1000 * self.round_trip:.2f} ms",
            f"{done.seconds:.1f} s",
            f"{done.rows / done.seconds:,.0f}",
            *(f"{carried / chunks / 1024:,.0f} KiB" for carried in done.carried),
            self.note,
        ]


def main(
    points: int = 20_480,
    support: int = 20_000,
    dimension: int = 384,
    broker: Annotated[str | None, typer.Option(help="URL of Redis or RabbitMQ on this machine.")] = None,
) -> None:
    """Score files with 1, 2 and 4 hosts, over networks that are near, away, lossy and cut; and beside a slow host.

    Without a broker, the database is it, as with the embedded server.
    """
    chunks = -(-points // CHUNK_ROWS)
    table = Table(
        caption=f"{points:,} points in {chunks} chunks; support and held out {support:,} each, D = {dimension}"
    )
    for heading in ("workers", "network", "round trip", "took", "points a second", "to hosts, a chunk", "back", "note"):
        table.add_column(heading)
    with folder() as files, database(files / "home") as engine, hosts(_MOST_HOSTS) as there:
        _, vectors, logits = calibrated(
            engine, files, support=support, held_out=support, dimension=dimension, points=points
        )
        np.savez(files / "points.npz", r=vectors, f=logits)
        with Scoring.over(there, engine, files, broker) as scoring:
            for run in _runs(scoring, there):
                table.add_row(*run.cells())
                typer.echo(", ".join(run.cells()), err=True)
    output = Console()
    output.width = max(output.width, 140)
    output.print(table)


def _runs(scoring: Scoring, there: list[Host]) -> Iterator[_Run]:
    for count in (1, 2, _MOST_HOSTS):
        used = there[:count]
        with ExitStack() as up:
            for host in used:
                up.enter_context(scoring.worker(host, f"{count}-{host.name}"))
            yield _run(scoring, used, "near", note="training exemplars and snapshot are read")
            yield _run(scoring, used, "near")
            with scoring.delayed(_DELAY_SECONDS):
                yield _run(scoring, used, "away")
                with ExitStack() as losing:
                    for host in used:
                        losing.enter_context(host.losing(_LOSS_PERCENT))
                    yield _run(scoring, used, f"away, {_LOSS_PERCENT} % lost")
    first, second = there[:2]
    with scoring.worker(first, "shared", processes=2):
        yield _run(scoring, [first], "near", workers="1 x 2 processes", note="training exemplars are read once")
    with scoring.worker(first, "early"), ExitStack() as late:
        yield _joined_late(scoring, first, second, late)
        yield _cut_off(scoring, first, second)
    with scoring.worker(first, "early"), scoring.worker(second, "slow") as slow:
        scoring.score()  # so that the slow one has the training exemplars
        for share in _SLOW_SHARES:
            with slowed(slow, share):
                run = _run(scoring, [first], "near", workers="1 + 1 slow")
            chunks = run.scored.chunks
            taken_over = run.scored.attempts - chunks.total()
            note = f"one runs {share:.0%} of the time: {chunks[second.name]} of {chunks.total()} chunks"
            yield replace(run, note=f"{note}, {taken_over} taken over from it")


def _run(scoring: Scoring, used: list[Host], network: str, *, workers: str | None = None, note: str = "") -> _Run:
    trip = scoring.round_trip(used[0])
    return _Run(workers or str(len(used)), network, trip, scoring.score(), note)


def _joined_late(scoring: Scoring, first: Host, second: Host, late: ExitStack) -> _Run:
    """A second worker starts once a first one computes."""
    trip = scoring.round_trip(first)
    with _Once(lambda: late.enter_context(scoring.worker(second, "late"))) as join:
        scored = scoring.score(join)
    note = f"chunks of the one that joined: {scored.chunks[second.name]} of {scored.chunks.total()}"
    return _Run("1, then 2", "near", trip, scored, note)


def _cut_off(scoring: Scoring, first: Host, second: Host) -> _Run:
    """A host is cut off while it computes, and comes back."""

    def pull_the_cable() -> None:
        with second.cut_off():
            time.sleep(_AWAY_SECONDS)

    trip = scoring.round_trip(first)
    with _Once(pull_the_cable) as cut:
        scored = scoring.score(cut)
    again = scoring.score()
    note = (
        f"leases of {LEASE_SECONDS} s; {scored.attempts} attempts at {scored.chunks.total()} chunks; afterwards "
        f"{again.chunks[second.name]} of {again.chunks.total()} on the host that came back"
    )
    return _Run("2", f"one cut off for {_AWAY_SECONDS:.0f} s", trip, scored, note)


class _Once:
    """Does something in a thread when it is told for the first time that rows are done; the end awaits it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._thread = ThreadPoolExecutor(1)
        self._done: Future[object] | None = None

    def __call__(self, rows: int) -> None:
        if rows and self._done is None:
            self._done = self._thread.submit(self._work)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        assert self._done is not None, "the job was over before it was seen to advance; score more points"
        self._done.result()


if __name__ == "__main__":
    typer.run(main)
