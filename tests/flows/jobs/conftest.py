"""What is computed by jobs, and removed with them."""

import numpy as np
import pytest

from tests.running import Bench


@pytest.fixture
def unlabelled(edge: Bench) -> Bench:
    """`score.npz` without labels: decisions on exemplars that have any are kept."""
    with np.load(edge.folder / "score.npz") as arrays:
        edge.write("score.npz", dict(arrays) | {"y": np.full(len(arrays["y"]), -1)})
    return edge
