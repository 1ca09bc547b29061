"""Which training exemplars a few leading components leave as possible neighbours of one point.

Vectors of networks vary mostly in a few directions. So a copy of a few columns tells most exemplars to be too far away,
and reading it takes a fraction of the time of reading the vectors. The directions decide how many are left, never
which are the nearest.
"""

from typing import Self

import numpy as np

from venn_admit.core.budget import tile_rows
from venn_admit.core.neighbours.distances import pair_distances
from venn_admit.core.types import Float32Array, FloatArray, IntArray

# All but two are components. A row is two lines of a processor's cache.
COLUMNS = 32
# With fewer dimensions than this, reading the vectors takes hardly longer.
LEAST_DIMENSION = 3 * COLUMNS
# Numbers of the support from which directions are taken, and the exemplars on which they are tried.
_SAMPLE_NUMBERS, _TRIED = 1 << 21, 16
_ROUNDS = 4
# A point of which more than this share is left is better compared with all exemplars.
_MOST_LEFT = 1 / 16
# What a point takes that is searched by itself, in the time of reading one number of a vector: always; for each number
# of an exemplar that is left; and what it takes in a pass for several, for each number of the support. As measured,
# in round figures; results do not depend on them.
_OWN, _EACH_LEFT, _EACH_TOGETHER = 1 << 21, 6.0, 0.15
# What counts as left of a point that is compared with all exemplars, in order, after the columns were read in vain.
_SHARE_OF_ALL = 1 / 3
# Bounds that are held at a time, and rows of a group of which the least is looked at.
_PAIRS, _GROUP_ROWS = 1 << 22, 64
_UNIT32, _UNIT64 = 2.0**-23, 2.0**-52
# Above the rounding of a float64 distance (sum and root) by orders of magnitude, below any gap that matters.
FLOAT64_SLACK = 4e-12
# Underflow removes at most these: of a product, and of a component, times the norms.
_UNDERFLOW, _UNDERFLOW_BY_NORM = 2.0**-115, 2.0**-120


