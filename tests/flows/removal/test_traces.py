"""After somebody was forgotten, no table and no file holds a trace of them: no id, no text, no vector, no logits.

The tables and columns are those of the catalogue, so that a new one is searched as well.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sqlalchemy import text

from tests.running import Bench, Golden
from venn_admit.flows.calibration.generations import create_generation
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.removal.forget import forget
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars.forgotten import INSTEAD

ID, DOCUMENT, ATTRIBUTE = "person-7f3a", "letter-of-7f3a", "Dear 7f3a"
COLUMNS = """
SELECT c.relname AS table, a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type
FROM pg_class AS c INNER JOIN pg_attribute AS a ON c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'venn_admit'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""


def found_in_tables(bench: Bench, marks: list[str], vectors: list[bytes]) -> set[str]:
    """Every column of every table that holds one of the texts, as text or bytes, or the bytes of a vector."""
    found = set()
    with connect(bench.engine) as connection:
        for row in connection.execute(text(COLUMNS)).all():
            table, column = row.table, row.column
            value = f"t.{column}::text"
            where = " OR ".join(f"position(:mark{number} IN {value}) > 0" for number in range(len(marks)))
            bound: dict[str, str | bytes] = {f"mark{number}": mark for number, mark in enumerate(marks)}
            if row.type == "bytea":
                where = " OR ".join(f"position(:mark{number} IN t.{column}) > 0" for number in range(len(marks)))
                bound = {f"mark{number}": mark.encode() for number, mark in enumerate(marks)}
            if row.type in ("vector", "real[]"):
                sent = {"vector": "vector_send", "real[]": "array_send"}[row.type]
                where = " OR ".join(f"position(:v{number} IN {sent}(t.{column})) > 0" for number in range(len(vectors)))
                bound = {f"v{number}": vector for number, vector in enumerate(vectors)}
            if connection.execute(text(f"SELECT EXISTS (SELECT FROM {table} AS t WHERE {where})"), bound).scalar_one():
                found.add(f"{table}.{column}")
    return found


def found_in_files(bench: Bench, needles: list[bytes]) -> set[str]:
    """The files of the home, of which the cache is a part here, that hold one of these."""
    return {str(path) for path in files(bench) if any(needle in path.read_bytes() for needle in needles)}


def files(bench: Bench) -> Iterator[Path]:
    return (path for path in (bench.folder / "cache").rglob("*") if path.is_file())


def test_no_table_and_no_file_holds_a_trace(edge: Bench, golden: Golden) -> None:
    # Exemplars of each split and of two generations, with vectors that nobody else has.
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(4, golden.dimension)).astype(np.float32)
    logits = rng.normal(size=(4, golden.class_count)).astype(np.float32)
    create_generation(edge.engine, "edge")
    for generation in ("edge", "edge@2"):
        for number, split in enumerate(("train", "mc", "vp")):
            rows = {
                "id": np.array([f"{ID}-{split}"]),
                "doc": np.array([DOCUMENT]),
                "r": vectors[number : number + 1],
                "f": logits[number : number + 1],
                "y": np.array([1]),
                "text": np.array([ATTRIBUTE]),
            }
            edge.ingest(generation, edge.write("person.npz", rows), split)
    edge.calibrate("edge", **golden.settings)
    scored = {"id": np.array([f"{ID}-score"]), "r": vectors[3:], "f": logits[3:], "text": np.array([ATTRIBUTE])}
    request = edge.score("edge", edge.write("scored.npz", scored)).request
    PointScorer(edge.workspace()).score("edge", golden["score_r"][0].astype(np.float32))
    with transaction(edge.engine) as connection:  # what a request and a chunk that failed leave
        connection.execute(text("UPDATE job SET error = :error"), {"error": f"row 3, id '{ID}-mc': broken"})
        connection.execute(
            text(
                "INSERT INTO idempotent_request (caller, idempotency_key, route, attempt, leased_until, digest, status,"
                " headers, answer, expires_at) VALUES ('key 1', 'k', 'POST', gen_random_uuid(), now(), :digest, 200,"
                " '{}', :answer, now() + interval '1 day')"
            ),
            {"digest": b"0" * 32, "answer": json.dumps({"external_id": f"{ID}-mc"}).encode()},
        )
    marks = [ID, DOCUMENT, ATTRIBUTE]
    in_tables = [one.astype(">f4").tobytes() for one in vectors]
    # Postgres sends the length of each number of an array before it.
    in_arrays = [
        b"".join(b"\x00\x00\x00\x04" + value.tobytes() for value in one.astype(">f4")[:, None]) for one in logits
    ]
    in_files = [one.astype("<f4").tobytes() for one in (*vectors, *logits)]
    needles = [*in_tables, *in_arrays]
    before = found_in_tables(edge, marks, needles)
    assert before >= {
        "exemplar.external_id",
        "exemplar.document_id",
        "exemplar.attributes",
        "exemplar.network_logits",
        "exemplar_vector.vector",
        "idempotent_request.answer",
        "job.error",
    }
    assert found_in_files(edge, in_files)
    ids = [int(row.id) for row in edge.rows("SELECT id FROM exemplar WHERE external_id LIKE :id", id=f"{ID}%")]
    assert len(ids) == 7

    done = forget(edge.workspace(chunk_rows=100), "edge", [f"{ID}-score"], [DOCUMENT])
    assert done.exemplars == 7
    for job_id in done.jobs:
        edge.run(job_id)
    edge.calibrate("edge", **golden.settings)
    PointScorer(edge.workspace()).score("edge", golden["score_r"][0].astype(np.float32))
    assert found_in_tables(edge, marks, needles) == set()
    assert found_in_files(edge, in_files) == set()
    assert INSTEAD in edge.value("SELECT error FROM job WHERE id = :id", id=request.job_id)
    # No row refers to them by their keys.
    for row in edge.rows(COLUMNS):
        if row.column in ("exemplar_id", "neighbour_ids"):
            value = f"{row.column} = ANY(:ids)" if row.column == "exemplar_id" else f"{row.column} && :ids ::bigint[]"
            assert edge.value(f"SELECT count(*) FROM {row.table} WHERE {value}", ids=ids) == 0, row.table
