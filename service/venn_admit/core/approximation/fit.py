"""The fits on the knn split: the KNN's parameters, and the localizer's one parameter, whose target is the KNN's output.

Source: Schmaltz & Rasooly (2022), eq. 1 and 2, the appendix on training the KNN, and the localizer of the Venn-ADMIT
predictor; docs/PROCEDURE.md, sections 1 and 5.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import softmax

from venn_admit.core.approximation.training import Fit, OnEpoch, TrainableModel, check_epochs, cut_halves, train
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import Float32Array, FloatArray, IntArray, KnnParameters, Neighbours, Support
from venn_admit.errors import InvalidInputError, NotReadyError

LOCALIZER_DISTANCES = 2**25


class KnnFit(Fit):
    """The fit of the KNN."""

    @property
    def parameters(self) -> KnnParameters:
        """The parameters of the best epoch."""
        class_count = len(self.log[0].parameters) // 2
        beta, gamma, eta = np.split(self.log[self.best_epoch].parameters, (class_count, 2 * class_count))
        return KnnParameters(beta=beta, gamma=gamma, eta=eta.item())


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

    At the start, beta is 0, gamma is 1, and eta is the median of d on the fit half (of its positive distances, if that
    median is 0). The fit runs in one thread and takes 8 C bytes of memory for every training exemplar that is a
    neighbour of some row.

    Args:
        neighbours: (n, K), of the n rows among the N training exemplars.
        logits: (n, C) float32, f(x) of the rows.
        support: f(x_k) and labels of the training exemplars.

    Raises:
        NotReadyError: There are fewer than two documents, or all neighbours lie at distance 0.
    """
    check_epochs(max_epochs)
    _check_knn(neighbours, logits, support)
    halves = cut_halves(document_keys, row_keys, len(logits), seed)

    model = _Knn(neighbours, support, _starting_eta(neighbours.distances[halves.fit_rows]))
    return KnnFit(*train(model, logits, halves, seed, max_epochs, on_epoch))


class _Knn(TrainableModel):
    """The KNN's logits (b, C) of a batch of input rows (b,). Its `values` are beta, gamma and eta."""

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
        # ytilde is +1 for the neighbour's own class and -1 for others, so its average is twice the share less 1.
        return self.beta + network + self.gamma * (2.0 * share - 1.0)

    def values(self) -> FloatArray:
        eta = self.log_eta.exp().reshape(1)
        return torch.cat([self.beta, self.gamma, eta]).detach().numpy().copy()


def _starting_eta(distances: FloatArray) -> float:
    median = float(np.median(distances[:, 0]))
    if median > 0:
        return median
    positive = distances[distances > 0]
    if not positive.size:
        raise NotReadyError(
            "expected distances above 0 from split knn to the training exemplars, to scale eta by, got only "
            "zeros; check that the held-out data are not copies of the training data, or ingest more"
        )
    return float(np.median(positive))


def _check_knn(neighbours: Neighbours, logits: Float32Array, support: Support) -> None:
    if not len(logits):
        raise NotReadyError("expected exemplars in split knn to fit the KNN on, got none; ingest held-out data")
    if logits.ndim != 2 or support.logits.ndim != 2 or logits.shape[1] != support.logits.shape[1]:
        raise InvalidInputError(
            f"expected logits (n, C) and support logits (N, C), got shapes {logits.shape} and "
            f"{support.logits.shape}; pass logits of the same classifier"
        )
    shapes = neighbours.indices.shape, neighbours.distances.shape
    if shapes[0] != shapes[1] or shapes[0][0] != len(logits):
        raise InvalidInputError(
            f"expected neighbours (n, K) of the {len(logits)} rows, got shapes {shapes[0]} and {shapes[1]}; "
            "pass neighbours and logits of the same rows"
        )


