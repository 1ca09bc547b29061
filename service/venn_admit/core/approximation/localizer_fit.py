"""The fit of the localizer's one parameter on the knn split; its target is the output of the KNN.

Source: Schmaltz & Rasooly (2022), the localizer of the Venn-ADMIT predictor; docs/PROCEDURE.md, section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import softmax

from venn_admit.core.approximation.training import OnEpoch, TrainableModel, check_epochs, cut_halves, train
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import FloatArray, IntArray, TrainingEpoch
from venn_admit.errors import InvalidInputError, NotReadyError

LOCALIZER_DISTANCES = 2**25


@dataclass(frozen=True, slots=True, eq=False)
class LocalizerFit:
    """The fitted localizer, with the log of the fit.

    Attributes:
        eta_loc: > 0, in the units of the vectors.
        log: As in `KnnFit`.
        best_epoch: As in `KnnFit`.
        fit_count: As in `KnnFit`.
        dev_count: As in `KnnFit`.
        dev_discrepancies: As in `KnnFit`.
    """

    eta_loc: float
    log: tuple[TrainingEpoch, ...]
    best_epoch: int
    fit_count: int
    dev_count: int
    dev_discrepancies: int


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
        document_keys: As in `fit_knn`.
        row_keys: As in `fit_knn`.
        seed: As in `fit_knn`.
        neighbour_count: K >= 1.
        max_epochs: As in `fit_knn`.
        on_epoch: As in `fit_knn`.

    Returns:
        The fit.

    Raises:
        InvalidInputError: Shapes, ranges or keys are wrong.
        NotReadyError: There are fewer than two documents, vp is empty, or both medians are 0.
    """
    check_epochs(max_epochs)
    _check_localizer(distances, support_knn_logits, knn_logits, neighbour_count)
    halves = cut_halves(document_keys, row_keys, len(knn_logits), seed)

    start = _starting_eta_loc(distances[halves.fit_rows], neighbour_count)
    model = _Localizer(distances, support_knn_logits, start)
    result = train(model, knn_logits, halves, seed, max_epochs, on_epoch)
    return LocalizerFit(result.log[result.best_epoch].parameters.item(), *result)


def localizer_rows(row_keys: Sequence[str], support_count: int, *, seed: int) -> IntArray:
    """Choose the rows of the knn split to fit the localizer on; a single parameter needs no more than these.

    The chosen rows are the first in the order of a seeded hash of the row keys, which samples all documents and does
    not depend on the order of the rows.

    Args:
        row_keys: (n,), all distinct.
        support_count: n_vp >= 1.
        seed: In [-2**63, 2**63).

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
        weights = softmax(-torch.from_numpy(self.distances[rows]) / self.log_eta.exp(), dim=1)  # (b, n_vp)
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
