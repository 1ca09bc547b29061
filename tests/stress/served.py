"""A service that runs as a process of its own, and what a test can see of it."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx

from tests.api.processes import serving
from tests.cli.program import Program
from tests.patience import PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Served:
    """The process, where it listens, and a key of scope admin; the program on the same database."""

    program: Program
    process: "subprocess.Popen[bytes]"
    url: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def address(self) -> tuple[str, int]:
        parsed = httpx.URL(self.url)
        assert parsed.port is not None
        return parsed.host, parsed.port

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=PATIENCE_SECONDS)

    @contextmanager
    def most_growth(self, most: int) -> Iterator[None]:
        """See that the process never holds `most` bytes more, while the block runs, than it held before."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        held = self._memory("VmRSS")
        yield
        grown = self._memory("VmHWM") - held
        assert grown < most, f"it held {grown >> 20} MiB more, expected less than {most >> 20}"

    def _memory(self, key: str) -> int:
        """Bytes: VmRSS what is held now, VmHWM the most that was held since that was cleared."""
        found = re.search(rf"{key}:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) << 10


@contextmanager
def service(program: Program) -> Iterator[Served]:
    """The service on the database of a program; no worker is up."""
    key = program("key", "create", "stress", "--scope", "admin", "--json").result["secret"]
    with serving(program) as (process, url):
        yield Served(program, process, url, key)
