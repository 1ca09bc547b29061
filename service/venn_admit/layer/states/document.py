"""A document as the memory layer reads it: the states of its tokens, and what is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from venn_admit.core.types import Float32Array, IntArray

NOT_A_WORD = -2
"""The label of a token that is no exemplar: a subtoken after the first of its word, or a special token."""

TOKENS_CUT = "tokens_cut"
"""The attribute of a document with more tokens than the encoder reads: how many are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class StateDocument:
    """A document, with a state of the network for each of its T >= 1 tokens.

    Attributes:
        external_id: 1 to 1,000 characters, unique among the documents.
        states: (T, H) float32, finite.
        label: y in [0, C) of the document, -1 if unknown; -1 in documents whose tokens are labelled.
        token_labels: (T,) int64, y of each token in [0, C), -1 if unknown, `NOT_A_WORD` for a token that is no
            exemplar; None in documents that are labelled as a whole.
        tokens: T texts, or none if they are unknown.
        attributes: JSON values by name, such as the text.
    """

    external_id: str
    states: Float32Array
    label: int
    token_labels: IntArray | None
    tokens: tuple[str, ...]
    attributes: Mapping[str, object]
