"""Training of a KNN-like approximation: Adadelta with iterative masking, on documents cut into halves.

Source: Schmaltz & Rasooly (2022), the appendix on training the KNN: minimise the binary cross-entropy between the
sigmoids of target and output with Adadelta; after an epoch without a new minimum, mask the points that agree already;
keep the epoch with the fewest prediction discrepancies on a dev half. The same data and seed give the same parameters,
bit for bit, in whatever order the rows come.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.adadelta import adadelta

from venn_admit.core.splits import hash_keys
from venn_admit.core.types import Float32Array, FloatArray, IntArray, TrainingEpoch
from venn_admit.errors import InvalidInputError, NotReadyError

LEARNING_RATE, DECAY, EPSILON = 1.0, 0.9, 1e-6
BATCH_ROWS = 50
EVALUATION_BYTES = 64 * 2**20

OnEpoch = Callable[[TrainingEpoch], None]
Targets = Float32Array | FloatArray


class TrainableModel(torch.nn.Module):
    """A model that can be trained.

    Attributes:
        row_bytes: Memory that a row of a batch takes in `forward`.
    """

    row_bytes: int

    @abstractmethod
    def forward(self, rows: IntArray) -> torch.Tensor:
        """Return the logits of a batch, (b, C) float64."""

    @abstractmethod
    def values(self) -> FloatArray:
        """Return the parameters (P,) as they are stored."""


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Numbers of input rows, cut into two halves.

    Attributes:
        fit_documents: Rows of the fit half, by document.
        fit_rows: The same rows, in the order of their keys.
        dev_rows: Rows of the dev half, in the order of their keys.
    """

    fit_documents: tuple[IntArray, ...]
    fit_rows: IntArray
    dev_rows: IntArray


class Fit(NamedTuple):
    """What was fitted, as its log has it.

    Attributes:
        log: One line for each epoch, from epoch 0 (the start) to the last.
        best_epoch: The earliest epoch with the fewest discrepancies on the dev half.
        fit_count: Rows of the fit half.
        dev_count: Rows of the dev half.
        dev_discrepancies: Rows of the dev half that are discrepant in the best epoch.
    """

    log: tuple[TrainingEpoch, ...]
    best_epoch: int
    fit_count: int
    dev_count: int
    dev_discrepancies: int


def cut_halves(document_keys: Sequence[str], row_keys: Sequence[str], count: int, seed: int) -> Halves:
    """Cut the documents into a half to fit on and a half to choose the epoch by.

    Rows are ordered by hash of the document, document, hash of the row and row. The first half of the documents is the
    fit half; if their number is odd, it has one more than the dev half.

    Raises:
        NotReadyError: There are fewer than two documents.
    """
    if not len(document_keys) == len(row_keys) == count:
        raise InvalidInputError(
            f"expected a document key and a row key for each of {count} rows, "
            f"got {len(document_keys)} and {len(row_keys)}; pass keys and arrays of the same rows"
        )
    document_hashes = hash_keys(document_keys, seed=seed, purpose="knn documents").tolist()
    row_hashes = hash_keys(row_keys, seed=seed, purpose="knn rows").tolist()
    ordered = sorted(zip(document_hashes, document_keys, row_hashes, row_keys, range(count), strict=True))
    for one, other in pairwise(ordered):
        if one[:4] == other[:4]:
            raise InvalidInputError(
                f"expected distinct rows, got row {one[3]!r} of document {one[1]!r} twice; pass each row only once"
            )
    rows = np.array([row for *_, row in ordered], dtype=np.int64)
    starts = [place for place, (one, other) in enumerate(pairwise(ordered), start=1) if one[1] != other[1]]
    if not starts:
        raise NotReadyError(
            "expected exemplars of at least 2 documents in split knn, some to fit on and others to choose "
            f"the epoch by, got {count} of a single one; ingest more held-out data or give split knn a larger share"
        )
    documents = np.split(rows, starts)
    half = (len(documents) + 1) // 2
    return Halves(
        fit_documents=tuple(documents[:half]),
        fit_rows=np.concatenate(documents[:half]),
        dev_rows=np.concatenate(documents[half:]),
    )