class LocalizerFit(Fit):
    """The fit of the localizer."""

    @property
    def eta_loc(self) -> float:
        """> 0, in the units of the vectors."""
        return float(self.log[self.best_epoch].parameters.item())


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

    The start is the median, on the fit half, of the distance to the K-th nearest point of vp (the farthest, if vp has
    fewer) less the distance to the nearest; or the median of all distances, if that is 0. The fit runs in one thread.

    Args:
        distances: (n, n_vp) float64, from rows of the knn split, such as `localizer_rows` chooses, to all of vp; may be
            a memory map.
        support_knn_logits: (n_vp, C) float64, KNN(x_j).
        knn_logits: (n, C) float64, KNN(x), the target.

    Raises:
        NotReadyError: There are fewer than two documents, vp is empty, or both medians are 0.
    """
    check_epochs(max_epochs)
    _check_localizer(distances, support_knn_logits, knn_logits, neighbour_count)
    halves = cut_halves(document_keys, row_keys, len(knn_logits), seed)

    start = _starting_eta_loc(distances[halves.fit_rows], neighbour_count)
    model = _Localizer(distances, support_knn_logits, start)
    return LocalizerFit(*train(model, knn_logits, halves, seed, max_epochs, on_epoch))


def localizer_rows(row_keys: Sequence[str], support_count: int, *, seed: int) -> IntArray:
    """Choose the rows of the knn split to fit the localizer on; a single parameter needs no more than these.

    The chosen rows are the first in the order of a seeded hash of the row keys, which samples all documents and does
    not depend on the order of the rows.

    Args:
        support_count: n_vp >= 1.

    Returns:
        Row numbers, int64: all n, or as many as make 2**25 distances (256 MiB) to vp, and at least 2.
    """
    hashes = hash_keys(row_keys, seed=seed, purpose="localizer rows").tolist()
    ordered = sorted(zip(hashes, row_keys, range(len(row_keys)), strict=True))
    limit = max(2, LOCALIZER_DISTANCES // support_count)
    return np.array([row for _, _, row in ordered[:limit]], dtype=np.int64)


class _Localizer(TrainableModel):
    """The localizer's logits (b, C) of a batch of input rows (b,). Its `values` are eta_loc alone."""

    def __init__(self, distances: FloatArray, support_knn_logits: FloatArray, eta_loc: float) -> None:
        super().__init__()
        self.distances = distances  # (n, n_vp)
        self.support_logits = torch.tensor(support_knn_logits, dtype=torch.float64)  # (n_vp, C)
        self.row_bytes = 24 * distances.shape[1]
        self.log_eta = torch.nn.Parameter(torch.tensor(eta_loc, dtype=torch.float64).log())

    def forward(self, rows: IntArray) -> torch.Tensor:
        weights = softmax(torch.from_numpy(self.distances[rows]) / -self.log_eta.exp(), dim=1)  # (b, n_vp)
        return weights @ self.support_logits  # (b, C)

    def values(self) -> FloatArray:
        return self.log_eta.exp().reshape(1).detach().numpy().copy()


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


def _check_localizer(
    distances: FloatArray, support_knn_logits: FloatArray, knn_logits: FloatArray, neighbour_count: int
) -> None:
    for name, values in (("knn", knn_logits), ("vp", support_knn_logits)):
        if not len(values):
            raise NotReadyError(
                f"expected exemplars in split {name} to fit the localizer on, got none; ingest held-out data"
            )
    same_classes = knn_logits.ndim == 2 and support_knn_logits.shape[1:] == knn_logits.shape[1:]
    if not same_classes or distances.shape != (len(knn_logits), len(support_knn_logits)):
        raise InvalidInputError(
            "expected distances (n, n_vp), KNN logits (n_vp, C) of vp and (n, C) of knn, got shapes "
            f"{distances.shape}, {support_knn_logits.shape} and {knn_logits.shape}; pass arrays that fit each other"
        )
    if neighbour_count < 1:
        raise InvalidInputError(f"expected neighbour_count >= 1, got {neighbour_count}; pass the classifier's K")
