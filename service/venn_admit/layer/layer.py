"""The memory layer in torch: filters of kernel width 1 over token states, linear heads, and what training minimises.

Sources: Schmaltz (2021), *Detecting Local Insights from Global Labels*, the section on the convolutional decomposition,
the fully supervised loss on token contributions and the min-max loss; Schmaltz & Rasooly (2022), the appendix on
networks. docs/explanation/memory-layer.md gives the formulas, and what was settled where the sources are silent.
Symbols: x_t in R^H is the state of token t of T; g_t = W x_t + b in R^M are its filter applications; V and v are the
head; U and u are the second one of the form with two linear layers; C is the number of classes. A convolution of kernel
width 1 is this linear map of each token. Training uses this module; `outputs` computes the same with NumPy for what is
stored.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, linear, one_hot

from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import NotReadyError
from venn_admit.layer.settings import LayerForm, LayerSettings, Phase


class MemoryLayer(torch.nn.Module):
    """Filters and heads.

    Attributes:
        filter_weight: W (M, H).
        filter_bias: b (M,).
        head_weight: V (C, M).
        head_bias: v (C,).
        global_weight: U (C, M); not there without a second linear layer.
        global_bias: u (C,); not there without a second linear layer.
        symbol_weight: (S, k), the vectors of symbols; not there if k = 0.
    """

    filter_weight: torch.nn.Parameter
    filter_bias: torch.nn.Parameter
    head_weight: torch.nn.Parameter
    head_bias: torch.nn.Parameter
    global_weight: torch.nn.Parameter
    global_bias: torch.nn.Parameter
    symbol_weight: torch.nn.Parameter

    def __init__(
        self,
        settings: LayerSettings,
        *,
        width: int,
        class_count: int,
        symbol_count: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Draw the start as torch's own layers do: uniformly in [-a, a], a = 1 / sqrt(number of summands).

        Vectors of symbols are standard normal.
        """
        super().__init__()
        self.form = settings.form
        generator = torch.Generator().manual_seed(settings.seed % 2**63)
        shapes = settings.parameter_shapes(width=width, class_count=class_count, symbol_count=symbol_count)
        for name, shape in shapes.items():
            if name == "symbol_weight":
                values = torch.randn(shape, generator=generator, dtype=torch.float64)
            else:
                summed = shapes[name.replace("bias", "weight")][1]
                values = (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) / summed**0.5
            self.register_parameter(name, torch.nn.Parameter(values.to(dtype)))

    def inputs(self, states: torch.Tensor, symbols: torch.Tensor | None) -> torch.Tensor:
        """Return the states (n, H), each followed by the vector of its symbol (n,) if there are any, (n, H + k)."""
        if symbols is None:
            return states
        unknown = torch.zeros_like(self.symbol_weight[:1])
        return torch.cat([states, torch.cat([self.symbol_weight, unknown])[symbols]], dim=1)

    def filters(self, states: torch.Tensor) -> torch.Tensor:
        """Return the filter applications g, (n, M), of the states (n, H) of any tokens, or of their inputs."""
        return linear(states, self.filter_weight, self.filter_bias)

    def head(self, values: torch.Tensor) -> torch.Tensor:
        """Return V values + v, (n, C), of values (n, M)."""
        return linear(values, self.head_weight, self.head_bias)

    def global_scores(self, pooled: torch.Tensor) -> torch.Tensor:
        """Return the global scores (B, C) of pooled vectors p (B, M): V p + v, or U p + u with two linear layers."""
        if self.form is not LayerForm.TWO_LAYERS:
            return self.head(pooled)
        return linear(pooled, self.global_weight, self.global_bias)


class Decomposition(NamedTuple):
    """The heads over the maxima of B documents, by document and by token.

    Attributes:
        total: (B, C), the global scores V p + v, where p_m = max_t relu(g_tm); U p + u if there are two linear layers.
        scores: (B, C, T), v plus the sum of V_m p_m over the filters m whose maximum sits at the token; T is the length
            of the longest document, and the value behind the end of another is v.
        present: (B, T) bool, whether there is a token.
    """

    total: torch.Tensor
    scores: torch.Tensor
    present: torch.Tensor


