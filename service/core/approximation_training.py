"""Fitting the KNN approximation and the localizer on the knn split.

Source: Schmaltz & Rasooly (2022), eq. 1 and 2 and the appendix on training the KNN: minimise the binary
cross-entropy between the sigmoids of target and output with Adadelta; after an epoch without a new minimum
mask the points that agree already; keep the epoch with the fewest prediction discrepancies on a dev half.
The same data and seed give the same parameters, bit for bit, in whatever order the rows came.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, softmax

from service.core.splits import hash_keys
from service.core.types import (
    Float32Array,
    FloatArray,
    IntArray,
    KnnParameters,
    Neighbours,
    Support,
    TrainingEpoch,
)
from service.errors import InvalidInputError, NotReadyError

LEARNING_RATE = 1.0
BATCH_ROWS = 50
LOCALIZER_DISTANCES = 2**25
EVALUATION_BYTES = 64 * 2**20

OnEpoch = Callable[[TrainingEpoch], None]


@dataclass(frozen=True, slots=True, eq=False)
class KnnFit:
    """Fitted parameters of the KNN, and how they came about.

    log: epoch 0 (the start) to the last. best_epoch: the earliest with the fewest discrepancies on the dev
    half, `dev_discrepancies` of its `dev_count` rows; `parameters` are that epoch's. fit_count: rows of the
    fit half.
    """

    parameters: KnnParameters
    log: tuple[TrainingEpoch, ...]
    best_epoch: int
    fit_count: int
    dev_count: int
    dev_discrepancies: int


@dataclass(frozen=True, slots=True, eq=False)
class LocalizerFit:
    """The fitted localizer, eta_loc > 0 in the units of the vectors, and how it came about as in `KnnFit`."""

    eta_loc: float
    log: tuple[TrainingEpoch, ...]
    best_epoch: int
    fit_count: int
    dev_count: int
    dev_discrepancies: int


def fit_knn(
    neighbours: Neighbours,
    logits: Float32Array,
    support: Support,
    *,
    document_keys: Sequence[str],
    row_keys: Sequence[str],
    seed: int,
    max_epochs: int = 60,
    on_epoch: OnEpoch | None = None,
) -> KnnFit:
    """Fit beta, gamma and eta so that KNN(x) approximates the network's f(x) on the knn split (eq. 1, 2).

    neighbours: of the n rows among the N training exemplars. logits: (n, C) float32, f(x) of the rows.
    support: f(x_k) and labels of the training exemplars. document_keys, row_keys: (n,), the document each row
    belongs to and its name within it, no two alike. seed: in [-2**63, 2**63). max_epochs: >= 0. on_epoch: is
    given each line of the log as it comes.

    Start: beta 0, gamma 1, eta the median of d on the fit half (of its positive distances, if that is 0).
    Computes in one thread; memory: 8 C bytes for every training exemplar that is a neighbour of some row.
    Raises InvalidInputError where shapes, ranges or keys are wrong; NotReadyError where there are fewer than
    two documents, or all neighbours lie at distance 0.
    """
    _check_epochs(max_epochs)
    _check_knn(neighbours, logits, support)
    halves = _cut_halves(document_keys, row_keys, len(logits), seed)

    model = _Knn(neighbours, support, _starting_eta(neighbours.distances[halves.fit_rows]))
    outcome = _train(model, logits, halves, seed, max_epochs, on_epoch)
    class_count = logits.shape[1]
    beta, gamma, eta = np.split(outcome.log[outcome.best_epoch].parameters, (class_count, 2 * class_count))
    return KnnFit(KnnParameters(beta=beta, gamma=gamma, eta=eta.item()), *outcome)


def fit_localizer(
    distances: FloatArray,
    support_knn_logits: FloatArray,
    knn_logits: FloatArray,
    *,
    document_keys: Sequence[str],
    row_keys: Sequence[str],
    seed: int,
    neighbour_count: int = 25,
    max_epochs: int = 60,
    on_epoch: OnEpoch | None = None,
) -> LocalizerFit:
    """Fit eta_loc so that sum_j softmax_j(-dist(x, x_j) / eta_loc) KNN(x_j), over vp, approximates KNN(x).

    distances: (n, n_vp) float64, from rows of the knn split, such as `localizer_rows` chooses, to all of vp;
    may be a memory map. support_knn_logits: (n_vp, C) float64, KNN(x_j). knn_logits: (n, C) float64, KNN(x),
    the target. neighbour_count: K >= 1. The rest as in `fit_knn`.

    Start: the median, on the fit half, of the distance to the K-th nearest point of vp (the farthest, if vp
    has fewer) less that to the nearest; the median of all distances, if that is 0. Computes in one thread.
    Raises InvalidInputError where shapes, ranges or keys are wrong; NotReadyError where there are fewer than
    two documents, vp is empty, or that median is 0 too.
    """
    _check_epochs(max_epochs)
    _check_localizer(distances, support_knn_logits, knn_logits, neighbour_count)
    halves = _cut_halves(document_keys, row_keys, len(knn_logits), seed)

    start = _starting_eta_loc(distances[halves.fit_rows], neighbour_count)
    model = _Localizer(distances, support_knn_logits, start)
    outcome = _train(model, knn_logits, halves, seed, max_epochs, on_epoch)
    return LocalizerFit(outcome.log[outcome.best_epoch].parameters.item(), *outcome)


def localizer_rows(row_keys: Sequence[str], support_count: int, *, seed: int) -> IntArray:
    """Which rows of the knn split to fit the localizer on: its one parameter needs no more of them.

    row_keys: (n,), no two alike. support_count: n_vp >= 1. Returns row numbers, int64: all n, or as many as
    make 2**25 distances (256 MiB) to vp, at least 2; the first in the order of a seeded hash of the row keys,
    which samples all documents and does not depend on the order of the rows.
    """
    hashes = hash_keys(row_keys, seed=seed, purpose="localizer rows").tolist()
    ordered = sorted(zip(hashes, row_keys, range(len(row_keys)), strict=True))
    limit = max(2, LOCALIZER_DISTANCES // support_count)
    return np.array([row for _, _, row in ordered[:limit]], dtype=np.int64)


class _Knn(torch.nn.Module):
    """The KNN's logits (b, C) of a batch of input rows (b,). Its `values`: beta, gamma, eta."""

    def __init__(self, neighbours: Neighbours, support: Support, eta: float) -> None:
        super().__init__()
        used, slots = np.unique(neighbours.indices, return_inverse=True)
        class_count = support.logits.shape[1]
        self.distances = neighbours.distances  # (n, K)
        self.slots: IntArray = slots.reshape(neighbours.indices.shape)  # (n, K), rows of `activations`
        self.labels = support.labels[neighbours.indices]  # (n, K)
        self.activations = torch.tensor(support.logits[used], dtype=torch.float64).tanh()  # (used, C)
        self.row_bytes = 16 * neighbours.indices.shape[1] * class_count
        self.beta = torch.nn.Parameter(torch.zeros(class_count, dtype=torch.float64))
        self.gamma = torch.nn.Parameter(torch.ones(class_count, dtype=torch.float64))
        self.log_eta = torch.nn.Parameter(torch.tensor(eta, dtype=torch.float64).log())

    def forward(self, rows: IntArray) -> torch.Tensor:
        weights = softmax(-torch.from_numpy(self.distances[rows]) / self.log_eta.exp(), dim=1)  # (b, K)
        activations = self.activations[torch.from_numpy(self.slots[rows])]  # (b, K, C)
        network = torch.bmm(weights.unsqueeze(1), activations).squeeze(1)  # (b, 1, K) (b, K, C) -> (b, C)
        labels = torch.from_numpy(self.labels[rows])  # (b, K)
        share = torch.zeros_like(network).scatter_add(1, labels, weights)  # (b, C)
        # ytilde is +1 for the neighbour's own class and -1 for others: its average is twice the share less 1.
        return self.beta + network + self.gamma * (2.0 * share - 1.0)

    def values(self) -> FloatArray:
        eta = self.log_eta.exp().reshape(1)
        return torch.cat([self.beta, self.gamma, eta]).detach().numpy().copy()


