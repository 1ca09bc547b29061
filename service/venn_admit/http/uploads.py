"""Bodies that do not fit into memory: each is received, block by block, into a file that is gone after the request."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any

import structlog
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from venn_admit.files.received import STREAM_ENDING, ReceivedFile
from venn_admit.files.records import NOTHING_STATED, Stated
from venn_admit.files.temporary import UPLOADS, remove_abandoned, temporary_name
from venn_admit.flows.keys.keys import Caller
from venn_admit.http.limits import allow
from venn_admit.http.problems import Refused
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit_client.bodies import ARROW_STREAM, CSV, PARQUET
from venn_admit_client.codes import Problem

EXEMPLAR_FILES: Mapping[str, str] = {PARQUET: ".parquet", ARROW_STREAM: STREAM_ENDING}
LABEL_FILES: Mapping[str, str] = {CSV: ".csv", PARQUET: ".parquet", ARROW_STREAM: STREAM_ENDING}
"""What a body may be, by its media type, with the ending of such a file."""

# The uploads of one key in one process, so that they do not fill the disk.
MOST_AT_A_TIME = 4
RETRY_SECONDS = 5
_BLOCK_BYTES = 1 << 20

log = structlog.get_logger()


class Uploads:
    """The uploads that an application receives: how many of each key there are now."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()

    @contextmanager
    def counted(self, caller: Caller) -> Iterator[None]:
        """Count an upload while the block runs. Raises Refused if the key has as many as it may have."""
        if self._running[caller.identity] >= MOST_AT_A_TIME:
            raise Refused(
                429,
                Problem.TOO_MANY,
                f"expected at most {MOST_AT_A_TIME} uploads with a key at a time, got another; wait until one is done",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        self._running[caller.identity] += 1
        try:
            yield
        finally:
            self._running[caller.identity] -= 1


def body_of(kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return how a body of these media types is documented."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, schema)}}


def takes_file(route: APIRoute) -> bool:
    """Whether the body of a route is such a file, as its documentation says."""
    return "requestBody" in (route.openapi_extra or {})


@asynccontextmanager
async def received(
    request: Request, runtime: Runtime, kinds: Mapping[str, str], name: str, stated: Stated = NOTHING_STATED
) -> AsyncIterator[ReceivedFile]:
    """Receive a body into a file, which exists, for its owner alone, until the block ends.

    Args:
        request: Its key was checked, and its body was not read.
        runtime: Its settings say how large a body may be, and how long it may take.
        kinds: What the body may be, as `EXEMPLAR_FILES`.
        name: What is recorded as the source of what it holds.
        stated: What the request states of exemplars.

    Raises:
        Refused: The body has another type, is too large or too slow or not complete, or cannot be kept.
    """
    ending = _ending(request, kinds)
    settings = runtime.settings
    with _admitted(request, settings), temporary_file(settings.home, ending) as path:
        with _writing(), await run_in_threadpool(_create, path) as file:
            await _receive(request, file, settings.upload_seconds)
        yield ReceivedFile(path, name, "the body", runtime.memory_budget, stated)


async def skip_file(request: Request, settings: Settings) -> None:
    """Read a body as `received` does, and keep nothing of it. Raises Refused if it is too large, too slow or cut."""
    with _admitted(request, settings):
        async with _in_time(settings.upload_seconds):
            async for _ in request.stream():
                pass


@contextmanager
def _admitted(request: Request, settings: Settings) -> Iterator[None]:
    """Let a body be as large as a file may be, and count it among the uploads of its key while the block runs."""
    allow(request, settings.upload_mb << 20)
    with request.app.state.uploads.counted(request.state.caller):
        yield


@contextmanager
def _writing() -> Iterator[None]:
    """Refuse a body that the system does not let us write."""
    try:
        yield
    except OSError as error:
        log.error("upload cannot be kept", reason=str(error))  # noqa: TRY400 - no fault of the program
        raise Refused(
            503,
            Problem.NO_ROOM,
            "the service cannot keep the body; try again, or ask the service's operator, whose log says more",
            headers={"Retry-After": str(RETRY_SECONDS)},
        ) from error


def _ending(request: Request, kinds: Mapping[str, str]) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if "content-encoding" in request.headers or given not in kinds:
        raise Refused(
            415,
            Problem.UNSUPPORTED_MEDIA_TYPE,
            f"expected a body with Content-Type {' or '.join(kinds)} and without Content-Encoding; name its type, and "
            "send it as it is: these formats are compressed by themselves",
        )
    return kinds[given]


@contextmanager
def temporary_file(home: Path, ending: str) -> Iterator[Path]:
    """Return the path of a file to write, which is removed as the block ends; readers that have it open read on.

    Raises Refused if the folder cannot be made.
    """
    with _writing():
        _prepare(home / UPLOADS)
    path = home / UPLOADS / temporary_name(ending)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _prepare(folder: Path) -> None:
    """Make the folder, for its owner alone, and remove what was left behind."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_abandoned(folder)


def _create(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def _receive(request: Request, file: IO[bytes], seconds: float) -> None:
    block = bytearray()
    async with _in_time(seconds):
        async for part in request.stream():
            block += part
            if len(block) >= _BLOCK_BYTES:
                await run_in_threadpool(file.write, bytes(block))
                block.clear()
    await run_in_threadpool(file.write, bytes(block))
    await run_in_threadpool(file.flush)


@asynccontextmanager
async def _in_time(seconds: float) -> AsyncIterator[None]:
    """Refuse a body that the block has not read to its end after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise Refused(
            408,
            Problem.BODY_TOO_SLOW,
            f"expected the whole body within {seconds:g} s; send fewer rows at a time",
            headers={"Connection": "close"},
        ) from error
