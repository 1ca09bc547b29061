"""Synthetic exemplars of a fixed seed, shaped like those of real classifiers."""

import numpy as np

from venn_admit.core.types import Approximation, Float32Array, IntArray

_LATENT_DIMENSION = 12
_CLUSTERS = 40


def generator() -> np.random.Generator:
    return np.random.default_rng(2022)


def draw_vectors(count: int, dimension: int) -> Float32Array:
    """(count, dimension) float32: clusters of low intrinsic dimension, a little noise, past a ReLU."""
    rng = generator()
    centres = 2 * rng.standard_normal((_CLUSTERS, _LATENT_DIMENSION), dtype=np.float32)
    directions = rng.standard_normal((_LATENT_DIMENSION, dimension), dtype=np.float32)
    latent = rng.standard_normal((count, _LATENT_DIMENSION), dtype=np.float32)
    latent += centres[rng.integers(_CLUSTERS, size=count)]
    vectors: Float32Array = latent @ directions
    block_rows = 8192
    for start in range(0, count, block_rows):
        block = vectors[start : start + block_rows]
        block += 0.1 * rng.standard_normal(block.shape, dtype=np.float32)
        np.maximum(block, 0, out=block)
    return vectors


def draw_network(vectors: Float32Array, class_count: int) -> tuple[Float32Array, IntArray]:
    """Logits (n, C) float32 that follow the vectors, and labels (n,) int64 that the logits mostly tell."""
    rng = generator()
    directions = rng.standard_normal((vectors.shape[1], class_count))
    logits = (vectors - vectors.mean(axis=0)) @ directions
    logits *= 3 / logits.std()
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits.astype(np.float32), labels.astype(np.int64)


def draw_view(
    rng: np.random.Generator, count: int, class_count: int, neighbour_count: int
) -> tuple[Approximation, IntArray]:
    """What a KNN makes of `count` points, and their labels: the clearer a point, the higher q and the lower d."""
    label = rng.integers(class_count, size=count)
    clarity = rng.gamma(3.0, 2.0, size=count)
    logits = rng.standard_normal((count, class_count))
    logits[np.arange(count), label] += clarity
    view = Approximation(
        logits=logits,
        predicted=logits.argmax(axis=1),
        match_count=np.minimum(rng.poisson(clarity * neighbour_count / 5), neighbour_count),
        distance=rng.gamma(4.0, 1.0, size=count) / (1 + clarity),
    )
    return view, label
