"""Ids of rows whose file has none. They follow from the content, so that neither file name nor row order matters."""

from collections import Counter
from collections.abc import Sequence


class DefaultIds:
    """The ids of one file's rows, batch after batch.

    An id is `content:` and the digest of vector, logits and document. Rows of a file that are equal in all of these
    remain separate: the id of the second ends in `:2`, that of the third in `:3`.
    """

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def take(self, digests: Sequence[bytes]) -> list[str]:
        """Return the ids of the next rows of the file, of which these are the digests of the content."""
        ids = []
        for digest in digests:
            self._seen[digest] += 1
            count = self._seen[digest]
            ids.append(f"content:{digest.hex()}" + (f":{count}" if count > 1 else ""))
        return ids
