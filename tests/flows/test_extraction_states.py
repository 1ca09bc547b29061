"""Runs that need the same states at once: one computes them, the others wait and use them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np

from venn_admit.service.files.output.locks import locked
from venn_admit.service.flows.extraction.options import SourceOptions
from venn_admit.service.flows.extraction.states import OpenedStates, open_states
from venn_admit.service.memory.states.index import INDEX_NAME

OPTIONS = SourceOptions(class_names=("no", "yes"))
DEADLINE = 300.0


class Seen:
    """A display that tells when it shows that something is awaited."""

    def __init__(self) -> None:
        self.waits = Event()

    def show(self, what: str, total: int | None = None) -> None:  # noqa: ARG002 - as every display
        if what.startswith("Waiting for another run"):
            self.waits.set()

    def advance(self, rows: int) -> None:
        pass


def test_a_second_run_waits_for_the_states_of_the_first(tmp_path: Path) -> None:
    path, kept_in = tmp_path / "states.npz", tmp_path / "kept"
    kept_in.mkdir()
    np.savez(path, states=np.ones((6, 4)), lengths=np.array([3, 1, 2]))
    display = Seen()

    def opened() -> OpenedStates:
        return open_states(path, OPTIONS, kept_in=kept_in, display=display, memory_budget=64 << 20)

    folder = opened().shards.folder
    assert not display.waits.is_set()
    aside = folder.rename(tmp_path / "aside")
    with ThreadPoolExecutor() as pool:
        with locked(folder.with_suffix(".lock"), on_wait=lambda: None):
            second = pool.submit(opened)
            assert display.waits.wait(DEADLINE)
            written = (aside.rename(folder) / INDEX_NAME).stat().st_mtime_ns
        assert second.result(DEADLINE).shards.document_count == 3
    assert (folder / INDEX_NAME).stat().st_mtime_ns == written, "the second run wrote nothing"
