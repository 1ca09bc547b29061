"""Jobs that workers of the service compute: waiting for them, and their decisions."""

import time
from contextlib import suppress
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import Any

from .bodies import PARQUET
from .errors import InvalidInputError, JobError
from .interface import Progress
from .tables import read_parquet
from .transport import Transport

# The first wait between two looks at a job, and the longest, which it doubles up to.
_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 2.0


def await_job(transport: Transport, classifier: str, job: int, progress: Progress | None) -> None:
    """Wait until a job is done. Raises JobError if it failed or was cancelled.

    Args:
        transport: Asks the service.
        classifier: The classifier's name.
        job: Its number.
        progress: Is called with the rows that are done and all rows, whenever more of them are.
    """
    wait, told = _FIRST_WAIT_SECONDS, -1
    while True:
        found = transport.get("classifiers", classifier, "jobs", job)
        if progress is not None and found["rows_done"] > max(told, 0):
            told = found["rows_done"]
            progress(told, found["rows"])
        if found["state"] == "done":
            return
        if found["state"] != "running":
            raise JobError(f"job {job} {found['state']}: {found['error'] or 'no reason was given'}")
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)


def check_out(out: str | PathLike[str] | None, data: Any = None) -> Path | None:
    """Return where decisions are to be written.

    Raises InvalidInputError if that is no .parquet file of a folder, or the file that is read as data.
    """
    if out is None:
        return None
    path = Path(out)
    if path.suffix.lower() != ".parquet" or not path.parent.is_dir():
        raise InvalidInputError(f"out: expected a name ending in .parquet in a folder that exists, got {path}")
    with suppress(OSError):  # one of the two is missing, so they are not the same
        if isinstance(data, (str, PathLike)) and path.samefile(data):
            raise InvalidInputError(f"out: expected another file than {data}, which is read; choose another name")
    return path


def decisions_of(transport: Transport, classifier: str, job: int, out: Path | None) -> Any:
    """Return the decisions of a job that is done, as a table; out: where its Parquet file goes, complete or not at all.

    Raises:
        InvalidInputError: The job decides on nothing.
        NotReadyError: It is not done.
    """
    path = ("classifiers", classifier, "jobs", job, "scores")
    if out is None:
        with TemporaryFile() as file:
            transport.download(*path, kind=PARQUET, into=file)
            file.seek(0)
            return read_parquet(file)
    with NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}-", delete=False) as file:
        try:
            transport.download(*path, kind=PARQUET, into=file)
            file.seek(0)
            table = read_parquet(file)
            Path(file.name).replace(out)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return table
