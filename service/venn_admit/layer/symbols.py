"""The symbols of tokens, such as the residues of a protein: their texts, of which a memory layer can learn vectors.

Source: Schmaltz & Rasooly (2022), the network for proteins, whose inputs are the last hidden state, the logits of the
base network, and a learnt vector of length 10 for the residue. Settled here: a symbol that no training document has is
the zero vector.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.layer.states.reader import StateShards

MOST_SYMBOLS = 1 << 16


def find_symbols(shards: StateShards, rows: IntArray) -> tuple[str, ...]:
    """Return the texts that tokens of some documents have, each once, ascending.

    Raises:
        InvalidInputError: A document has no texts of tokens, or there are too many different ones.
    """
    found: set[str] = set()
    for row, tokens in zip(rows.tolist(), shards.tokens(rows), strict=True):
        if not tokens:
            raise no_symbols(f"{shards.called}: document {shards.external_ids[row]!r}")
        found |= set(tokens)
        if len(found) > MOST_SYMBOLS:
            raise InvalidInputError(
                f"{shards.called}: expected at most {MOST_SYMBOLS:,} different texts of tokens to learn vectors of, "
                "got more; leave symbols out"
            )
    return tuple(sorted(found))


def symbol_numbers(known: Mapping[str, int], tokens: Sequence[str]) -> IntArray:
    """Return the number of the symbol of each token, (T,) int64; the number of symbols for one that is not known.

    Examples:
        >>> symbol_numbers({"A": 0, "C": 1}, ["C", "X", "A"])
        array([1, 2, 0])
    """
    return np.array([known.get(token, len(known)) for token in tokens], np.int64)


def no_symbols(where: str) -> InvalidInputError:
    """Return the error for a document whose tokens have no texts."""
    return InvalidInputError(
        f"{where}: expected the text of each token, whose symbol is an input of the memory layer, got none; add the "
        "texts (`token` in npz, `tokens` in Parquet), or train without symbols"
    )
