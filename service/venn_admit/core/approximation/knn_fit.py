"""Fitting the KNN approximation on the knn split (docs/PROCEDURE.md, section 1).

Source: Schmaltz & Rasooly (2022), eq. 1 and 2 and the appendix on training the KNN.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import softmax

from venn_admit.core.approximation.training import OnEpoch, TrainableModel, check_epochs, cut_halves, train
from venn_admit.core.types import (
    Float32Array,
    FloatArray,
    IntArray,
    KnnParameters,
    Neighbours,
    Support,
    TrainingEpoch,
)
from venn_admit.errors import InvalidInputError, NotReadyError


@dataclass(frozen=True, slots=True, eq=False)
class KnnFit:
    """The fitted parameters of the KNN, with the log of the fit.

    Attributes:
        parameters: The parameters of the best epoch.
        log: One line for each epoch, from epoch 0 (the start) to the last.
        best_epoch: The earliest epoch with the fewest discrepancies on the dev half.
        fit_count: Rows of the fit half.
        dev_count: Rows of the dev half.
        dev_discrepancies: Rows of the dev half that are discrepant in the best epoch.
    """

    parameters: KnnParameters
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

    At the start, beta is 0, gamma is 1, and eta is the median of d on the fit half (of its positive distances, if that
    median is 0). The fit runs in one thread and takes 8 C bytes of memory for every training exemplar that is a
    neighbour of some row.

    Args:
        neighbours: (n, K), of the n rows among the N training exemplars.
        logits: (n, C) float32, f(x) of the rows.
        support: f(x_k) and labels of the training exemplars.
        document_keys: (n,), the document that each row belongs to.
        row_keys: (n,), the name of each row within its document, all distinct there.
        seed: In [-2**63, 2**63).
        max_epochs: >= 0.
        on_epoch: Called with each line of the log as soon as it is known.

    Returns:
        The fit.

    Raises:
        InvalidInputError: Shapes, ranges or keys are wrong.
        NotReadyError: There are fewer than two documents, or all neighbours lie at distance 0.
    """
    check_epochs(max_epochs)
    _check_knn(neighbours, logits, support)
    halves = cut_halves(document_keys, row_keys, len(logits), seed)

    model = _Knn(neighbours, support, _starting_eta(neighbours.distances[halves.fit_rows]))
    result = train(model, logits, halves, seed, max_epochs, on_epoch)
    class_count = logits.shape[1]
    beta, gamma, eta = np.split(result.log[result.best_epoch].parameters, (class_count, 2 * class_count))
    return KnnFit(KnnParameters(beta=beta, gamma=gamma, eta=eta.item()), *result)


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
