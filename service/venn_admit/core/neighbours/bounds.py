"""Lower bounds of distances: one product of rounded vectors bounds the distances of many pairs.

Each vector is rounded to bfloat16 or float32, and the norm of what rounding removed is known. According to the triangle
inequality, the distance of two vectors is at least that of the rounded ones less both norms. Unlike a bound of the
error of their product, which grows with the vectors, this one shrinks with their distance. The error of the product
itself is that of a sum in any order: Higham (2002), *Accuracy and Stability of Numerical Algorithms*, sections 3.1 and
4.2.
"""

import math
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from venn_admit.core.neighbours.distances import FLOAT64_SLACK
from venn_admit.core.types import BoolArray, Float32Array, FloatArray

# No bound of a true row reaches the first; the rows that fill up a block lie beyond the second.
UNREACHED = 2.0**120
_BEYOND = 2.0**125
# The squared norm, after scaling, beyond which products could overflow.
_FAR = 2.0**100
# Columns besides the vector's: three for each squared norm, and one for errors above the usual.
_EXTRA = 7
# AMX takes the columns of bfloat16 by as many; with others its product takes up to 1.7 times as long.
_TILE_COLUMNS = 32
# Underflow removes at most this much of a distance, per dimension, in a support scaled to about 1.
_UNDERFLOW = 2.0**-50
# The unit of float32 arithmetic that need not round to nearest, because matrix units may truncate.
_PRODUCT_UNIT = 2.0**-23
# Above the rounding of a value to bfloat16, and to float32.
_ROUND_UP = 1.0 + 2.0**-7
# Numbers rounded at a time: given few, calls of torch cost more than what they compute.
_BLOCK_NUMBERS = 2**18
# A trial takes some 30 ms.
_TRIAL_TURNS, _TRIAL_ROWS, _TRIAL_WIDTH = 4, (256, 2048), 512


def multiplies_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 with sums in float32, and torch's library uses that."""
    has_unit = _processor_has("avx512_bf16") or _processor_has("amx_bf16")
    return has_unit and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


@cache
def faster_precision() -> torch.dtype:
    """Return the precision of the faster product, bfloat16 or float32, by a trial of both; no result depends on it.

    It says little that a processor has an instruction: the one for bfloat16 takes a quarter of the time of float32 on
    some processors, and nearly twice as long on others.
    """
    if not multiplies_bfloat16():
        return torch.float32
    seconds = dict.fromkeys((torch.float32, torch.bfloat16), math.inf)
    for turn in range(_TRIAL_TURNS):
        for precision in seconds:
            queries, exemplars = (torch.ones((rows, _TRIAL_WIDTH), dtype=precision) for rows in _TRIAL_ROWS)
            products = torch.empty(_TRIAL_ROWS, dtype=precision)
            start = time.perf_counter()
            DistanceBounds.product(queries, exemplars, out=products)
            if turn:  # the first turn loads libraries
                seconds[precision] = min(seconds[precision], time.perf_counter() - start)
    return min(seconds, key=seconds.__getitem__)


