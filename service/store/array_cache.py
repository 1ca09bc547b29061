"""Copies of the large immutable arrays, as memory-mapped files that the processes of one machine share.

An entry is named by a revision, a UUID the database changes whenever the content does, so an entry is
never out of date: it is there and right, or it is not there. It appears by a rename, whole.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, Engine

from service.core.types import Float32Array, IntArray, Split, Support
from service.errors import DatabaseError, NotReadyError
from service.store import classifiers, exemplars
from service.store.calibrations import Calibration
from service.store.classifiers import Classifier
from service.store.engine import connect

_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, eq=False)
class CachedSupport:
    """The training exemplars in order of ingestion: ids (N,) int64, vectors (N, D) float32, mapped read-only."""

    ids: IntArray
    vectors: Float32Array
    support: Support


class ArrayCache:
    """The cache in one folder. Entries of a classifier that a newer one replaces are deleted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def support(self, engine: Engine, classifier: Classifier) -> CachedSupport:
        """The training exemplars at the classifier's `support_revision`, which must be the current one."""

        def fill(folder: Path) -> None:
            # One snapshot for the count, the rows and the vectors.
            with connect(engine) as connection:
                connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    _require_revision(connection, classifier)
                    _write_support(connection, classifier, folder)

        folder = self._entry(f"support-{classifier.id}", str(classifier.support_revision), fill)
        with _still_there(folder):
            return CachedSupport(
                ids=np.load(folder / "ids.npy"),
                vectors=np.load(folder / "vectors.npy", mmap_mode="r"),
                support=Support(
                    logits=np.load(folder / "logits.npy", mmap_mode="r"), labels=np.load(folder / "labels.npy")
                ),
            )

    def localizer_vectors(
        self, engine: Engine, classifier: Classifier, calibration: Calibration, exemplar_ids: IntArray
    ) -> Float32Array:
        """The vectors of a snapshot's vp points in the order given, (n_vp, D) float32, mapped read-only."""

        def fill(folder: Path) -> None:
            rows = _block_rows(classifier)
            with (
                connect(engine) as connection,
                _float_rows(folder / "vectors.npy", len(exemplar_ids), classifier.dimension) as append,
            ):
                for start in range(0, len(exemplar_ids), rows):
                    append(exemplars.vectors(connection, classifier, exemplar_ids[start : start + rows]))

        folder = self._entry(f"localizer-{calibration.calibrator_id}", str(calibration.revision), fill)
        with _still_there(folder):
            vectors: Float32Array = np.load(folder / "vectors.npy", mmap_mode="r")
        return vectors

    def _entry(self, owner: str, revision: str, fill: Callable[[Path], None]) -> Path:
        target = self._folder / f"{owner}-{revision}"
        if target.is_dir():
            return target
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self._folder))
        except OSError as error:
            raise DatabaseError(
                f"the cache folder {self._folder} cannot be written: {error}; set VENN_ADMIT_HOME to a writable folder"
            ) from error
        try:
            fill(draft)
            draft.rename(target)
        except OSError as error:
            # Another process made the same entry meanwhile: theirs is as good.
            if not target.is_dir():
                raise DatabaseError(f"{target} cannot be written: {error}; see whether the disk is full") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self._delete_replaced(owner, target)
        return target

    def _delete_replaced(self, owner: str, current: Path) -> None:
        for entry in self._folder.glob(f"{owner}-*"):
            # The process that still maps an entry keeps its data until it lets go.
            if entry != current:
                shutil.rmtree(entry, ignore_errors=True)


@contextmanager
def _still_there(folder: Path) -> Iterator[None]:
    """Another process deletes an entry once there is a newer one, maybe just before this one opens it."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotReadyError(f"{folder} was replaced by a newer copy just now: try again") from error


def _block_rows(classifier: Classifier) -> int:
    return max(1, _BLOCK_BYTES // (4 * max(classifier.dimension, classifier.class_count)))


def _require_revision(connection: Connection, classifier: Classifier) -> None:
    if classifiers.by_id(connection, classifier.id).support_revision != classifier.support_revision:
        raise NotReadyError(f"training exemplars of {classifier.name!r} arrived while they were being read: try again")


def _write_support(connection: Connection, classifier: Classifier, folder: Path) -> None:
    n = exemplars.split_counts(connection, classifier)[Split.TRAIN]
    rows = _block_rows(classifier)
    ids, labels = np.empty(n, np.int64), np.empty(n, np.int64)
    start = 0
    with _float_rows(folder / "logits.npy", n, classifier.class_count) as append:
        for block_ids, block_labels, block_logits in exemplars.support_blocks(connection, classifier, rows):
            part = slice(start, start + len(block_ids))
            ids[part], labels[part] = block_ids, block_labels
            append(block_logits)
            start = part.stop
    with _float_rows(folder / "vectors.npy", n, classifier.dimension) as append:
        for block in exemplars.support_vector_blocks(connection, classifier, rows):
            append(block)
    np.save(folder / "ids.npy", ids)
    np.save(folder / "labels.npy", labels)


@contextmanager
def _float_rows(path: Path, n: int, width: int) -> Iterator[Callable[[Float32Array], object]]:
    """Write a file of (n, width) float32 block by block, in order; OSError where it cannot be written.

    Not through a mapped file: where the disk is full, a write to that kills the process.
    """
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, width)})
        yield lambda block: file.write(np.ascontiguousarray(block, "<f4").data)