class _Localizer(torch.nn.Module):
    """The localizer's logits (b, C) of a batch of input rows (b,). Its `values`: eta_loc."""

    def __init__(self, distances: FloatArray, support_knn_logits: FloatArray, eta_loc: float) -> None:
        super().__init__()
        self.distances = distances  # (n, n_vp)
        self.support_logits = torch.tensor(support_knn_logits, dtype=torch.float64)  # (n_vp, C)
        self.row_bytes = 24 * distances.shape[1]
        self.log_eta = torch.nn.Parameter(torch.tensor(eta_loc, dtype=torch.float64).log())

    def forward(self, rows: IntArray) -> torch.Tensor:
        weights = softmax(-torch.from_numpy(self.distances[rows]) / self.log_eta.exp(), dim=1)  # (b, n_vp)
        return weights @ self.support_logits  # (b, C)

    def values(self) -> FloatArray:
        return self.log_eta.exp().reshape(1).detach().numpy().copy()


_Model = _Knn | _Localizer
_Targets = Float32Array | FloatArray


class _Outcome(NamedTuple):
    """The fields that `KnnFit` and `LocalizerFit` share, in their order."""

    log: tuple[TrainingEpoch, ...]
    best_epoch: int
    fit_count: int
    dev_count: int
    dev_discrepancies: int


