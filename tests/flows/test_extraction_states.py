"""States that are kept: of runs that need them at once, one computes them; a renamed copy has ids of its own."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from venn_admit.files.output.atomic import locked
from venn_admit.flows.extraction.options import SourceOptions
from venn_admit.flows.extraction.states import OpenedStates, Resources, open_states
from venn_admit.layer.states.conversion import document_ids
from venn_admit.layer.states.index import INDEX_NAME

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
        return open_states(path, OPTIONS, Resources(kept_in, 64 << 20, display))

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


@pytest.mark.parametrize("ending", ["npz", "parquet"])
@pytest.mark.parametrize("has_ids", [True, False])
def test_a_renamed_copy_has_the_ids_of_its_name(tmp_path: Path, ending: str, has_ids: bool) -> None:
    first, copy, kept_in = tmp_path / f"monday.{ending}", tmp_path / f"tuesday.{ending}", tmp_path / "kept"
    kept_in.mkdir()
    states, ids = np.ones((3, 1, 4)), ["a", "b", "c"]
    if ending == "npz":
        arrays: dict[str, Any] = {"states": states.reshape(3, 4), "lengths": np.ones(3, np.int64)}
        np.savez(first, **arrays | ({"id": np.array(ids)} if has_ids else {}))
    else:
        pq.write_table(pa.table({"states": states.tolist()} | ({"external_id": ids} if has_ids else {})), first)
    copyfile(first, copy)
    found = [open_states(path, OPTIONS, Resources(kept_in, 64 << 20, Seen())).shards for path in (first, copy, first)]
    assert found[0].folder == found[2].folder
    assert (found[0].folder == found[1].folder) == has_ids
    for path, shards in zip((first, copy), found, strict=False):
        expected = ids if has_ids else [f"{path.stem}:{row}" for row in range(3)]
        assert shards.external_ids == expected == list(document_ids(path, kind="document"))
        assert shards.called == path, "its user knows the file, not the folder that its states are kept in"
