"""The loss of mini-batches as training minimises it: weighted by class, over the labelled exemplars, and added up."""

import numpy as np
import torch

from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import NotReadyError
from venn_admit.layer.layer import MemoryLayer
from venn_admit.layer.losses import batch_logits, example_losses
from venn_admit.layer.settings import MemoryForm, MemorySettings


class Objective:
    """The mean loss of a mini-batch, weighted by class."""

    def __init__(self, settings: MemorySettings, label_counts: IntArray) -> None:
        """Compute the weights of the classes.

        Args:
            settings: The settings of the layer.
            label_counts: (C,) int64, how often each class occurs in what is trained on.

        Raises:
            NotReadyError: The labels are of fewer than two classes.
        """
        self._settings = settings
        self._weights = torch.from_numpy(_class_weights(settings, label_counts)).float()

    def loss(
        self, layer: MemoryLayer, states: torch.Tensor, lengths: IntArray, labels: IntArray, tally: "LossTally"
    ) -> torch.Tensor | None:
        """Return the mean loss of the labelled exemplars, weighted by class; None if there are none.

        Args:
            layer: The layer.
            states: (n, H) float32, of the tokens of B documents, one document after the other.
            lengths: (B,) int64.
            labels: (B,) int64 of the documents, or (n,) int64 of the tokens; below 0 if there is none.
            tally: What the losses and predictions are added to.
        """
        given = torch.from_numpy(labels)
        labelled = given >= 0
        if not labelled.any():
            return None
        logits, parts = batch_logits(layer, states, torch.from_numpy(lengths), self._settings)
        if self._settings.form is not MemoryForm.DOCUMENT:
            logits, given = logits[labelled], given[labelled]
        weights = self._weights[given]
        losses = example_losses(logits, given, parts, self._settings) * weights
        tally.add(losses, weights, given, logits)
        return losses.sum() / weights.sum()


class LossTally:
    """Losses and predictions of labelled exemplars, added up."""

    def __init__(self, class_count: int) -> None:
        """Start at nothing. class_count: C."""
        self._loss = self._weight = 0.0
        self._confusion = np.zeros((class_count, class_count), np.int64)  # by label, by prediction

    def add(self, losses: torch.Tensor, weights: torch.Tensor, labels: torch.Tensor, logits: torch.Tensor) -> None:
        """Add n exemplars: their weighted losses (n,), weights (n,), labels (n,) and logits (n, C)."""
        self._loss += float(losses.detach().double().sum())
        self._weight += float(weights.double().sum())
        predicted = logits.detach().argmax(dim=1).numpy()
        np.add.at(self._confusion, (labels.numpy(), predicted), 1)

    def mean_loss(self) -> float:
        """Return the weighted mean of the losses. NotReadyError if nothing was added."""
        if not self._weight:
            raise NotReadyError(
                "expected labels in the dev split, got none; label more, or choose another share or seed"
            )
        return self._loss / self._weight

    def accuracy(self) -> float:
        """Return the share of the predictions that are right, in [0, 1]."""
        return float(np.trace(self._confusion) / self._confusion.sum())

    def macro_f_half(self) -> float:
        """Return F0.5, the mean over the classes that occur or are predicted, in [0, 1]."""
        truly, said = self._confusion.sum(axis=1), self._confusion.sum(axis=0)
        occurs = truly + said > 0
        f_half: FloatArray = 1.25 * np.diag(self._confusion)[occurs] / (0.25 * truly + said)[occurs]
        return float(f_half.mean())


def _class_weights(settings: MemorySettings, counts: IntArray) -> FloatArray:
    """The weight of each class, (C,). NotReadyError if the labels are of fewer than two classes."""
    present = counts > 0
    if present.sum() < 2:
        raise NotReadyError(
            f"expected labels of at least 2 classes to train on, got {int(present.sum())}; label examples of others"
        )
    if isinstance(settings.class_weights, tuple):
        return np.array(settings.class_weights)
    if settings.class_weights is None:
        return np.ones(len(counts))
    return np.where(present, counts.sum() / (present.sum() * np.maximum(counts, 1)), 1.0)