@dataclass(frozen=True, slots=True, eq=False)
class _Halves:
    """Input row numbers of the fit half, by document, and of the dev half, in the order of their keys."""

    fit_documents: tuple[IntArray, ...]
    fit_rows: IntArray
    dev_rows: IntArray


def _cut_halves(document_keys: Sequence[str], row_keys: Sequence[str], count: int, seed: int) -> _Halves:
    """Order rows by hash of document, document, hash of row, row; the first half of the documents is to fit.

    Of an odd number of documents the fit half has one more.
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
                f"expected distinct rows, got row {one[3]!r} of document {one[1]!r} twice; pass each row once"
            )
    rows = np.array([row for *_, row in ordered], dtype=np.int64)
    starts = [place for place, (one, other) in enumerate(pairwise(ordered), start=1) if one[1] != other[1]]
    if not starts:
        raise NotReadyError(
            "expected exemplars of at least 2 documents in split knn, some to fit on and others to choose "
            f"the epoch by, got {count} of 1; ingest more held-out data or give split knn a larger share"
        )
    documents = np.split(rows, starts)
    half = (len(documents) + 1) // 2
    return _Halves(
        fit_documents=tuple(documents[:half]),
        fit_rows=np.concatenate(documents[:half]),
        dev_rows=np.concatenate(documents[half:]),
    )


def _train(
    model: _Model,
    targets: _Targets,
    halves: _Halves,
    seed: int,
    max_epochs: int,
    on_epoch: OnEpoch | None,
) -> _Outcome:
    """Train for `max_epochs`, or until the dev half has no discrepancies left."""
    generator = np.random.default_rng(seed % 2**64)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=LEARNING_RATE)
    log: list[TrainingEpoch] = []
    best_epoch, masked, loss = 0, False, np.nan
    with _one_thread():
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
    return _Outcome(
        tuple(log), best_epoch, len(halves.fit_rows), len(halves.dev_rows), log[best_epoch].discrepancies
    )


def _run_epoch(
    model: _Model,
    targets: _Targets,
    batches: Iterator[IntArray],
    optimizer: torch.optim.Optimizer,
    masked: bool,
) -> float:
    """Mean loss over the points it was taken over, NaN for none; one step a batch that has such points."""
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
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        total += loss.item() * len(output)
        count += len(output)
    return total / count if count else np.nan


def _batches(halves: _Halves, generator: np.random.Generator) -> Iterator[IntArray]:
    """Shuffled whole documents, gathered until they hold at least `BATCH_ROWS` rows."""
    documents = [halves.fit_documents[number] for number in generator.permutation(len(halves.fit_documents))]
    rows = np.concatenate(documents)
    document_ends = np.cumsum([len(document) for document in documents])
    start = 0
    while start < len(rows):
        enough = int(np.searchsorted(document_ends, start + BATCH_ROWS))
        stop = int(document_ends[min(enough, len(documents) - 1)])
        yield rows[start:stop]
        start = stop


def _count_discrepancies(model: _Model, targets: _Targets, rows: IntArray) -> int:
    """How many rows the model predicts otherwise than the target does; ties go to the lower class."""
    step = max(1, EVALUATION_BYTES // model.row_bytes)
    count = 0
    with torch.no_grad():
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            predicted = model.forward(block).numpy().argmax(axis=1)
            count += int(np.count_nonzero(predicted != targets[block].argmax(axis=1)))
    return count


@contextmanager
def _one_thread() -> Iterator[None]:
    """One torch thread, so that sums round alike on every machine and workers don't crowd each other."""
    thread_count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(thread_count)


