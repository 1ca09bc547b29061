"""Read the files of a folder from one on, and say of each how it ended and the most memory there was.

Run as a program of its own: what others hold in memory, or have held, does not count.
"""

import json
import re
import sys
from pathlib import Path

from tests.files.hostile import CLASS_NAMES, DIMENSION
from venn_admit.errors import VennAdmitError
from venn_admit.files import read_exemplars
from venn_admit.files.labels import LabelRules, read_labels
from venn_admit.files.received import STREAM_ENDING, ReceivedFile

STATUS = Path("/proc/self/status")


def memory(key: str) -> int:
    """Bytes: VmRSS what is in use, VmHWM the most that was since `forget_peak`."""
    found = re.search(rf"{key}:\s+(\d+) kB", STATUS.read_text())
    assert found is not None
    return int(found[1]) << 10


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def read(path: Path, memory_budget: int) -> None:
    if path.name.startswith("label file"):
        if path.suffix == STREAM_ENDING:
            received = ReceivedFile(path, path.name, path.name, memory_budget)
            received.read(LabelRules(CLASS_NAMES, "random"))
            return
        read_labels(path, LabelRules(CLASS_NAMES, "random"), memory_budget)
        return
    if path.suffix == STREAM_ENDING:
        received = ReceivedFile(path, path.name, path.name, memory_budget)
        for _ in received.batches(dimension=DIMENSION, class_count=len(CLASS_NAMES), class_names=CLASS_NAMES):
            pass
        return
    for _ in read_exemplars(
        path,
        dimension=DIMENSION,
        class_count=len(CLASS_NAMES),
        class_names=CLASS_NAMES,
        memory_budget=memory_budget,
    ):
        pass


def main(folder: Path, memory_budget: int, first: str) -> None:
    for path in sorted((path for path in folder.iterdir() if path.name >= first), key=lambda path: path.name):
        forget_peak()
        before = memory("VmRSS")
        kind, code, said = "", 0, ""
        try:
            read(path, memory_budget)
        except VennAdmitError as error:
            code, said = error.exit_code, str(error)
        except Exception as error:
            kind, said = type(error).__name__, str(error)
        peak = memory("VmHWM") - before
        outcome = {"file": path.name, "code": code, "kind": kind, "peak": peak, "said": said[:300]}
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
