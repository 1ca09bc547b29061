"""The memory layer in torch: filters of kernel width 1 over token states, and a linear head over them.

Source: Schmaltz (2021), *Detecting Local Insights from Global Labels*, the section on the convolutional decomposition.
Symbols: x_t in R^H is the state of token t of T; g_t = W x_t + b in R^M are its filter applications; V and v are the
head; C is the number of classes. A convolution of kernel width 1 is this linear map of each token. Training uses this
module; `outputs` computes the same with NumPy for what is stored.
"""

from typing import NamedTuple

import torch
from torch.nn.functional import linear


class MemoryLayer(torch.nn.Module):
    """Filters and head.

    Attributes:
        filter_weight: W (M, H).
        filter_bias: b (M,).
        head_weight: V (C, M).
        head_bias: v (C,).
    """

    def __init__(
        self, width: int, filters: int, class_count: int, *, seed: int, dtype: torch.dtype = torch.float32
    ) -> None:
        """Draw the start as torch's own linear layers do: uniformly in [-a, a], a = 1 / sqrt(number of summands).

        Args:
            width: H.
            filters: M.
            class_count: C.
        """
        super().__init__()
        generator = torch.Generator().manual_seed(seed % 2**63)

        def uniform(*shape: int, summed: int) -> torch.nn.Parameter:
            values = torch.rand(shape, generator=generator, dtype=torch.float64)
            return torch.nn.Parameter(((2 * values - 1) / summed**0.5).to(dtype))

        self.filter_weight = uniform(filters, width, summed=width)
        self.filter_bias = uniform(filters, summed=width)
        self.head_weight = uniform(class_count, filters, summed=filters)
        self.head_bias = uniform(class_count, summed=filters)

    def filters(self, states: torch.Tensor) -> torch.Tensor:
        """Return the filter applications g.

        Args:
            states: (n, H), of the tokens of any documents.

        Returns:
            (n, M).
        """
        return linear(states, self.filter_weight, self.filter_bias)

    def head(self, values: torch.Tensor) -> torch.Tensor:
        """Return V values + v.

        Args:
            values: (n, M).

        Returns:
            (n, C).
        """
        return linear(values, self.head_weight, self.head_bias)


class Decomposition(NamedTuple):
    """The head over the maxima of B documents, and its parts by token.

    Attributes:
        total: (B, C), V p + v, where p_m = max_t relu(g_tm).
        scores: (B, C, T), v plus the sum of V_m p_m over the filters m whose maximum sits at the token; T is the length
            of the longest document, and the value behind the end of another is v.
        present: (B, T) bool, whether there is a token.
    """

    total: torch.Tensor
    scores: torch.Tensor
    present: torch.Tensor


def decompose(layer: MemoryLayer, states: torch.Tensor, lengths: torch.Tensor) -> Decomposition:
    """Decompose the head over max-pooled filters by token (Schmaltz 2021, token-level contributions).

    Where several tokens share a maximum, it belongs to the first of them (settled here).

    Args:
        states: (sum of lengths, H), of the documents one after the other.
        lengths: (B,) int64, tokens of each document, >= 1.
    """
    applied = layer.filters(states)  # (n, M)
    place, present = _places(applied, lengths)  # (B, M), (B, T)
    starts = (lengths.cumsum(0) - lengths).unsqueeze(1)  # (B, 1)
    pooled = applied.gather(0, starts + place).relu()  # (B, M): ReLU of the maximum is the maximum of ReLU
    parts = layer.head_weight * pooled.unsqueeze(1)  # (B, C, M)
    document_count, class_count, _ = parts.shape
    bias = layer.head_bias.reshape(1, -1, 1).expand(document_count, class_count, present.shape[1])
    scores = bias.scatter_add(2, place.unsqueeze(1).expand_as(parts), parts)  # (B, C, T)
    return Decomposition(layer.head(pooled), scores, present)


@torch.no_grad()
def _places(applied: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The token of each filter's maximum in each document (B, M), and whether there is a token (B, T)."""
    documents = list(applied.split_with_sizes(lengths.tolist()))
    padded = torch.nn.utils.rnn.pad_sequence(documents, batch_first=True, padding_value=-torch.inf)  # (B, T, M)
    present = torch.arange(padded.shape[1]) < lengths.unsqueeze(1)
    return padded.max(dim=1).indices, present
