"""Databases whose views are compared with what the core and NumPy count."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.running import EXAMPLES, Bench, Golden
from tests.templates import Filled, fresh_bench, reviews_of
from venn_admit.store.database.engine import transaction


def make_documents(bench: Bench) -> None:
    """Three classes in documents of four points, calibrated by bands before and after labels changed, and scored."""
    golden = Golden("edge")
    bench.create("documents", dimension=golden.dimension, class_count=3, neighbour_count=int(golden["K"]))
    for part in ("train", "mc", "vp"):
        arrays = golden.exemplars(part)
        arrays["doc"] = np.array([f"{part}-{row // 4}" for row in range(len(arrays["y"]))])
        bench.ingest("documents", bench.write(f"{part}.npz", arrays), part)
    bench.adopt("documents", golden.parameters, float(golden["eta_loc"]))
    bench.calibrate("documents", **golden.settings)
    with transaction(bench.engine) as connection:
        flip = "UPDATE exemplar SET label = 2 - label WHERE split IN ('mc', 'vp') AND mod(id, 9) = 0"
        connection.exec_driver_sql(flip)
    bench.calibrate("documents", **golden.settings)
    scored = golden.exemplars("score")
    scored["y"] = np.where(np.arange(len(scored["y"])) % 5 == 0, -1, scored["y"])
    path = bench.write("score.npz", scored)
    bench.score("documents", path, weighted=False)
    bench.score("documents", path, weighted=True, require_full_match=True)
    bench.calibrate_abers("documents", score="network", q_bins=(0, 1, 4))
    bench.score("documents", path)


def score_reviews(bench: Bench) -> None:
    bench.score("reviews", EXAMPLES / "test.npz", weighted=False)
    bench.calibrate_abers("reviews", score="network")
    bench.score("reviews", EXAMPLES / "test.npz")


@pytest.fixture(scope="module", params=["reviews", "documents"])
def classifier(
    request: pytest.FixtureRequest, server_url: str, filled: Filled, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Bench, str]]:
    """Real data, or three classes in documents, calibrated by both methods and decided on; to be left as it is."""
    name = request.param
    template = filled(make_documents) if name == "documents" else filled(score_reviews, filled(reviews_of(4000)))
    with fresh_bench(server_url, template, tmp_path_factory.mktemp(name)) as bench:
        yield bench, name
