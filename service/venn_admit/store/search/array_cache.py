"""Copies of the large immutable arrays, as memory-mapped files that the processes of one machine share.

An entry is named by a revision, a UUID that the database changes whenever the content does, and by the order of its
rows if the program chooses that order. An entry is therefore never out of date: it is present and correct, or it is
absent. It appears complete, by a rename. If several processes lack the same one, the first makes it while the others
wait for some minutes at most.

What one computation alone needs is mapped too, from files that have lost their names: the kernel can write it to the
disk and take its memory, and nothing is left of it when the computation ends, however it does.
"""

import atexit
import io
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.types import Float32Array, IntArray, Support
from venn_admit.errors import DatabaseError, NotReadyError
from venn_admit.file_lock import file_lock
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.exemplars import exemplars, forgotten, support
from venn_admit.store.exemplars.classifiers import Classifier

# The bytes of rows that the server packs into one value; beyond this, it requests memory again for each value.
_PACKED_BYTES = 1 << 16
# Two, because while workers move on to the newest, some still read the one before.
_KEPT = 2
_TRIES = 5
# How long to wait for another process that makes the same entry.
PATIENCE_SECONDS = 300.0
_REVISION = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ABANDONED_NS = 24 * 3600 * 10**9
# What one call copies of a file at most, so that it can be interrupted.
_COPIED_BYTES = 1 << 28
_VECTORS, _LOGITS, _FINGERPRINT = "vectors.npy", "logits.npy", "fingerprint"

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, eq=False)
class CachedSupport:
    """The training exemplars in order of ingestion: ids (N,) int64, vectors (N, D) float32, mapped read-only."""

    ids: IntArray
    vectors: Float32Array
    support: Support


@dataclass(frozen=True, slots=True, eq=False)
class _KnownSupport:
    """The training exemplars of an older entry: ids (N,) int64, ascending, labels (N,) int64."""

    ids: IntArray
    labels: IntArray

    @property
    def last_id(self) -> int:
        """The highest id; 0, below all, if there is none."""
        return int(self.ids.max(initial=0))


