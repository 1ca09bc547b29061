"""What ingestion and scoring ask of the database, by counts: they do not depend on the machine, as seconds do."""

import numpy as np

from tests.counting import Traffic, traffic
from tests.running import Arrays, Bench, ChunkLimits, Golden
from venn_admit.service.flows.computing import chunk_runner
from venn_admit.service.store.exemplars import classifiers

D, C, K = 16, 2, 3
COPY_FRAME = 19 + 2  # header and trailer


def sample(count: int, *, with_ids: bool = True) -> Arrays:
    ids = {"id": np.array([f"{count}-{row}" for row in range(count)])} if with_ids else {}
    rng = np.random.default_rng(count)
    return {
        **ids,
        "r": rng.normal(size=(count, D)).astype(np.float32),
        "f": rng.normal(size=(count, C)).astype(np.float32),
        "y": rng.integers(0, C, count),
    }


def ingested(bench: Bench, count: int, *, with_ids: bool = True) -> Traffic:
    path = bench.write(f"{count}.npz", sample(count, with_ids=with_ids))
    with traffic(bench.engine) as counted:
        bench.ingest("one", path, "train")
    return counted


def test_of_ingestion(bench: Bench) -> None:
    """A row goes once to each of three tables; two statements a batch, and four a file."""
    bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    vector_bytes = 2 + (4 + 4) + (4 + 1) + (4 + 8) + (4 + 4 + 4 * D)
    for count, batches in ((10, 1), (8192, 1), (8193, 2)):
        counted = ingested(bench, count)
        assert counted.statements == 4 + 2 * batches
        assert counted.copied_in == dict.fromkeys(("exemplar", "exemplar_vector", "label_event"), count)
        assert counted.bytes_in["exemplar_vector"] == count * vector_bytes + batches * COPY_FRAME
        assert counted.copied_out == 0


def test_of_a_file_without_ids(bench: Bench) -> None:
    """A batch takes one statement more, which looks for rows under the ids that they had in former versions."""
    bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    assert ingested(bench, 100, with_ids=False).statements == 4 + 3
    again = ingested(bench, 100, with_ids=False)
    assert (again.statements, again.copied_in, again.copied_out) == (5, {}, 0)


def test_of_a_file_that_is_known(bench: Bench) -> None:
    bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    ingested(bench, 100)
    again = ingested(bench, 100)
    assert (again.statements, again.copied_in, again.copied_out) == (4, {}, 0)


def test_of_reading_the_support(bench: Bench) -> None:
    """Some dozens of vectors a row: what the driver hands over singly is what takes its time."""
    count = 10_000
    classifier = bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    ingested(bench, count)
    with bench.engine.connect() as connection:
        classifier = classifiers.by_id(connection, classifier.id)
    with traffic(bench.engine) as counted:
        bench.cache.support(bench.engine, classifier)
    blocks = [-(-count // (2**16 // (4 * width))) for width in (C, D)]
    assert (counted.statements, counted.copied_out) == (3, sum(blocks))


def test_of_a_scored_chunk(edge: Bench) -> None:
    """However many rows: as many statements. Rows are written once, vectors read for the search and the localizer."""
    k = int(Golden("edge")["K"])
    list_bytes = 2 + 2 * (4 + 8) + 2 * (4 + 20 + k * (4 + 8))
    request = edge.request_score("edge", edge.folder / "score.npz", chunk_rows=60)
    runner = chunk_runner(edge.engine, edge.cache, ChunkLimits(), worker="here")
    runner.run(request.job_id, 0)  # which also reads the support and the snapshot
    for ordinal, count in ((1, 60), (2, 40)):
        with traffic(edge.engine) as counted:
            assert runner.run(request.job_id, ordinal) == count
        assert counted.statements == 19
        assert counted.copied_in == dict.fromkeys(("neighbours", "approximation", "decision", "admit_evidence"), count)
        assert counted.bytes_in["neighbours"] == count * list_bytes + COPY_FRAME
        assert counted.copied_out == 2 * count
