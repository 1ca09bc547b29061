"""Exemplars of a small three-class classifier."""

from pathlib import Path

import numpy as np

from tests.files.samples import Columns, write

CLASS_NAMES = ("red", "green", "blue")
DIMENSION, CLASS_COUNT, K = 8, len(CLASS_NAMES), 5
TRAIN_ROWS, HELD_OUT_ROWS, SCORED_ROWS = 300, 1500, 200
NAME = "colours"


def exemplars(prefix: str, count: int, seed: int) -> Columns:
    """Return points around three centres, with the logits of the classifier that knows the centres."""
    centres = np.random.default_rng(99).normal(scale=1.2, size=(CLASS_COUNT, DIMENSION))
    generator = np.random.default_rng(seed)
    labels = generator.integers(CLASS_COUNT, size=count)
    vectors = (centres[labels] + generator.normal(size=(count, DIMENSION))).astype(np.float32)
    squares = ((vectors[:, None, :] - centres) ** 2).sum(axis=2)  # (n, C)
    return {
        "external_id": np.array([f"{prefix}-{row}" for row in range(count)]),
        "vector": vectors,
        "logits": (squares.mean(axis=1, keepdims=True) - squares).astype(np.float32) / 2,
        "label": labels,
    }


def train() -> Columns:
    return exemplars("train", TRAIN_ROWS, seed=1)


def held_out() -> Columns:
    return exemplars("held-out", HELD_OUT_ROWS, seed=2)


def scored() -> Columns:
    return exemplars("scored", SCORED_ROWS, seed=3)


def take(columns: Columns, rows: slice | list[int]) -> Columns:
    """Return some of the rows."""
    return {name: values[rows] for name, values in columns.items()}


def save(folder: Path, name: str, columns: Columns) -> Path:
    return write(folder / name, columns)