class ArrayCache:
    """The cache in one folder. The most recently used entries of each owner are kept, the others deleted.

    memory_budget: bytes, of which a share is copied at a time; what is computed from the entries has the same budget.
    """

    def __init__(self, folder: Path, *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> None:
        self._folder = folder
        self.memory_budget = memory_budget

    def support(self, engine: Engine, classifier: Classifier) -> CachedSupport:
        """Return the training exemplars as they were when `classifier` was read, without those that wait.

        Raises SupportChangedError if they changed since, unless they are kept here.
        """

        def fill(folder: Path) -> None:
            with consistent_view(engine) as connection:
                support.require_version(connection, classifier)
                _write_support(connection, classifier, folder, self._by_use(f"support-{classifier.id}"))

        def read(folder: Path) -> CachedSupport:
            return CachedSupport(
                ids=np.load(folder / "ids.npy"),
                vectors=_load_vectors(folder),
                support=Support(logits=np.load(folder / _LOGITS, mmap_mode="r"), labels=np.load(folder / "labels.npy")),
            )

        return self._open(engine, f"support-{classifier.id}", str(classifier.support_revision), fill, read)

    def localizer_vectors(
        self, engine: Engine, classifier: Classifier, calibration: Calibration, exemplar_ids: IntArray
    ) -> Float32Array:
        """Return the vectors of a snapshot's vp points in the given order, (n_vp, D) float32, mapped read-only."""

        def fill(folder: Path) -> None:
            with connect(engine) as connection:
                self._write_vectors(folder, connection, classifier, exemplar_ids)

        # The order of the rows is that of the program's index of vp, and another version may use another order.
        order = blake2b(exemplar_ids.tobytes(), digest_size=8).hexdigest()
        return self._open(
            engine, f"localizer-{calibration.calibrator_id}", f"{calibration.revision}-{order}", fill, _load_vectors
        )

    def mapped_vectors(self, connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> Float32Array:
        """Return the vectors of some exemplars in the given order, (n, D) float32, mapped read-only.

        They are no entry: the file has no name any more, and takes room on the disk for as long as the array lives.
        """
        with self._unnamed() as folder:
            self._write_vectors(folder, connection, classifier, exemplar_ids)
            return _load_vectors(folder)

    def mapped_rows(self, vectors: Float32Array, rows: IntArray) -> Float32Array:
        """Return some rows of vectors (n, D), which may be mapped, as a copy (len(rows), D) of the same kind."""
        width = vectors.shape[1]
        step = block_rows(self.memory_budget, 4 * width)
        with self._unnamed() as folder:
            with _float_rows(folder / _VECTORS, len(rows), width) as append:
                for start in range(0, len(rows), step):
                    append(vectors[rows[start : start + step]])
            return _load_vectors(folder)

    def delete_outdated(self, engine: Engine) -> int:
        """Delete the entries of revisions that are no more, which may hold what was removed; return how many.

        A process that has one open keeps its data until it closes it; the next look makes a new entry.
        """
        return self._delete_outdated(engine, self._folder.glob("*-*"))

    def _delete_outdated(self, engine: Engine, entries: Iterable[Path]) -> int:
        found = [entry for entry in entries if _REVISION.search(entry.name)]
        with connect(engine) as connection:
            kept = {str(revision) for revision in forgotten.kept_revisions(connection)}
        outdated = [entry for entry in found if not kept.intersection(_REVISION.findall(entry.name))]
        for entry in outdated:
            shutil.rmtree(entry, ignore_errors=True)
        return len(outdated)

    def _open(
        self, engine: Engine, owner: str, revision: str, fill: Callable[[Path], None], read: Callable[[Path], _Read]
    ) -> _Read:
        for _ in range(_TRIES):
            is_new = not (self._folder / f"{owner}-{revision}").is_dir()
            folder = self._entry(owner, revision, fill)
            try:
                found = read(folder)
            except FileNotFoundError:  # another process deleted it in favour of newer ones
                continue
            if is_new:  # what it holds may have been removed while it was written, unseen by what removed that
                self._delete_outdated(engine, [folder])
            return found
        raise NotReadyError(f"{self._folder}: other processes replace {owner} faster than it can be read; try again")

    def _entry(self, owner: str, revision: str, fill: Callable[[Path], None]) -> Path:
        target = self._folder / f"{owner}-{revision}"
        if target.is_dir():
            _mark_used(target)
            return target
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
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
        """Keep other processes from making the same entry, as far as that can be had: it saves work, no more."""
        lock = self._folder / f".lock-{name}"
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
            self._folder.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self._folder))
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
        with _float_rows(folder / _VECTORS, len(exemplar_ids), classifier.dimension) as append:
            for start in range(0, len(exemplar_ids), step):
                append(exemplars.vectors(connection, classifier, exemplar_ids[start : start + step]))

    def _unwritable(self, error: OSError) -> DatabaseError:
        return DatabaseError(
            f"the cache folder {self._folder} cannot be written: {error}; set VENN_ADMIT_HOME to a writable folder"
        )

    def _delete_least_used(self, owner: str) -> None:
        for entry in self._by_use(owner)[_KEPT:]:
            # A process that still maps an entry keeps its data until it releases it.
            shutil.rmtree(entry, ignore_errors=True)
        for draft in self._folder.glob(".draft-*"):
            if time.time_ns() - _used_at(draft) > _ABANDONED_NS:  # left by a process that was killed
                shutil.rmtree(draft, ignore_errors=True)

    def _by_use(self, owner: str) -> list[Path]:
        return sorted(self._folder.glob(f"{owner}-*"), key=_used_at, reverse=True)


def _delete_own(draft: Path, process: int) -> None:
    """Delete a draft, unless this is a fork of the process that writes it."""
    if os.getpid() == process:
        shutil.rmtree(draft, ignore_errors=True)


def _unwritten(target: Path, error: OSError) -> DatabaseError:
    return DatabaseError(f"{target} cannot be written: {error}; check whether the disk is full")


def _load_vectors(folder: Path) -> Float32Array:
    vectors: Float32Array = np.load(folder / _VECTORS, mmap_mode="r")
    return vectors


def _mark_used(entry: Path) -> None:
    with suppress(FileNotFoundError):
        os.utime(entry)


def _used_at(entry: Path) -> int:
    try:
        return entry.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _write_support(connection: Connection, classifier: Classifier, folder: Path, older: Iterable[Path]) -> None:
    """Write the training exemplars: an older entry that they only add to, if there is one, is copied, the rest read."""
    known = _KnownSupport(np.empty(0, np.int64), np.empty(0, np.int64))
    for entry in older:
        found = _still_known(connection, classifier, entry)
        if found is not None and _copied_rows(classifier, entry, folder, len(found.ids)):
            known = found
            break
    _read_support(connection, classifier, folder, known)