class LeadingComponents:
    """Few columns, (N, 32) float32, that bound squared distances to a support from below; threads may share it.

    Let V have orthonormal columns, and let f(x) be V'(x - c) and, as one more component, the norm of what V V' leaves
    of x - c. Then |f(q) - f(t)| <= |q - t|: the triangle inequality of the rests. Computed values g differ from f by
    k |g| at most, with k below. Hence |g(q) - g(t)|^2 <= |q - t|^2 + 2 k (|g(q)| + |g(t)|)^2, and with h = |g|^2 / 2,
    gamma for a sum of 32 products (Higham 2002, *Accuracy and Stability of Numerical Algorithms*, section 3.1) and
    eta >= 4 k + 2 gamma, the computed

        v = (1 - eta) h(t) - g(q).g(t)

    is at most |q - t|^2 / 2 - (1 - eta) h(q).

    Attributes:
        together: The most queries that are faster searched each among what is left of it than all in one pass; 0 if
            the columns do not pay.
    """

    def __init__(self, vectors: Float32Array, centre: FloatArray, neighbour_count: int) -> None:
        """Read the vectors, and try a sample of them.

        Args:
            vectors: (N, D) float32, D >= 30, whose squared norms float32 holds.
            centre: (D,) float64. The bounds hold for any centre, and are tight if it is in the middle.
            neighbour_count: K, N >= K, of those that are tried.
        """
        self._vectors, self._centre = vectors, centre
        self._directions = _directions(vectors[:: -(-vectors.size // _SAMPLE_NUMBERS)] - centre)
        skew = float(np.linalg.norm(self._directions.T @ self._directions - np.eye(COLUMNS - 2)))
        in_float64 = skew + (len(centre) + 4) * _UNIT64 * COLUMNS
        # The norm of the rest is the root of a difference.
        off = _UNIT32 + 3 * np.sqrt(in_float64)
        rounding = (COLUMNS + 10) * _UNIT32
        self._kept = 1.0 - 4 * off * (1 + 4 * off) - 2 * rounding / (1 - rounding)
        self._columns = np.empty((len(vectors), COLUMNS), np.float32)
        greatest = 0.0
        step = tile_rows(8 * len(centre))
        for start in range(0, len(vectors), step):
            part = slice(start, start + step)
            self._columns[part, :-1], halves = self._turned(vectors[part])
            self._columns[part, -1] = np.nextafter((self._kept * halves).astype(np.float32), np.float32(-np.inf))
            greatest = max(greatest, float(halves.max()))
        self._farthest = np.sqrt(2 * greatest)
        self.together = self._most_together(neighbour_count)

    @classmethod
    def if_they_pay(cls, vectors: Float32Array, centre: FloatArray, neighbour_count: int) -> Self | None:
        """Return the columns if they make searches of a sample of the support faster."""
        if vectors.size <= _OWN or len(centre) < LEAST_DIMENSION:
            return None
        made = cls(vectors, centre, neighbour_count)
        return made if made.together else None

    def _most_together(self, neighbour_count: int) -> int:
        size = self._vectors.size
        tried = self._vectors[:: -(-len(self._vectors) // _TRIED)]
        left = self.left(tried, neighbour_count)
        shares = [_SHARE_OF_ALL if rows is None else len(rows) / len(self._vectors) for rows in left]
        each = _OWN + self._columns.size + size * (_EACH_LEFT * float(np.mean(shares)) - _EACH_TOGETHER)
        return int(size / max(each, 1.0))

    def left(self, queries: Float32Array, neighbour_count: int) -> list[IntArray | None]:
        """Return for each query the rows, ascending, among which its K nearest are; None: too many to save anything.

        Args:
            queries: (n, D) float32, whose squared distances float32 holds.
        """
        found = list[IntArray | None]()
        step = max(1, _PAIRS // len(self._vectors))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            turned, halves = self._turned(part)
            factor = np.concatenate((-turned, np.ones((len(part), 1), np.float32)), axis=1)
            bounds = self._columns @ factor[0] if len(part) == 1 else factor @ self._columns.T
            for query, half, of_query in zip(part, halves, bounds.reshape(len(part), -1), strict=True):
                found.append(self._left(query, float(half), of_query, neighbour_count))
        return found

    def _left(self, query: Float32Array, half: float, bounds: Float32Array, neighbour_count: int) -> IntArray | None:
        rows = _of_least(bounds, 2 * neighbour_count)
        distances = pair_distances(self._vectors, rows, query[np.newaxis], np.zeros_like(rows))
        farthest = np.partition(distances, neighbour_count - 1)[neighbour_count - 1]
        limit = farthest**2 / 2 * (1 + FLOAT64_SLACK) - self._kept * half
        limit += FLOAT64_SLACK * half + _UNDERFLOW + _UNDERFLOW_BY_NORM * (np.sqrt(2 * half) + self._farthest)
        left = np.flatnonzero(bounds <= np.nextafter(np.float32(limit), np.float32(np.inf)))
        return left if len(left) <= _MOST_LEFT * len(bounds) else None

    def _turned(self, vectors: Float32Array) -> tuple[Float32Array, FloatArray]:
        """The components and the norm of the rest, (n, 31) float32, and half of their squared norm, (n,) float64."""
        centred = vectors - self._centre
        components = centred @ self._directions
        rest = np.square(centred).sum(axis=1) - np.square(components).sum(axis=1)
        turned = np.concatenate((components, np.sqrt(np.maximum(rest, 0.0))[:, np.newaxis]), axis=1).astype(np.float32)
        return turned, np.square(turned, dtype=np.float64).sum(axis=1) / 2


def _directions(sample: FloatArray) -> FloatArray:
    """(D, 30), orthonormal: about those in which the centred sample, (S, D), varies most; the same for a sample."""
    directions = np.random.default_rng(0).standard_normal((sample.shape[1], COLUMNS - 2))
    for _ in range(_ROUNDS):
        directions, _ = np.linalg.qr(sample.T @ (sample @ directions))
    return directions


def _of_least(bounds: Float32Array, count: int) -> IntArray:
    """Rows of about the least bounds, distinct: the least of each of `count` groups, or all of few rows."""
    depth = max(1, min(_GROUP_ROWS, len(bounds) // (4 * count)))
    width = len(bounds) // depth
    grouped = bounds[: depth * width].reshape(depth, width)
    groups = np.argpartition(grouped.min(axis=0), min(count, width) - 1)[:count]
    return np.asarray(grouped[:, groups].argmin(axis=0) * width + groups)
