"""Where files go. Each appears under its name once it is complete; until then, an existing file stays as it was."""

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from venn_admit.errors import InvalidInputError
from venn_admit.file_lock import file_lock
from venn_admit.files.temporary import is_running

REPORT_ENDINGS = (".html", ".json", ".png")
"""The endings of the files in a folder of reports."""
# The part of a name that its partial file keeps: short enough for any file system, even at four bytes a character.
_NAME_PART = 40
_PARTIAL = re.compile(r".*\.(?P<process>[0-9]+)-[0-9a-f]{8}\.partial")


def check_output(path: Path, endings: Sequence[str], *inputs: Path) -> None:
    """Raise InvalidInputError unless an output can be written to `path`; called before long work, not after it.

    endings: of the formats that can be written, such as ".csv". inputs: the files that the same command reads; an
    output never replaces one of them, by whatever path or link it is named.
    """
    if path.suffix.lower() not in endings:
        got = repr(path.suffix) if path.suffix else "no ending"
        raise InvalidInputError(
            f"{path}: expected a name ending in {' or '.join(endings)}, got {got}; choose one of these formats"
        )
    _check_name(path)
    occupied = path.exists() and not path.is_file()
    if occupied or not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidInputError(
            f"{path}: expected the name of a file in a folder that exists and can be written; check the folder"
        )
    _check_differs(path, inputs)


def make_folder(folder: Path, *inputs: Path) -> None:
    """Make the folder for a report if it is missing; called before the report is computed, not after it.

    Raises InvalidInputError if that fails, if the folder cannot be written, or if a file in it that a report may
    replace is one of the inputs.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [file for file in folder.iterdir() if file.suffix.lower() in REPORT_ENDINGS]
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        got = "a file" if isinstance(error, FileExistsError) else error
        raise InvalidInputError(f"{folder}: expected a folder for the report, got {got}; choose another") from error
    for file in files:
        _check_differs(file, inputs)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file beside the path; rename it to the path if the context succeeds, and remove it otherwise."""
    with writing(path):
        _check_name(path)
        occupied = path.exists() and not path.is_file()
    if occupied:  # a rename would replace even a device
        raise InvalidInputError(f"{path}: expected the name of a file, got the name of something else")
    partial = path.with_name(f"{path.name[:_NAME_PART]}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    with writing(path):
        file = partial.open("xb")
    try:
        with file:
            yield file
            with writing(path):
                file.flush()
                os.fsync(file.fileno())
        with writing(path):
            partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def remove_partials(folder: Path) -> None:
    """Remove the partial files of `replacing` that processes which were killed left in a folder."""
    with writing(folder):
        for path in folder.iterdir():
            named = _PARTIAL.fullmatch(path.name)
            if named and not is_running(int(named["process"])):
                path.unlink(missing_ok=True)


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Make a new folder inside `folder`; its files move up into `folder` if the context succeeds.

    On an error none of them is left, and `folder` is as it was. An OSError becomes an InvalidInputError.
    """
    with writing(folder):
        partial = Path(tempfile.mkdtemp(prefix=".", suffix=".partial", dir=folder))
        try:
            yield partial
            files = sorted(partial.iterdir())
            for file in files:
                with file.open("rb") as written:
                    os.fsync(written.fileno())
            for file in files:
                file.replace(folder / file.name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into an InvalidInputError that names the output."""
    try:
        yield
    except OSError as error:
        raise InvalidInputError(
            f"{path}: expected a place to write to, got {error}; check the folder, its permissions and its free space"
        ) from error


def _check_name(path: Path) -> None:
    """Raise InvalidInputError for a name that the file system does not accept, such as one that is too long."""
    with writing(path), suppress(FileNotFoundError, NotADirectoryError):
        path.lstat()


def _check_differs(path: Path, inputs: Sequence[Path]) -> None:
    for given in inputs:
        with suppress(OSError):  # one of the two is missing, so they are not the same
            if path.samefile(given):
                raise InvalidInputError(
                    f"{path}: expected an output that is not an input, got the file that is read as {given}; "
                    "choose another name"
                )


@contextmanager
def locked(path: Path, on_wait: Callable[[], object]) -> Iterator[None]:
    """Hold a lock while the context lasts, as `file_lock` does.

    Raises InvalidInputError if the file cannot be made or locked.
    """
    with ExitStack() as held:
        with writing(path):
            held.enter_context(file_lock(path, on_wait))
        yield
