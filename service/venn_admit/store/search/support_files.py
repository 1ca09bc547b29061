"""The files of a cache entry: vectors of exemplars, and the training exemplars with their logits and labels."""

import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.types import Float32Array, IntArray, Support
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.classifiers import Classifier

# The bytes of rows that the server packs into one value; beyond this, it requests memory again for each value.
_PACKED_BYTES = 1 << 16
# What one call copies of a file at most, so that it can be interrupted.
_COPIED_BYTES = 1 << 28
VECTORS, _LOGITS, _FINGERPRINT = "vectors.npy", "logits.npy", "fingerprint"


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


def read_support(folder: Path) -> CachedSupport:
    """Return what `write_support` wrote, mapped."""
    return CachedSupport(
        ids=np.load(folder / "ids.npy"),
        vectors=load_vectors(folder),
        support=Support(logits=np.load(folder / _LOGITS, mmap_mode="r"), labels=np.load(folder / "labels.npy")),
    )


def write_support(connection: Connection, classifier: Classifier, folder: Path, older: Iterable[Path]) -> None:
    """Write the training exemplars: an older entry that they only add to, if there is one, is copied, the rest read."""
    known = _KnownSupport(np.empty(0, np.int64), np.empty(0, np.int64))
    for entry in older:
        found = _still_known(connection, classifier, entry)
        if found is not None and _copied_rows(classifier, entry, folder, len(found.ids)):
            known = found
            break
    _append_support(connection, classifier, folder, known)


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
        for name, width in ((_LOGITS, classifier.class_count), (VECTORS, classifier.dimension)):
            _copy(entry / name, folder / name)
            if not _is_whole(folder / name, n, width):
                return False
    except FileNotFoundError:  # another process deleted the entry in favour of newer ones
        return False
    return True


def _append_support(connection: Connection, classifier: Classifier, folder: Path, known: _KnownSupport) -> None:
    """Append the training exemplars that came after those that are known, and write what else an entry holds."""
    new_ids = exemplars.support_ids(connection, classifier, after=known.last_id)
    n, new_labels = len(known.ids) + len(new_ids), [known.labels]
    block_rows = _packed_rows(classifier.class_count)
    with float_rows(folder / _LOGITS, n, classifier.class_count, known=len(known.ids)) as append:
        for block_labels, block_logits in exemplars.support_blocks(connection, classifier, new_ids, block_rows):
            new_labels.append(block_labels)
            append(block_logits)
    labels = np.concatenate(new_labels)
    assert len(labels) == n, "the training exemplars are read within one snapshot"
    block_rows = _packed_rows(classifier.dimension)
    with float_rows(folder / VECTORS, n, classifier.dimension, known=len(known.ids)) as append:
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
def float_rows(path: Path, n: int, width: int, *, known: int = 0) -> Iterator[Callable[[Float32Array], object]]:
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
    """Whether a file of (n, width) float32 is such as `float_rows` writes."""
    header = _header(n, width)
    with path.open("rb") as file:
        return file.read(len(header)) == header and os.fstat(file.fileno()).st_size == len(header) + 4 * n * width


def _packed_rows(width: int) -> int:
    return max(1, _PACKED_BYTES // (4 * width))


def load_vectors(folder: Path) -> Float32Array:
    """Return the vectors of an entry, mapped read-only."""
    vectors: Float32Array = np.load(folder / VECTORS, mmap_mode="r")
    return vectors
