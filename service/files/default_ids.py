"""Ids of rows whose file names none: of their content, so that neither the file's name nor their order matters."""

from collections import Counter
from collections.abc import Sequence

from service.core.content import content_digest
from service.core.types import Float32Array


class DefaultIds:
    """The ids of one file's rows, batch after batch.

    An id is `content:` and the digest of vector, logits and document. Rows of a file that are equal in all of them
    stay as many as they are: the second of them ends in `:2`, the third in `:3`.
    """

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def take(self, vectors: Float32Array, logits: Float32Array, document_ids: Sequence[str | None]) -> list[str]:
        """Return the ids of the file's next n rows: vectors (n, D), logits (n, C), n documents or None."""
        ids = []
        for vector, row_logits, document_id in zip(vectors, logits, document_ids, strict=True):
            digest = content_digest(vector, row_logits, document_id)
            self._seen[digest] += 1
            count = self._seen[digest]
            ids.append(f"content:{digest.hex()}" + (f":{count}" if count > 1 else ""))
        return ids
