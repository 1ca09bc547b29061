"""The decision on one vector by SQL is that of a job on the same vector, field by field, bit for bit."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from tests.running import EXAMPLES, Bench, Golden
from tests.templates import Filled, fresh_bench, reviews_of
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.flows.decisions.score_one import GivenPoint, PointScorer
from venn_admit.methods.venn_admit import method
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.search import nearest

POINTS = 40
# More than are decided on in a test, together and one by one.
ALL = 1000


@pytest.fixture(scope="module")
def bench(server_url: str, filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A database with the calibrated classifiers `reviews`, of real data, and `edge`, of ties."""
    with fresh_bench(server_url, filled(reviews_of(4000)), tmp_path_factory.mktemp("agreement")) as found:
        for file in ("test", "ood"):
            with np.load(EXAMPLES / f"{file}.npz") as arrays:
                found.write(f"{file}.npz", {name: values[:POINTS] for name, values in arrays.items()})
        golden = Golden("edge")
        golden.prepare(found, "edge")
        found.calibrate("edge", **golden.settings)
        found.write("edge.npz", golden.exemplars("score"))
        yield found


@pytest.mark.parametrize(("weighted", "by_sql"), [(True, 0), (False, 0), (False, ALL)])
@pytest.mark.parametrize("require_full_match", [True, False])
@pytest.mark.parametrize(("name", "file"), [("reviews", "test"), ("reviews", "ood"), ("edge", "edge")])
def test_is_that_of_a_job(
    bench: Bench,
    name: str,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    weighted: bool,
    by_sql: int,
    require_full_match: bool,
) -> None:
    """by_sql: how many points are decided from bands that SQL counts; the snapshot's indexes decide the others."""
    monkeypatch.setattr(method, "POINTS_BY_SQL", by_sql)
    path = bench.folder / f"{file}.npz"
    scores = bench.score(name, path, weighted=weighted, require_full_match=require_full_match)
    stored = bench.rows(
        "SELECT decision.*, admit_evidence.* FROM job JOIN job_row ON job.id = job_id JOIN decision USING (exemplar_id)"
        " JOIN admit_evidence ON decision.id = decision_id"
        " WHERE job.id = :job_id AND decision.calibration_id = job.calibration_id"
        " AND decision.weighted = job.weighted AND decision.require_full_match = job.require_full_match"
        " ORDER BY row_number",
        job_id=scores.request.job_id,
    )
    scorer = PointScorer(bench.workspace())
    with np.load(path) as arrays:
        vectors = arrays["r"].astype(np.float32)
    assert len(stored) == len(vectors)
    reasons = set()
    together = scorer.score_each(
        name,
        [GivenPoint(vector, None) for vector in vectors],
        weighted=weighted,
        require_full_match=require_full_match,
    )
    for row, vector, one in zip(stored, vectors, together, strict=True):
        found = scorer.score(name, vector, weighted=weighted, require_full_match=require_full_match)
        assert found.fields == one.fields
        assert found.category_counts.tolist() == one.category_counts.tolist()
        assert found.fields == {field: row._mapping[field] for field in found.fields}
        assert found.calibration_id == row.calibration_id
        assert found.category_counts.sum() == row.category_size
        reasons.add(row.reason)
    assert len(reasons) > 1


def test_real_neighbours_are_those_of_the_arrays(bench: Bench) -> None:
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
        support = bench.cache.support(bench.engine, classifier)
        with np.load(bench.folder / "test.npz") as arrays:
            queries = arrays["r"].astype(np.float32)
        expected = exact_neighbours(queries, support.vectors, classifier.neighbour_count)
        for row, query in enumerate(queries):
            found = nearest.exact_nearest(connection, classifier, query)
            np.testing.assert_array_equal(found.ids, support.ids[expected.indices[row]])
            np.testing.assert_array_equal(found.distances, expected.distances[row])
            np.testing.assert_array_equal(found.labels, support.support.labels[expected.indices[row]])
            np.testing.assert_array_equal(found.logits, support.support.logits[expected.indices[row]])


WITHOUT_TORCH = """
import sys
import threading
from pathlib import Path

import numpy as np

from venn_admit.flows.decisions import point_search
from venn_admit.runtime.workspace import Runtime
from venn_admit.runtime.settings import Settings
from venn_admit.store.search import nearest

url, home, file, weighted = sys.argv[1:]
point_search.POINTS_BY_SCAN = 20
scorer = Runtime.start(Settings(database_url=url, home=Path(home))).point_scorer
with np.load(file) as arrays:
    vectors = arrays["r"][:40].astype(np.float32)
found = [scorer.score("reviews", vector, weighted=weighted == "True") for vector in vectors[:20]]
for thread in threading.enumerate():
    if thread.name == "copy of training exemplars":
        thread.join()
nearest.exact_nearest = None  # the rest is searched in the copy
found += [scorer.score("reviews", vector, weighted=weighted == "True") for vector in vectors[20:]]
assert any(one.fields["lower"] is not None for one in found), "no singleton: nothing was weighed"
assert "torch" not in sys.modules
"""


@pytest.mark.processes
@pytest.mark.parametrize("weighted", [True, False])
def test_needs_no_torch(bench: Bench, *, weighted: bool) -> None:
    """A process that answers requests starts at once and stays small."""
    url = bench.engine.url.render_as_string(hide_password=False)
    arguments = [url, bench.folder, bench.folder / "test.npz", weighted]
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *map(str, arguments)], check=True)