class _Adadelta:
    """Takes steps as `torch.optim.Adadelta` does, which would first import torch's compiler, for a second and a half.

    Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012), algorithm 1.
    """

    def __init__(self, parameters: Iterable[torch.Tensor]):
        self._parameters = list(parameters)
        self._mean_squares = [torch.zeros_like(one) for one in self._parameters]  # of gradients
        self._mean_squared_steps = [torch.zeros_like(one) for one in self._parameters]
        self._counts = [torch.zeros(()) for _ in self._parameters]

    def step(self, loss: torch.Tensor) -> None:
        """Change the parameters by a step that lowers the loss."""
        gradients = torch.autograd.grad(loss, self._parameters)
        with torch.no_grad():
            adadelta(
                self._parameters,
                list(gradients),
                self._mean_squares,
                self._mean_squared_steps,
                self._counts,
                lr=LEARNING_RATE,
                rho=DECAY,
                eps=EPSILON,
                weight_decay=0.0,
                maximize=False,
            )


def train(
    model: TrainableModel, targets: Targets, halves: Halves, seed: int, max_epochs: int, on_epoch: OnEpoch | None
) -> Fit:
    """Train for `max_epochs`, or until the dev half has no discrepancies left."""
    generator = np.random.default_rng(seed % 2**64)
    optimizer = _Adadelta(model.parameters())
    log: list[TrainingEpoch] = []
    best_epoch, masked, loss = 0, False, np.nan
    with torch_threads(1):  # so that sums round alike everywhere, and workers do not crowd each other
        for epoch in range(max_epochs + 1):
            if epoch > 0:
                loss = _run_epoch(model, targets, _batches(halves, generator), optimizer, masked)
            discrepancies = _count_discrepancies(model, targets, halves.dev_rows)
            log.append(TrainingEpoch(epoch, loss, masked, discrepancies, model.values()))
            if on_epoch is not None:
                on_epoch(log[-1])
            improved = epoch == 0 or discrepancies < log[best_epoch].discrepancies
            if improved:
                best_epoch = epoch
            if discrepancies == 0:
                break
            masked = not improved
    return Fit(tuple(log), best_epoch, len(halves.fit_rows), len(halves.dev_rows), log[best_epoch].discrepancies)


def _run_epoch(
    model: TrainableModel, targets: Targets, batches: Iterator[IntArray], optimizer: _Adadelta, masked: bool
) -> float:
    """Take a step for each batch that has unmasked points; return the mean loss of these, NaN if there are none."""
    total, count = 0.0, 0
    for rows in batches:
        target = torch.from_numpy(targets[rows]).double()  # (b, C)
        output = model.forward(rows)  # (b, C)
        if masked:
            discrepant = output.argmax(dim=1) != target.argmax(dim=1)
            if not discrepant.any():
                continue
            target, output = target[discrepant], output[discrepant]
        loss = binary_cross_entropy_with_logits(output, target.sigmoid())
        optimizer.step(loss)
        total += loss.item() * len(output)
        count += len(output)
    return total / count if count else np.nan


def _batches(halves: Halves, generator: np.random.Generator) -> Iterator[IntArray]:
    """Yield shuffled whole documents, gathered until they hold at least `BATCH_ROWS` rows."""
    documents = [halves.fit_documents[number] for number in generator.permutation(len(halves.fit_documents))]
    rows = np.concatenate(documents)
    document_ends = np.cumsum([len(document) for document in documents])
    start = 0
    while start < len(rows):
        enough = int(np.searchsorted(document_ends, start + BATCH_ROWS))
        stop = int(document_ends[min(enough, len(documents) - 1)])
        yield rows[start:stop]
        start = stop


def _count_discrepancies(model: TrainableModel, targets: Targets, rows: IntArray) -> int:
    """Count the rows whose prediction by the model differs from the target's; ties go to the lower class."""
    step = max(1, EVALUATION_BYTES // model.row_bytes)
    count = 0
    with torch.no_grad():
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            predicted = model.forward(block).numpy().argmax(axis=1)
            count += int(np.count_nonzero(predicted != targets[block].argmax(axis=1)))
    return count


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Use this number of torch's threads within the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check_epochs(max_epochs: int) -> None:
    """Check the number of epochs of a fit."""
    if max_epochs < 0:
        raise InvalidInputError(f"expected max_epochs >= 0, got {max_epochs}; pass 0 to keep the starting values")
