"""The content of an exemplar as a digest: its label may change, but its vector, logits and document may not."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.types import Float32Array

DIGEST_BYTES = 16
# So few rows are copied at a time that they stay in a cache, and that no other thread waits for long.
_BLOCK_ROWS = 256


def content_digests(
    vectors: Float32Array | None, logits: Float32Array, document_ids: Sequence[str | None]
) -> list[bytes]:
    """Return the BLAKE2b-128 digest (RFC 7693) of the content of each of n exemplars.

    Args:
        vectors: (n, D) float32, r; None if the classifier has logits only.
        document_ids: The document that each exemplar is part of, or None.

    Returns:
        n times 16 bytes.
    """
    digests: list[bytes] = []
    for start in range(0, len(logits), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        parts = [logits[rows]] if vectors is None else [vectors[rows], logits[rows]]
        content = bytes_of_rows(np.concatenate(parts, axis=1))
        digests += [
            blake2b(
                row if document_id is None else row + b"\x00" + document_id.encode(), digest_size=DIGEST_BYTES
            ).digest()
            for row, document_id in zip(content, document_ids[rows], strict=True)
        ]
    return digests


def bytes_of_rows(rows: npt.NDArray[Any]) -> list[bytes]:
    """Return the bytes of each row of a contiguous array.

    Args:
        rows: (n,) or (n, width), of any dtype.

    Returns:
        n times the bytes of a row.
    """
    if not len(rows):
        return []
    return rows.view(f"V{rows.nbytes // len(rows)}").ravel().tolist()
