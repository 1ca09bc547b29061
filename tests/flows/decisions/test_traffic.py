"""What ingestion and scoring ask of the database, by counts: they do not depend on the machine, as seconds do."""

import numpy as np

from tests.counting import Traffic, traffic
from tests.running import Arrays, Bench, Golden, run_chunk
from venn_admit.store.exemplars import classifiers

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
    """A row goes once to each of three tables; four statements a batch, twelve a file, two that count many rows."""
    bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    vector_bytes = 2 + (4 + 4) + (4 + 1) + (4 + 8) + (4 + 4 + 4 * D)
    for count, batches, analyzed in ((10, 1, 0), (8192, 1, 2), (8193, 2, 2)):
        counted = ingested(bench, count)
        assert counted.statements == 12 + 4 * batches + analyzed
        assert counted.copied_in == dict.fromkeys(("exemplar", "exemplar_vector", "label_event"), count)
        assert counted.bytes_in["exemplar_vector"] == count * vector_bytes + batches * COPY_FRAME
        assert counted.copied_out == 0


def test_of_a_file_without_ids(bench: Bench) -> None:
    bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    assert ingested(bench, 100, with_ids=False).statements == 12 + 4 + 2
    again = ingested(bench, 100, with_ids=False)
    assert (again.statements, again.copied_in, again.copied_out) == (10, {}, 0)


def test_of_a_file_that_is_known(bench: Bench) -> None:
    bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    ingested(bench, 100)
    again = ingested(bench, 100)
    assert (again.statements, again.copied_in, again.copied_out) == (10, {}, 0)


def test_of_reading_the_support(bench: Bench) -> None:
    """Some dozens of vectors a row: what the driver hands over singly is what takes its time.

    One of the four statements makes what the next version is compared with, and the last says which caches are of
    nothing any more.
    """
    count = 10_000
    classifier = bench.create("one", dimension=D, class_count=C, neighbour_count=K)
    ingested(bench, count)
    with bench.engine.connect() as connection:
        classifier = classifiers.by_id(connection, classifier.id)
    with traffic(bench.engine) as counted:
        bench.cache.support(bench.engine, classifier)
    blocks = [-(-count // (2**16 // (4 * width))) for width in (C, D)]
    assert (counted.statements, counted.copied_out) == (4, sum(blocks))


def test_of_a_scored_chunk(edge: Bench) -> None:
    """However many rows: as many statements. Rows are written once, and vectors read once."""
    k = int(Golden("edge")["K"])
    list_bytes = 2 + 2 * (4 + 8) + 2 * (4 + 20 + k * (4 + 8))
    request = edge.request_score("edge", edge.folder / "score.npz", chunk_rows=60)
    runner = edge.runner()
    run_chunk(runner, request.job_id, 0)  # which also reads the support and the snapshot
    for ordinal, count, at_the_end in ((1, 60, 0), (2, 40, 1)):  # when training exemplars that waited join
        with traffic(edge.engine) as counted:
            assert run_chunk(runner, request.job_id, ordinal) == count
        assert counted.statements == 22 + at_the_end
        assert counted.copied_in == dict.fromkeys(("neighbours", "approximation", "decision", "admit_evidence"), count)
        assert counted.bytes_in["neighbours"] == count * list_bytes + COPY_FRAME
        assert counted.copied_out == count