def decompose(
    layer: MemoryLayer, states: torch.Tensor, lengths: torch.Tensor, *, holds_filters: bool = False
) -> Decomposition:
    """Decompose the head over max-pooled filters by token (Schmaltz 2021, token-level contributions).

    Where several tokens share a maximum, it belongs to the first of them (settled here).

    Args:
        holds_filters: Whether no gradient of the global scores reaches the filters.
    """
    applied = layer.filters(states)  # (n, M)
    place, present = _places(applied, lengths)  # (B, M), (B, T)
    starts = (lengths.cumsum(0) - lengths).unsqueeze(1)  # (B, 1)
    pooled = applied.gather(0, starts + place).relu()  # (B, M): ReLU of the maximum is the maximum of ReLU
    parts = layer.head_weight * pooled.unsqueeze(1)  # (B, C, M)
    document_count, class_count, _ = parts.shape
    bias = layer.head_bias.reshape(1, -1, 1).expand(document_count, class_count, present.shape[1])
    scores = bias.scatter_add(2, place.unsqueeze(1).expand_as(parts), parts)  # (B, C, T)
    total = layer.global_scores(pooled.detach() if holds_filters else pooled)
    return Decomposition(total, scores, present)


@torch.no_grad()
def _places(applied: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The token of each filter's maximum in each document (B, M), and whether there is a token (B, T)."""
    documents = list(applied.split_with_sizes(lengths.tolist()))
    padded = torch.nn.utils.rnn.pad_sequence(documents, batch_first=True, padding_value=-torch.inf)  # (B, T, M)
    present = torch.arange(padded.shape[1]) < lengths.unsqueeze(1)
    return padded.max(dim=1).indices, present


class Objective:
    """The mean loss of a mini-batch, weighted by class."""

    def __init__(self, settings: LayerSettings, label_counts: IntArray) -> None:
        """Compute the weights of the classes."""
        self._settings = settings
        self._weights = torch.from_numpy(_class_weights(settings, label_counts)).float()  # (C,)

    def loss(
        self,
        layer: MemoryLayer,
        states: torch.Tensor,
        lengths: IntArray,
        labels: IntArray,
        tally: "LossTally",
        phase: Phase | None = None,
    ) -> torch.Tensor | None:
        """Return the mean loss of the labelled exemplars, weighted by class; None if there are none.

        Args:
            states: (n, H) float32, of the tokens of B documents, one document after the other.
            labels: (B,) int64 of the documents, or (n,) int64 of the tokens; below 0 if there is none.
            tally: Counts exemplars; if documents have several labels, pairs of a document and a label, whose classes
                are those of `PRESENCE`.
            phase: None: both losses at once.
        """
        given = torch.from_numpy(labels)
        labelled = given >= 0
        if not labelled.any():
            return None
        logits, parts = batch_logits(layer, states, torch.from_numpy(lengths), self._settings, phase)
        if self._settings.form.kind == "token":
            logits, given = logits[labelled], given[labelled]
        several = self._settings.several_labels
        weights = torch.ones(len(given)) if several else self._weights[given]
        losses = example_losses(logits, given, parts, self._settings, phase) * weights
        if several:
            has = labels_of_sets(given, logits.shape[1])
            tally.add(losses, weights, has.flatten(), (logits > 0).long().flatten())
        else:
            tally.add(losses, weights, given, logits.argmax(dim=1))
        return losses.sum() / weights.sum()


class LossTally:
    """Losses and predictions of labelled exemplars, added up."""

    def __init__(self, class_count: int) -> None:
        """Start at nothing. class_count: C."""
        self._loss = self._weight = 0.0
        self._confusion = np.zeros((class_count, class_count), np.int64)  # by label, by prediction

    def add(self, losses: torch.Tensor, weights: torch.Tensor, labels: torch.Tensor, predicted: torch.Tensor) -> None:
        """Add n exemplars: their weighted losses (n,) and weights (n,); their labels and the classes predicted."""
        self._loss += float(losses.detach().double().sum())
        self._weight += float(weights.double().sum())
        np.add.at(self._confusion, (labels.numpy(), predicted.numpy()), 1)

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


def _class_weights(settings: LayerSettings, counts: IntArray) -> FloatArray:
    """The weight of each class, (C,). NotReadyError if the labels are of fewer than two classes."""
    present = counts > 0
    if present.sum() < 2 and not settings.several_labels:
        raise NotReadyError(
            f"expected labels of at least 2 classes to train on, got {int(present.sum())}; label examples of others"
        )
    if isinstance(settings.class_weights, tuple):
        return np.array(settings.class_weights)
    if settings.class_weights is None:
        return np.ones(len(counts))
    return np.where(present, counts.sum() / (present.sum() * np.maximum(counts, 1)), 1.0)


def batch_logits(
    layer: MemoryLayer,
    states: torch.Tensor,
    lengths: torch.Tensor,
    settings: LayerSettings,
    phase: Phase | None = None,
) -> tuple[torch.Tensor, Decomposition | None]:
    """Return the logits f of the exemplars in a mini-batch.

    Returns:
        (n, C) of the tokens or (B, C) of the documents; with the decomposition that they come from, None for the linear
        form.
    """
    if settings.form is LayerForm.LINEAR:
        return layer.head(layer.filters(states)), None
    parts = decompose(layer, states, lengths, holds_filters=phase == "min-max")
    if settings.form is LayerForm.DECOMPOSED:
        return parts.scores.transpose(1, 2)[parts.present], parts
    if settings.form is LayerForm.TWO_LAYERS:
        return parts.total, parts
    return document_logits(parts), parts


def labels_of_sets(label_sets: torch.Tensor, label_count: int) -> torch.Tensor:
    """Return whether each document has each label, (B, C) int64 of 0 and 1, by its label set as `StateDocument` has it.

    Args:
        label_sets: (B,) int64.
        label_count: C.
    """
    return label_sets.unsqueeze(1) >> torch.arange(label_count) & 1


def document_logits(parts: Decomposition) -> torch.Tensor:
    """Return f = V p + v + max_t s_t, the sum of each class's global score and its largest local one (settled here).

    Returns:
        (B, C).
    """
    return parts.total + _largest(parts.scores, parts)


def example_losses(
    logits: torch.Tensor,
    labels: torch.Tensor,
    parts: Decomposition | None,
    settings: LayerSettings,
    phase: Phase | None = None,
) -> torch.Tensor:
    """Return the loss of each labelled exemplar, before class weights.

    Returns:
        (n,): the cross-entropy, for documents with the weighted min-max loss added, except in the first of two phases.
        With several labels, the cross-entropy is the mean over these of the binary one of their logits. In the second
        phase, the cross-entropy does not reach the filters (`batch_logits`), but the global scores go on to learn by
        it (settled here).
    """
    several, class_count = settings.several_labels, logits.shape[1]
    targets = (labels_of_sets if several else one_hot)(labels, class_count).to(logits.dtype)  # (n, C)
    if several:
        losses = binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(dim=1)
    else:
        losses = cross_entropy(logits, labels, reduction="none")
    if phase == "cross-entropy" or settings.form.kind == "token" or not settings.min_max_weight:
        return losses
    assert parts is not None, "documents are decomposed"
    return losses + settings.min_max_weight * min_max_losses(parts, targets, settings.background)


def min_max_losses(parts: Decomposition, targets: torch.Tensor, background: int | None) -> torch.Tensor:
    """Return the min-max loss of each document.

    For each class except the background, the binary cross-entropy of its largest token score against whether the
    document has this label, and of its smallest token score against 0: some token of the document is evidence for its
    label, some token is not, and no token is for another label. The mean over classes and both ends. With two classes
    of which the first is the background, this is the source's loss without padding among the tokens (its second
    variant). Settled here: a document of one token has no smallest score beside its largest.

    Args:
        targets: (B, C), 1 for a label that the document has, otherwise 0.
    """
    scores = parts.scores
    if background is not None:
        others = [number for number in range(scores.shape[1]) if number != background]
        scores, targets = scores[:, others] - scores[:, [background]], targets[:, others]
    largest = binary_cross_entropy_with_logits(_largest(scores, parts), targets, reduction="none")  # (B, C)
    smallest = binary_cross_entropy_with_logits(
        -_largest(-scores, parts), torch.zeros_like(targets), reduction="none"
    )  # (B, C)
    several = (parts.present.sum(dim=1) > 1).to(scores.dtype)  # (B,)
    return (largest.mean(dim=1) + several * smallest.mean(dim=1)) / (1 + several)


def _largest(scores: torch.Tensor, parts: Decomposition) -> torch.Tensor:
    """The largest of scores (B, C, T) over the tokens that are present, (B, C)."""
    return scores.masked_fill(~parts.present.unsqueeze(1), -torch.inf).amax(dim=2)
