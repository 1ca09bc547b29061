"""The logits of the network at each token, which a file of states may have, and a memory layer may take in.

Source: Schmaltz & Rasooly (2022), the network for proteins.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.files.inputs import input_error
from venn_admit.files.npz.archive import open_arrays
from venn_admit.files.parquet.reader import read_rows

SIDE_LOGITS = "token_logits"
"""The array or column that has them."""


def side_logit_count(path: Path, *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> int:
    """Return L, how many logits of the network a file of states has at each token.

    Raises:
        InvalidInputError: It has none.
    """
    if path.suffix.lower() == ".npz":
        with open_arrays(path) as arrays:
            found = arrays.get(SIDE_LOGITS)
            shape = () if found is None else found.shape
    else:
        first = next(read_rows(path, 1, memory_budget), {})
        shape = np.shape(first.get(SIDE_LOGITS) or ())
    if len(shape) != 2 or not shape[1]:
        got = f"shape {shape}" if shape else "none"
        advice = "add the logits of the network, or train without them"
        raise input_error(path, f"{SIDE_LOGITS!r}", "L logits at each token, an input of the memory layer", got, advice)
    return int(shape[1])


def followed_by_logits(
    path: Path, place: str, states: npt.NDArray[Any], logits: object, count: int
) -> npt.NDArray[Any]:
    """Return the states of a document, (T, H), each followed by the logits at its token, (T, H + L).

    Args:
        place: Where the document is, in words.
        logits: What the file has for them.
        count: L; 0 if the layer takes none, which leaves the states as they are.

    Raises:
        InvalidInputError: They are missing, or not L numbers at each token.
    """
    if not count:
        return states
    try:
        found = np.array(logits, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (len(states), count):
        expected = f"{len(states)} lists of {count} logits, an input of the memory layer"
        raise input_error(path, f"{place}, {SIDE_LOGITS}", expected, f"shape {found.shape}")
    return np.concatenate([states, found], axis=1)