def _still_known(connection: Connection, classifier: Classifier, entry: Path) -> _KnownSupport | None:
    """The training exemplars of an older entry; None if any has changed or gone since, or another trains between them.

    The rows themselves are compared, and not versions: the entry may stem from a database that was since restored to an
    earlier state, and went on from there under the same numbers.
    """
    try:
        known = _KnownSupport(np.load(entry / "ids.npy"), np.load(entry / "labels.npy"))
        fingerprint = (entry / _FINGERPRINT).read_bytes()
    except (OSError, ValueError, EOFError):  # deleted meanwhile, or not whole
        return None
    same = exemplars.support_fingerprint(connection, classifier, up_to=known.last_id) == fingerprint
    return known if same else None


def _copied_rows(classifier: Classifier, entry: Path, folder: Path, n: int) -> bool:
    """Copy the rows of an entry that has n of them; return whether they are all there."""
    try:
        for name, width in ((_LOGITS, classifier.class_count), (_VECTORS, classifier.dimension)):
            _copy(entry / name, folder / name)
            if not _is_whole(folder / name, n, width):
                return False
    except FileNotFoundError:  # another process deleted the entry in favour of newer ones
        return False
    return True


def _read_support(connection: Connection, classifier: Classifier, folder: Path, known: _KnownSupport) -> None:
    """Append the training exemplars that came after those that are known, and write what else an entry holds."""
    new_ids = exemplars.support_ids(connection, classifier, after=known.last_id)
    n, new_labels = len(known.ids) + len(new_ids), [known.labels]
    block_rows = _packed_rows(classifier.class_count)
    with _float_rows(folder / _LOGITS, n, classifier.class_count, known=len(known.ids)) as append:
        for block_labels, block_logits in exemplars.support_blocks(connection, classifier, new_ids, block_rows):
            new_labels.append(block_labels)
            append(block_logits)
    labels = np.concatenate(new_labels)
    assert len(labels) == n, "the training exemplars are read within one snapshot"
    block_rows = _packed_rows(classifier.dimension)
    with _float_rows(folder / _VECTORS, n, classifier.dimension, known=len(known.ids)) as append:
        for block in exemplars.support_vector_blocks(connection, classifier, new_ids, block_rows):
            append(block)
    np.save(folder / "ids.npy", np.concatenate([known.ids, new_ids]))
    np.save(folder / "labels.npy", labels)
    fingerprint = exemplars.support_fingerprint(connection, classifier, up_to=classifier.support_version)
    (folder / _FINGERPRINT).write_bytes(fingerprint)


def _copy(source: Path, target: Path) -> None:
    """Copy a file; the copy shares its blocks if the file system can do that."""
    try:
        with source.open("rb") as read, target.open("wb") as written:
            while os.copy_file_range(read.fileno(), written.fileno(), _COPIED_BYTES):
                pass
    except (AttributeError, OSError):  # macOS, or a file system, does not know the call
        shutil.copyfile(source, target)


@contextmanager
def _float_rows(path: Path, n: int, width: int, *, known: int = 0) -> Iterator[Callable[[Float32Array], object]]:
    """Write a file of (n, width) float32 block by block, in order; OSError if it cannot be written.

    It is not written through a mapped file, because a write to one kills the process if the disk is full.

    known: how many of the rows the file has already.
    """
    path.touch()
    with path.open("r+b") as file:
        file.write(_header(n, width))
        file.seek(4 * known * width, os.SEEK_CUR)
        file.truncate()
        yield lambda block: file.write(np.ascontiguousarray(block, "<f4").data)


def _header(n: int, width: int) -> bytes:
    """The first bytes of a file of (n, width) float32; they are as many whatever n is."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (n, width)})
    return header.getvalue()


def _is_whole(path: Path, n: int, width: int) -> bool:
    """Whether a file of (n, width) float32 is such as `_float_rows` writes."""
    header = _header(n, width)
    with path.open("rb") as file:
        return file.read(len(header)) == header and os.fstat(file.fileno()).st_size == len(header) + 4 * n * width


def _packed_rows(width: int) -> int:
    return max(1, _PACKED_BYTES // (4 * width))
