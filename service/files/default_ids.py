"""Ids of rows whose file has none. They follow from the content, so that neither file name nor row order matters."""

from collections import Counter
from collections.abc import Sequence

from venn_admit.service.core.content import content_digest
from venn_admit.service.core.types import Float32Array


class DefaultIds:
    """The ids of one file's rows, batch after batch.

    An id is `content:` and the digest of vector, logits and document. Rows of a file that are equal in all of these
    remain separate: the id of the second ends in `:2`, that of the third in `:3`.
    """

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def take(self, vectors: Float32Array | None, logits: Float32Array, document_ids: Sequence[str | None]) -> list[str]:
        """Return the ids of the next n rows of the file: vectors (n, D) or None, logits (n, C), n documents or None."""
        ids = []
        each = [None] * len(logits) if vectors is None else vectors
        for vector, row_logits, document_id in zip(each, logits, document_ids, strict=True):
            digest = content_digest(vector, row_logits, document_id)
            self._seen[digest] += 1
            count = self._seen[digest]
            ids.append(f"content:{digest.hex()}" + (f":{count}" if count > 1 else ""))
        return ids
