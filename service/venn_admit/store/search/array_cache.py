"""Copies of the large immutable arrays, as memory-mapped files that the processes of one machine share.

An entry is named by a revision, a UUID that the database changes whenever the content does, and by the order of its
rows if the program chooses that order. An entry is therefore never out of date: it is present and correct, or it is
absent. It appears complete, by a rename. If several processes lack the same one, the first makes it while the others
wait for some minutes at most.

What one computation alone needs is mapped too, from files that have lost their names: the kernel can write it to the
disk and take its memory, and nothing is left of it when the computation ends, however it does.
"""

import atexit
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, Engine

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import DatabaseError, NotReadyError
from venn_admit.file_lock import file_lock
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.exemplars import exemplars, forgotten, support
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.search.support_files import (
    VECTORS,
    CachedSupport,
    float_rows,
    load_vectors,
    read_support,
    write_support,
)

if TYPE_CHECKING:
    from venn_admit.store.calibrations.calibrations import Calibration

# Two, because while workers move on to the newest, some still read the one before.
_KEPT = 2
_TRIES = 5
# How long to wait for another process that makes the same entry.
PATIENCE_SECONDS = 300.0
_REVISION = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ABANDONED_NS = 24 * 3600 * 10**9

_Read = TypeVar("_Read")


class ArrayCache:
    """The cache in one folder. The most recently used entries of each owner are kept, the others deleted.

    memory_budget: bytes, of which a share is copied at a time; what is computed from the entries has the same budget.
    """

    def __init__(self, folder: Path, *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> None:
        self.folder = folder
        self.memory_budget = memory_budget

    def support(self, engine: Engine, classifier: Classifier) -> CachedSupport:
        """Return the training exemplars as they were when `classifier` was read, without those that wait.

        Raises SupportChangedError if they changed since, unless they are kept here.
        """

        def fill(folder: Path) -> None:
            with consistent_view(engine) as connection:
                support.require_version(connection, classifier)
                write_support(connection, classifier, folder, self._by_use(f"support-{classifier.id}"))

        return self._open(engine, f"support-{classifier.id}", str(classifier.support_revision), fill, read_support)

    def localizer_vectors(
        self, engine: Engine, classifier: Classifier, calibration: "Calibration", exemplar_ids: IntArray
    ) -> Float32Array:
        """Return the vectors of a snapshot's vp points in the given order, (n_vp, D) float32, mapped read-only."""

        def fill(folder: Path) -> None:
            with connect(engine) as connection:
                self._write_vectors(folder, connection, classifier, exemplar_ids)

        # The order of the rows is that of the program's index of vp, and another version may use another order.
        order = blake2b(exemplar_ids.tobytes(), digest_size=8).hexdigest()
        return self._open(
            engine, f"localizer-{calibration.calibrator_id}", f"{calibration.revision}-{order}", fill, load_vectors
        )

    def mapped_vectors(self, connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> Float32Array:
        """Return the vectors of some exemplars in the given order, (n, D) float32, mapped read-only.

        They are not an entry: the file has no name any more, and takes disk space until the array is released.
        """
        with self._unnamed() as folder:
            self._write_vectors(folder, connection, classifier, exemplar_ids)
            return load_vectors(folder)

    def mapped_rows(self, vectors: Float32Array, rows: IntArray) -> Float32Array:
        """Return some rows of vectors (n, D), which may be mapped, as a copy (len(rows), D) of the same kind."""
        width = vectors.shape[1]
        step = block_rows(self.memory_budget, 4 * width)
        with self._unnamed() as folder:
            with float_rows(folder / VECTORS, len(rows), width) as append:
                for start in range(0, len(rows), step):
                    append(vectors[rows[start : start + step]])
            return load_vectors(folder)

    def delete_outdated(self, engine: Engine) -> int:
        """Delete the entries of revisions that no longer exist, which may hold what was removed; return how many.

        A process that has one open keeps its data until it closes it; the next look makes a new entry.
        """
        return self._delete_outdated(engine, self.folder.glob("*-*"))

    def _delete_outdated(self, engine: Engine, entries: Iterable[Path]) -> int:
        found = {entry: revisions for entry in entries if (revisions := _REVISION.findall(entry.name))}
        with connect(engine) as connection:
            kept = forgotten.used_revisions(connection, {one for revisions in found.values() for one in revisions})
        outdated = [entry for entry, revisions in found.items() if not kept.intersection(revisions)]
        for entry in outdated:
            shutil.rmtree(entry, ignore_errors=True)
        return len(outdated)

    def _open(
        self, engine: Engine, owner: str, revision: str, fill: Callable[[Path], None], read: Callable[[Path], _Read]
    ) -> _Read:
        for _ in range(_TRIES):
            is_new = not (self.folder / f"{owner}-{revision}").is_dir()
            folder = self._entry(owner, revision, fill)
            try:
                found = read(folder)
            except FileNotFoundError:  # another process deleted it in favour of newer ones
                continue
            if is_new:  # what it holds may have been removed while it was written, unseen by what removed that
                self._delete_outdated(engine, [folder])
            return found
        raise NotReadyError(f"{self.folder}: other processes replace {owner} faster than it can be read; try again")

    def _entry(self, owner: str, revision: str, fill: Callable[[Path], None]) -> Path:
        target = self.folder / f"{owner}-{revision}"
        if target.is_dir():
            _mark_used(target)
            return target
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        with self._alone(f"{owner}-{revision[:8]}"):
            if not target.is_dir():  # else another process made it meanwhile
                self._make(target, fill)
        _mark_used(target)
        self._delete_least_used(owner)
        return target

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Keep other processes from making the same entry, if possible: it only saves work."""
        lock = self.folder / f".lock-{name}"
        with ExitStack() as held:
            with suppress(OSError):  # another process stands still, or the file system knows no locks
                held.enter_context(file_lock(lock, patience_seconds=PATIENCE_SECONDS))
                held.callback(lock.unlink, missing_ok=True)
            yield

    def _make(self, target: Path, fill: Callable[[Path], None]) -> None:
        with self._draft() as draft:
            try:
                fill(draft)
                draft.rename(target)
            except OSError as error:
                # Another process made the same entry without the lock, which is as good.
                if not target.is_dir():
                    raise _unwritten(target, error) from error

    @contextmanager
    def _unnamed(self) -> Iterator[Path]:
        """A folder for what is only mapped, and is gone with its files once the block ends."""
        with self._draft() as folder:
            try:
                yield folder
            except OSError as error:
                raise _unwritten(folder, error) from error

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self.folder))
        except OSError as error:
            raise self._unwritable(error) from error
        # The process may end while a thread that it does not wait for writes.
        delete = partial(_delete_own, draft, os.getpid())
        atexit.register(delete)
        try:
            yield draft
        finally:
            delete()
            atexit.unregister(delete)

    def _write_vectors(
        self, folder: Path, connection: Connection, classifier: Classifier, exemplar_ids: IntArray
    ) -> None:
        step = block_rows(self.memory_budget, 4 * classifier.dimension)
        with float_rows(folder / VECTORS, len(exemplar_ids), classifier.dimension) as append:
            for start in range(0, len(exemplar_ids), step):
                append(exemplars.vectors(connection, classifier, exemplar_ids[start : start + step]))

    def _unwritable(self, error: OSError) -> DatabaseError:
        return DatabaseError(
            f"the cache folder {self.folder} cannot be written: {error}; set VENN_ADMIT_HOME to a writable folder"
        )

    def _delete_least_used(self, owner: str) -> None:
        for entry in self._by_use(owner)[_KEPT:]:
            # A process that still maps an entry keeps its data until it releases it.
            shutil.rmtree(entry, ignore_errors=True)
        for draft in self.folder.glob(".draft-*"):
            if time.time_ns() - _used_at(draft) > _ABANDONED_NS:  # left by a process that was killed
                shutil.rmtree(draft, ignore_errors=True)

    def _by_use(self, owner: str) -> list[Path]:
        return sorted(self.folder.glob(f"{owner}-*"), key=_used_at, reverse=True)


def _delete_own(draft: Path, process: int) -> None:
    """Delete a draft, unless this is a fork of the process that writes it."""
    if os.getpid() == process:
        shutil.rmtree(draft, ignore_errors=True)


def _unwritten(target: Path, error: OSError) -> DatabaseError:
    return DatabaseError(f"{target} cannot be written: {error}; check whether the disk is full")


def _mark_used(entry: Path) -> None:
    with suppress(FileNotFoundError):
        os.utime(entry)


def _used_at(entry: Path) -> int:
    try:
        return entry.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