def _starting_eta(distances: FloatArray) -> float:
    median = float(np.median(distances[:, 0]))
    if median > 0:
        return median
    positive = distances[distances > 0]
    if not positive.size:
        raise NotReadyError(
            "expected distances above 0 from split knn to the training exemplars, to scale eta by, got only "
            "zeros; check that the held-out data are no copies of the training data, or ingest more"
        )
    return float(np.median(positive))


def _starting_eta_loc(distances: FloatArray, neighbour_count: int) -> float:
    farthest = min(neighbour_count, distances.shape[1]) - 1
    distances.partition((0, farthest), axis=1)
    spread = float(np.median(distances[:, farthest] - distances[:, 0])) or float(np.median(distances))
    if not spread:
        raise NotReadyError(
            "expected distances above 0 between splits knn and vp, to scale eta_loc by, got a median of 0; "
            "check the held-out data for duplicates, or ingest more"
        )
    return spread


def _check_epochs(max_epochs: int) -> None:
    if max_epochs < 0:
        raise InvalidInputError(f"expected max_epochs >= 0, got {max_epochs}; pass 0 to keep the start")


def _check_knn(neighbours: Neighbours, logits: Float32Array, support: Support) -> None:
    if not len(logits):
        raise NotReadyError(
            "no exemplars in split knn, expected some to fit the KNN on; ingest held-out data"
        )
    if logits.ndim != 2 or support.logits.ndim != 2 or logits.shape[1] != support.logits.shape[1]:
        raise InvalidInputError(
            f"expected logits (n, C) and support logits (N, C), got shapes {logits.shape} and "
            f"{support.logits.shape}; pass logits of one classifier"
        )
    shapes = neighbours.indices.shape, neighbours.distances.shape
    if shapes[0] != shapes[1] or shapes[0][0] != len(logits):
        raise InvalidInputError(
            f"expected neighbours (n, K) of the {len(logits)} rows, got shapes {shapes[0]} and {shapes[1]}; "
            "pass neighbours and logits of the same rows"
        )


def _check_localizer(
    distances: FloatArray, support_knn_logits: FloatArray, knn_logits: FloatArray, neighbour_count: int
) -> None:
    for name, values in (("knn", knn_logits), ("vp", support_knn_logits)):
        if not len(values):
            raise NotReadyError(
                f"no exemplars in split {name}, expected some to fit the localizer on; ingest held-out data"
            )
    same_classes = knn_logits.ndim == 2 and support_knn_logits.shape[1:] == knn_logits.shape[1:]
    if not same_classes or distances.shape != (len(knn_logits), len(support_knn_logits)):
        raise InvalidInputError(
            "expected distances (n, n_vp), KNN logits (n_vp, C) of vp and (n, C) of knn, got shapes "
            f"{distances.shape}, {support_knn_logits.shape} and {knn_logits.shape}; pass arrays that fit"
        )
    if neighbour_count < 1:
        raise InvalidInputError(
            f"expected neighbour_count >= 1, got {neighbour_count}; pass the classifier's K"
        )
