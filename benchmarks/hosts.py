"""Network namespaces that stand in for machines, each on a link of its own to this one. Linux, as root, with `nft`."""

import asyncio
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_BLOCK_BYTES = 1 << 16
_BLOCKS_ON_THE_WAY = 256

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Carried(NamedTuple):
    """Bytes that links have carried to hosts and from them."""

    to: int
    back: int


@dataclass(frozen=True, slots=True)
class Host:
    """A namespace with a link. address: of this machine, as the namespace reaches it."""

    name: str
    address: str

    def command(self, command: Sequence[str]) -> list[str]:
        """Return what runs a command there, under the host's name."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name]
        return ["ip", "netns", "exec", self.name, *named, *command]

    def carried(self) -> Carried:
        """What the link has carried since it was made."""
        counted = Path(f"/sys/class/net/{self.name}/statistics")
        return Carried(*(int((counted / name).read_text()) for name in ("tx_bytes", "rx_bytes")))

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Carry nothing within the block, as when a cable is pulled; connections stay open at both ends."""
        _run("ip", "link", "set", self.name, "down")
        try:
            yield
        finally:
            _run("ip", "link", "set", self.name, "up")

    @contextmanager
    def losing(self, percent: int) -> Iterator[None]:
        """Lose this percentage of the packets that come to the host within the block."""
        nft = ("ip", "netns", "exec", self.name, "nft")
        _run(*nft, "add table ip loss; add chain ip loss in { type filter hook input priority 0; }")
        _run(*nft, f"add rule ip loss in numgen random mod 100 < {percent} drop")
        try:
            yield
        finally:
            _run(*nft, "delete table ip loss")


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """This number of hosts, each with a worker's side and ours of a link."""
    made = [Host(f"venn-admit-{number}", f"10.213.{number}.1") for number in range(1, count + 1)]
    try:
        for host in made:
            _run("ip", "netns", "add", host.name)
            _run("ip", "link", "add", host.name, "type", "veth", "peer", "name", "eth0", "netns", host.name)
            _run("ip", "address", "add", f"{host.address}/30", "dev", host.name)
            _run("ip", "link", "set", host.name, "up")
            theirs = host.address.removesuffix("1") + "2"
            _run("ip", "-n", host.name, "address", "add", f"{theirs}/30", "dev", "eth0")
            for device in ("eth0", "lo"):
                _run("ip", "-n", host.name, "link", "set", device, "up")
        yield made
    finally:
        for host in made:
            with suppress(subprocess.CalledProcessError):
                _run("ip", "netns", "delete", host.name)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Forwarder:
    """Carries connections from the hosts' links on to a server of this machine, after a delay.

    Attributes:
        delay: Seconds by which what the server sends comes later: what a round trip takes more.
    """

    def __init__(self, connect: Connect) -> None:
        """connect: opens a connection to the server."""
        self.delay = 0.0
        self._connect = connect
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="forwarder")
        self._thread.start()

    def listen(self, address: str, port: int) -> None:
        """Accept connections at an address of this machine."""
        started = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._accept, address, port), self._loop)
        self._servers.append(started.result())

    def close(self) -> None:
        """Drop all connections, and accept no more."""
        asyncio.run_coroutine_threadsafe(self._drop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _drop(self) -> None:
        for server in self._servers:
            server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            their_reader, their_writer = await self._connect()
        except OSError:
            writer.close()
            return
        async with asyncio.TaskGroup() as both:
            both.create_task(self._carry(reader, their_writer, is_delayed=False))
            both.create_task(self._carry(their_reader, writer, is_delayed=True))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_delayed: bool) -> None:
        """Carry bytes until an end closes, then close the other."""
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_BLOCKS_ON_THE_WAY)

        async def send() -> None:
            while True:
                due, block = await on_the_way.get()
                if not block:
                    return
                await asyncio.sleep(due - self._loop.time())
                writer.write(block)
                await writer.drain()

        try:
            async with asyncio.TaskGroup() as sending:
                sending.create_task(send())
                block = b"-"
                while block:
                    block = await reader.read(_BLOCK_BYTES)
                    await on_the_way.put((self._loop.time() + (self.delay if is_delayed else 0), block))
        except* ConnectionError:
            pass
        writer.close()


@contextmanager
def forwarding(connect: Connect) -> Iterator[Forwarder]:
    """A forwarder, which is closed afterwards."""
    forwarder = Forwarder(connect)
    try:
        yield forwarder
    finally:
        forwarder.close()
