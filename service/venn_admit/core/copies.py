"""Copies: points with the same vector and logits, bit for bit, under several ids. They are one unit of evidence.

Counted apart they would pass for independent evidence, and in two splits they would test what they have chosen. So the
documents that copies connect, a point without a document being one of its own, count as one document, a unit; and the
points of a unit share a split. Points without vectors are no copies: equal logits are often those of different points.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from venn_admit.core.types import HELD_OUT_SPLITS, Split


class _Joined:
    """Texts that were joined to sets; each set is named after its first text."""

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}

    def first(self, key: str) -> str:
        while (parent := self.parent.get(key, key)) != key:
            # Halving the path keeps the ways short.
            self.parent[key] = key = self.parent.get(parent, parent)
        return key

    def join(self, key: str, other: str) -> tuple[str, str]:
        """Return what the joined set, and the one that is part of it now, are named after."""
        low, high = sorted((self.first(key), self.first(other)))
        self.parent[low], self.parent[high] = low, low
        return low, high


class Units:
    """The documents that copies connect, as they arrive, and the split of each.

    Documents without copies keep the split that is drawn for them. A unit keeps the split in which points of it were
    stored before; of two, the first of `knn`, `mc` and `vp`, so that nothing that a fit has seen becomes evidence.
    Otherwise its split is the one drawn for the first of its keys in the order of texts, so that neither the order of
    the points nor their batches matter.

    Args:
        draw: Draws the split of each of n documents, whatever else is drawn for.
    """

    def __init__(self, draw: Callable[[Sequence[str]], list[Split]]) -> None:
        self._draw = draw
        self._joined = _Joined()
        self._kept: dict[str, Split] = {}  # by unit
        self._stored: dict[str, Split] = {}
        self._given: defaultdict[str, set[Split]] = defaultdict(set)
        self._drawn: dict[str, Split] = {}

    def join(self, key: str, other: str) -> None:
        """Let two documents be parts of one unit.

        Args:
            key: The id of a document, or of a point without one.
            other: Another; or the same, which joins nothing.
        """
        if key == other:
            return
        low, high = self._joined.join(key, other)
        if low != high and (kept := self._kept.pop(high, None)) is not None:
            self._keep(low, kept)

    def keep(self, key: str, split: Split) -> None:
        """Note in which split points of a document were stored before.

        Args:
            key: The id of the document, or of a point without one.
            split: `knn`, `mc` or `vp`.
        """
        self._joined.join(key, key)
        self._stored[key] = split
        self._given[key].add(split)
        self._keep(self._joined.first(key), split)

    def splits(self, keys: Sequence[str]) -> list[Split]:
        """Return the split of each of n points, as far as is known now.

        Args:
            keys: The document of each point, or else its id.
        """
        found = self._draw(keys)
        if self._joined.parent:
            for row, key in enumerate(keys):
                if key in self._joined.parent:
                    found[row] = self._split(key)
                    self._given[key].add(found[row])
        return found

    def moved(self) -> dict[str, Split]:
        """Return the documents of which points may be in another split than theirs as it is known now, with that."""
        keys = list(self._joined.parent)
        # What had no copies when its split was asked for was given the one that is drawn.
        drawn = self._draw(keys) if keys else []
        splits = map(self._split, keys)
        return {
            key: split
            for key, split, was in zip(keys, splits, drawn, strict=True)
            if self._given[key] | {was} != {split}
        }

    def moved_before(self) -> dict[str, Split]:
        """Return those of them that were stored before; more that is stored may be parts of the same units."""
        return {key: split for key, stored in self._stored.items() if (split := self._split(key)) != stored}

    def _keep(self, unit: str, split: Split) -> None:
        self._kept[unit] = min(self._kept.get(unit, split), split, key=HELD_OUT_SPLITS.index)

    def _split(self, key: str) -> Split:
        unit = self._joined.first(key)
        if (kept := self._kept.get(unit)) is not None:
            return kept
        if unit not in self._drawn:
            (self._drawn[unit],) = self._draw([unit])
        return self._drawn[unit]


def united(keys: Sequence[str], digests: Sequence[bytes | None]) -> list[str]:
    """Return the key of the unit of each of n points: the first key, in the order of texts, of what copies connect.

    Args:
        keys: The document of each point, or else its id.
        digests: Each of the vector and the logits of a point, which copies share; None for a point without a vector.

    Examples:
        >>> united(["d", "c", "b", "d", "a"], [b"1", b"2", b"1", b"3", b"4"])
        ['b', 'c', 'b', 'b', 'a']
    """
    seen: dict[bytes, str] = {}
    joined = _Joined()
    for key, digest in zip(keys, digests, strict=True):
        if digest is not None and (other := seen.setdefault(digest, key)) != key:
            joined.join(key, other)
    return [joined.first(key) for key in keys] if joined.parent else list(keys)
