"""A classifier that is calibrated by both methods and scored, for tests that remove something of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import fresh_engine
from tests.running import Bench, Golden

Make = Callable[..., None]


@pytest.fixture(scope="session")
def golden() -> Golden:
    return Golden("edge")


@pytest.fixture(scope="session")
def make(golden: Golden) -> Make:
    """Makes a classifier, calibrated by both methods and scored; without: the ids that it never had."""

    def made(bench: Bench, name: str, without: frozenset[str] = frozenset()) -> None:
        def part(split: str) -> dict[str, Any]:
            arrays = golden.exemplars(split)
            kept = ~np.isin(arrays["id"], list(without))
            return {key: values[kept] for key, values in arrays.items()}

        bench.create(name, dimension=golden.dimension, class_count=golden.class_count, neighbour_count=int(golden["K"]))
        for split in ("train", "mc", "vp"):
            bench.ingest(name, bench.write(f"{name}-{split}.npz", part(split)), split)
        bench.adopt(name, golden.parameters, float(golden["eta_loc"]))
        bench.calibrate_abers(name, score="network")
        bench.calibrate(name, **golden.settings)
        bench.score(name, bench.write(f"{name}-score.npz", part("score")))

    return made


@pytest.fixture(scope="session")
def removal_template(
    server_url: str, template_database: str, make: Make, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of a database with the classifier `edge`, that nobody is connected to."""
    with fresh_engine(server_url, template_database) as engine:
        make(Bench(engine, tmp_path_factory.mktemp("edge")), "edge")
        engine.dispose()
        yield engine.url.database or ""


@pytest.fixture
def edge(server_url: str, removal_template: str, tmp_path: Path) -> Iterator[Bench]:
    """The classifier `edge`, calibrated by both methods and scored, for the test alone."""
    with fresh_engine(server_url, removal_template) as engine:
        yield Bench(engine, tmp_path)
