"""Pages of the service with many decisions, over HTTP, beside the same pages with a tenth of them.

The first reading is noted apart: a report and a table of methods are kept until what they rest on changes.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx2

from benchmarks.keeping_data import filled
from benchmarks.measure import Measurement, compare
from benchmarks.served import service_process
from benchmarks.storage import folder
from venn_admit.flows.keys.keys import create as create_key
from venn_admit.http.paging import cursor_after

_TURNS = 5
# The only classifier has the key 1, its calibrations 2 and 3.
_CLASSIFIER = "/classifiers/part-0"
_PAGES = {
    "overview": "/",
    "classifier": _CLASSIFIER,
    "report": f"{_CLASSIFIER}/report",
    "table of methods": f"{_CLASSIFIER}/methods",
    "a cell of the partition map": f"{_CLASSIFIER}/calibrations/2/cells/1/0",
    "decisions, the newest 50": f"{_CLASSIFIER}/decisions",
    "decisions, 50 in the middle": _CLASSIFIER + "/decisions?cursor={cursor}",
    "rejections of a calibration": f"{_CLASSIFIER}/decisions?calibration=2&outcome=rejected",
    "decisions on one exemplar": _CLASSIFIER + "/decisions?external_id={exemplar}",
    "a decision": _CLASSIFIER + "/decisions/{middle}",
    "a decision, computed again": _CLASSIFIER + "/decisions/{middle}/replay",
    "jobs": f"{_CLASSIFIER}/jobs",
    "labels": f"{_CLASSIFIER}/labels",
    "label budget": f"{_CLASSIFIER}/labels/budget",
    "form to try a point": f"{_CLASSIFIER}/try",
    "keys": "/keys",
}


def measure(large: bool) -> Iterator[Measurement]:
    count = 1_000_000 if large else 20_000
    with folder() as files, ExitStack() as opened:
        ours, peer = (opened.enter_context(_signed_in(files / str(size), size)) for size in (count, count // 10))
        for what, path in _PAGES.items():
            many, few = _place(path, count), _place(path, count // 10)
            first = _seconds(ours, many)
            found = compare(
                f"page: {what}",
                f"{count:,} decisions",
                f"of {count // 10:,}",
                partial(_get, ours, many),
                partial(_get, peer, few),
                turns=_TURNS,
            )
            # What grows is the service, not this process.
            yield replace(found, ours_peak=None, peer_peak=None, note=f"the first time {first:.2f} s")


@contextmanager
def _signed_in(files: Path, decisions: int) -> Iterator[httpx2.Client]:
    """A client of a service of its own, which holds this number of decisions, signed in to its page."""
    files.mkdir()
    with (
        filled(files / "home", parts=1, decisions=decisions) as engine,
        service_process(engine, files) as (url, _),
        httpx2.Client(base_url=url, timeout=600) as client,
    ):
        key = create_key(engine, "benchmark", scope="admin").text
        client.post("/sign-in", data={"key": key})
        yield client


def _place(path: str, count: int) -> str:
    return path.format(middle=count // 2, cursor=cursor_after(count // 2), exemplar=12_000 + count // 4)


def _get(client: httpx2.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"


def _seconds(client: httpx2.Client, path: str) -> float:
    began = time.perf_counter()
    _get(client, path)
    return time.perf_counter() - began