@dataclass(frozen=True, slots=True, eq=False)
class RoundedQueries:
    """B queries as the left factor of products.

    Attributes:
        factor: (B, width), of the precision of the bounds.
        errors: (B,) float64, the distance by which rounding moved each query, at most.
        far: (B,) bool, whether a query is too far from the support for float32, so that its bounds mean nothing.
    """

    factor: torch.Tensor
    errors: FloatArray
    far: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class DistanceBounds:
    """Turns vectors into factors whose product bounds half their squared distances from below.

    Let t and q be the vectors of an exemplar and a query, scaled and centred; t' and q' their rounded values; e_t >= |t
    - t'| and e_q >= |q - q'|, norms of the actual differences; E the usual error, x_t = max(0, e_t - E); gamma = n u /
    (1 - n u) with n >= D + 16, u = 2**-23, which bounds the relative error of a sum of D + 7 products. The sum of the
    terms' magnitudes is below 1.05 (|t'|^2 + |q'|^2), and the norms, taken in float32, are off by less than gamma / 2.
    So the product

        v = (1 - 3 gamma) (|t'|^2 + |q'|^2) / 2 - t'.q' - x_t (|t'| + |q'|)

    as computed is at most (|t' - q'|^2) / 2 - x_t (|t'| + |q'|), hence at most (|t' - q'| - x_t)^2 / 2. If v > (r + E +
    e_q)^2 / 2, the distance |t - q| exceeds r. Rounding v to the precision keeps its order, and therefore keeps what
    holds for all v above a value of that precision.

    Attributes:
        scale: A power of two.
        centre: (D,) float32. The bounds hold for any centre.
        usual_error: E. The bounds hold for any value, and are tight if it is about the largest error of most exemplars.
    """

    precision: torch.dtype
    scale: np.float32
    centre: Float32Array
    usual_error: float

    @classmethod
    def of(
        cls, precision: torch.dtype, scale: np.float32, centre: Float32Array, sample: Float32Array
    ) -> "DistanceBounds":
        """Return bounds whose usual error is that of a sample of the support.

        Args:
            sample: (S, D) float32 with S >= 1.
        """
        unknown = cls(precision, scale, centre, 0.0)
        _, _, errors = unknown._rounded(unknown._scaled(sample))
        return cls(precision, scale, centre, float(np.quantile(errors.numpy(), 0.99)))

    @property
    def width(self) -> int:
        """The number of columns of the factors: D + 7, and zeros to fill the last tile of AMX."""
        tile = _TILE_COLUMNS if self.precision == torch.bfloat16 and _processor_has("amx_bf16") else 1
        return -(-(self.centre.size + _EXTRA) // tile) * tile

    def round_support(self, vectors: Float32Array, factor: torch.Tensor) -> None:
        """Write the right factor, transposed; rows left over are filled with rows beyond all bounds.

        Args:
            vectors: (P, D) float32, exemplars, P <= S.
            factor: (S, width), overwritten.
        """
        dimension = self.centre.size
        factor[len(vectors) :] = 0.0
        factor[len(vectors) :, dimension] = _BEYOND
        for part in slices(len(vectors), _BLOCK_NUMBERS // dimension):
            self.write_support(self._scaled(vectors[part]), factor[part])

    def write_support(self, scaled: torch.Tensor, factor: torch.Tensor) -> None:
        """Write rows of the right factor, transposed, on whatever device both are.

        Args:
            scaled: (P, D) float32, exemplars after scaling and less the centre.
            factor: (P, width), overwritten.
        """
        dimension = self.centre.size
        rounded, norms, errors = self._rounded(scaled)
        excess = (errors - self.usual_error).clamp_(min=0.0) * _ROUND_UP
        factor[:, :dimension] = rounded
        _split(self._half_squares(norms) - excess * norms, factor[:, dimension : dimension + 3])
        factor[:, dimension + 3 : dimension + 6] = 1.0
        factor[:, dimension + 6] = excess * _ROUND_UP
        factor[:, dimension + _EXTRA :] = 0.0

    def round_queries(self, vectors: Float32Array) -> RoundedQueries:
        """Return the left factor of B queries."""
        dimension = self.centre.size
        factor = torch.zeros((len(vectors), self.width), dtype=self.precision)
        all_errors, far = np.zeros(len(vectors)), np.zeros(len(vectors), dtype=np.bool_)
        for part in slices(len(vectors), _BLOCK_NUMBERS // dimension):
            with np.errstate(over="ignore"):
                rounded, norms, errors = self._rounded(self._scaled(vectors[part]))
            far[part] = ~(norms.square() <= _FAR).numpy()
            all_errors[part] = np.where(far[part], np.inf, errors.numpy())
            block = factor[part]
            torch.neg(rounded, out=block[:, :dimension])
            block[:, dimension : dimension + 3] = 1.0
            _split(self._half_squares(norms), block[:, dimension + 3 : dimension + 6])
            block[:, dimension + 6] = -norms * _ROUND_UP
        factor[torch.from_numpy(far)] = 0.0
        return RoundedQueries(factor, all_errors, far)

    @staticmethod
    def product(queries: torch.Tensor, exemplars: torch.Tensor, out: torch.Tensor) -> None:
        """Write the bounds of all pairs of B queries and S exemplars, (B, S), from their factors."""
        if out.dtype == torch.float32:
            # NumPy's library is faster on some processors, and never reduces the precision.
            np.matmul(queries.numpy(), exemplars.numpy().T, out=out.numpy())
        else:
            torch.mm(queries, exemplars.T, out=out)

    def reach(self, distances: FloatArray, query_errors: FloatArray) -> FloatArray:
        """Return the value that the bound of a pair must exceed for its stored distance to exceed a given one.

        Args:
            distances: (B,) float64, the given distances.
            query_errors: (B,) float64, from `RoundedQueries.errors`.

        Returns:
            (B,) float64.
        """
        scaled = distances * float(self.scale) * (1.0 + FLOAT64_SLACK)
        nearest = scaled + self.usual_error + query_errors + self.centre.size * _UNDERFLOW
        return np.asarray(0.5 * np.square(nearest) * (1.0 + FLOAT64_SLACK))

    def _scaled(self, vectors: Float32Array) -> torch.Tensor:
        scaled: Float32Array = np.multiply(vectors, self.scale)
        scaled -= self.centre
        return torch.from_numpy(scaled)

    def _rounded(self, scaled: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the rounded vectors, (P, D); their norms, and how far rounding moved them at most, (P,) float64."""
        rounded = scaled.to(self.precision)
        seen = rounded.to(torch.float32)
        norms = _norms(seen)
        # The difference is exact in float32; subtracting the centre was not.
        errors = _norms(scaled - seen) * _ROUND_UP + 2.0**-23 * norms
        return rounded, norms, errors

    def _half_squares(self, norms: torch.Tensor) -> torch.Tensor:
        rounding = product_rounding(self.width)
        return 0.5 * (1.0 - 3.0 * rounding / (1.0 - rounding)) * norms.square()


def slices(count: int, size: int) -> list[slice]:
    """Return consecutive parts of `count` rows, each of at most `size`; less than 1 counts as 1."""
    size = max(1, size)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def product_rounding(width: int) -> float:
    """Return n u with n = width + 9, from which the relative error of a sum of n products follows."""
    return (width + 9) * _PRODUCT_UNIT


@cache
def _processor_has(instructions: str) -> bool:
    return bool(torch.cpu.get_capabilities().get(instructions, False))


def _norms(vectors: torch.Tensor) -> torch.Tensor:
    norms: torch.Tensor = torch.linalg.vector_norm(vectors, dim=1).to(torch.float64)
    return norms


def _split(values: torch.Tensor, columns: torch.Tensor) -> None:
    """Write each value as a sum of three numbers of the columns' precision."""
    rest = values
    for column in columns.unbind(1):
        column.copy_(rest)
        rest = rest - column
