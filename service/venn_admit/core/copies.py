"""Copies: points with the same vectors and logits, bit for bit, under several ids. They are one unit of evidence.

Counted apart they would pass for independent evidence, and in two splits they would test what they have chosen. A
document, or a point without one, is a copy of another if both hold the same points, each as often; a unit is what is
equal, and its points share a split. Documents that only share points are not copies: the state of a text's first token,
or of every token if the network does not look around, is the same in many independent texts. Points without vectors are
no copies either: equal logits are often those of different points.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from venn_admit.core.split_names import HELD_OUT_SPLITS, Split


@dataclass(frozen=True, slots=True)
class HeldOutDocument:
    """A document, or a point without one.

    Attributes:
        key: Its id.
        split: `knn`, `mc` or `vp`.
        points: How many it has.
        is_new: Whether none of its points was held out before.
    """

    key: str
    split: Split
    points: int
    is_new: bool


def shared_split(unit: Sequence[HeldOutDocument], draw: Callable[[Sequence[str]], list[Split]]) -> Split:
    """Return the split in which the documents of a unit belong.

    It is the one where some are that were held out before; of several, the first of `knn`, `mc` and `vp`, so that
    nothing that a fit has seen becomes evidence. Otherwise it is the one that is drawn for the first of their ids in
    the order of texts, so that neither the order of the points nor their batches matter.

    Args:
        unit: At least one document.
        draw: Draws the split of each of n documents, whatever else is drawn for.
    """
    kept = [one.split for one in unit if not one.is_new]
    return min(kept, key=HELD_OUT_SPLITS.index) if kept else draw([min(one.key for one in unit)])[0]


def united(keys: Sequence[str], digests: Sequence[bytes | None]) -> list[str]:
    """Return the id of the unit of each of n points: the first, in the order of texts, among those of equal documents.

    Args:
        keys: The document of each point, or else its id.
        digests: Each of the vector and the logits of a point; None for a point without a vector.

    Examples:
        >>> united(["d", "c", "b", "d", "a", "b"], [b"1", b"2", b"1", b"3", b"2", b"3"])
        ['b', 'a', 'b', 'b', 'a', 'b']
    """
    contents: defaultdict[str, list[bytes]] = defaultdict(list)
    for key, digest in zip(keys, digests, strict=True):
        if digest is not None:
            contents[key].append(digest)
    first: dict[tuple[bytes, ...], str] = {}
    held = {key: tuple(sorted(content)) for key, content in contents.items()}
    for key, content in held.items():
        first[content] = min(key, first.get(content, key))
    return [first[held[key]] if key in held else key for key in keys]
