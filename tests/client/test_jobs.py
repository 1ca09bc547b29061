"""Files, tables and jobs through the client, with a worker: what it stores and decides is what the program does."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import venn_admit_client as client
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, DIMENSION, NAME, SCORED_ROWS
from tests.client.proxy import Drop, Proxy
from venn_admit_client import Classifier, Connection

pytestmark = pytest.mark.processes

Served = tuple[Program, str, str]


def given(points: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """Points as the arguments of `ingest` and `score`."""
    return {"vectors": points["vector"], "logits": points["logits"], "ids": points["external_id"]}


def as_table(points: dict[str, np.ndarray[Any, Any]]) -> pa.Table:
    lists = {name: pa.array(list(points[name]), pa.list_(pa.float32())) for name in ("vector", "logits")}
    return pa.table({"external_id": points["external_id"], "label": points["label"], **lists})


@pytest.mark.usefixtures("worker")
class TestScore:
    def test_arrays_are_decided_on_as_by_the_program(
        self, served: Served, classifier: Classifier, tmp_path: Path
    ) -> None:
        told: list[tuple[int, int]] = []
        out = tmp_path / "scores.parquet"
        table = classifier.score(
            **given(samples.scored()), out=out, progress=lambda done, rows: told.append((done, rows))
        )
        assert told[-1] == (SCORED_ROWS, SCORED_ROWS)
        expected = served[0].home / "expected.parquet"
        file = samples.save(tmp_path, "scored.npz", samples.scored())
        assert served[0]("score", NAME, file, "--out", expected).code == 0
        assert table.equals(pq.read_table(expected))
        assert pq.read_table(out).equals(table)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    def test_tables_and_files(self, classifier: Classifier, tmp_path: Path) -> None:
        points = samples.scored()
        expected = classifier.score(**given(points), weighted=False)
        table = as_table(points)
        parquet, stream = tmp_path / "points.parquet", tmp_path / "points.arrows"
        pq.write_table(table, parquet)
        with pa.ipc.new_stream(str(stream), table.schema) as writer:
            writer.write_table(table)
        frame = pd.DataFrame({name: list(points[name]) for name in ("external_id", "vector", "logits")})
        for data in (table, table.to_reader(), parquet, str(stream), frame):
            assert classifier.score(data, weighted=False).equals(expected)

    def test_the_decisions_of_an_earlier_job(self, classifier: Classifier) -> None:
        first = classifier.score(**given(samples.scored()))
        jobs = classifier._transport.get("classifiers", NAME, "jobs")["jobs"]
        number = next(one["job"] for one in jobs if one["kind"] == "score")
        assert classifier.scores(number).equals(first)
        with pytest.raises(client.NotFoundError):
            classifier.scores(10**9)

    def test_what_is_refused(self, classifier: Classifier, tmp_path: Path) -> None:
        points = given(samples.scored())
        with pytest.raises(client.InvalidInputError, match=r"ending in \.parquet"):
            classifier.score(**points, out=tmp_path / "scores.csv")
        with pytest.raises(client.InvalidInputError, match="got both: data and"):
            classifier.score(tmp_path / "a.parquet", **points)
        with pytest.raises(client.InvalidInputError, match="logits are missing"):
            classifier.score(vectors=points["vectors"])
        with pytest.raises(client.InvalidInputError, match=r"ending in \.parquet, \.arrows"):
            classifier.score(tmp_path / "points.npz")
        with pytest.raises(client.InvalidInputError, match="cannot be read"):
            classifier.score(tmp_path / "missing.parquet")
        with pytest.raises(client.InvalidInputError, match="got an int"):
            classifier.score(7)
        table = as_table(samples.scored())
        vectors = table.column("vector").to_pylist()
        vectors[3] = vectors[3][:-1]
        changed = pa.array(vectors, pa.list_(pa.float32()))
        with pytest.raises(client.InvalidInputError, match="row 3, vector"):
            classifier.score(table.set_column(table.column_names.index("vector"), "vector", changed))
        with pytest.raises(client.NotFoundError):
            classifier.score(**points, calibration=999)

    def test_a_lost_answer_leads_to_one_job(self, served: Served, proxy: Proxy, connection: Connection) -> None:
        """The upload is sent again with the same name, and the answer to the first one is given again."""
        direct = connection.classifier(NAME)
        before = len(direct._transport.get("classifiers", NAME, "jobs")["jobs"])
        with client.connect(proxy.url, served[2], retries=client.Retries(first_wait=0.01)) as unsteady:
            classifier = unsteady.classifier(NAME)
            proxy.faults.append(Drop())
            assert len(classifier.score(**given(samples.scored()))) == SCORED_ROWS
        first, second = (one for one in proxy.seen if one.method == "POST")
        assert first.idempotency_key == second.idempotency_key
        assert len(direct._transport.get("classifiers", NAME, "jobs")["jobs"]) == before + 1


@pytest.mark.usefixtures("worker")
def test_a_classifier_from_tables_to_recalibrated_decisions(connection: Connection, tmp_path: Path) -> None:
    made = connection.create("tables", list(CLASS_NAMES), dimension=DIMENSION, neighbours=samples.K)
    told: list[tuple[int, int]] = []
    train = made.ingest(as_table(samples.train()), split="train", progress=lambda done, rows: told.append((done, rows)))
    assert told == [(train.rows, train.rows)]
    assert train.new_per_split == {"train": train.rows}
    held_out = samples.held_out()
    stored = made.ingest(as_table(held_out), source="a table")
    assert stored.new == stored.rows == len(held_out["label"])
    told.clear()
    fit = made.fit(progress=lambda done, rows: told.append((done, rows)))
    assert told[-1][0] == told[-1][1]
    assert fit.points > 0
    assert fit.temperature > 0
    first = made.calibrate(method="venn-admit", alpha="0.2", kappa=10, q_bins=[0, 1])
    assert made.recalibrate() == []

    file = tmp_path / "labels.csv"
    other = (int(held_out["label"][0]) + 1) % 3
    labels = pa.table({"external_id": ["held-out-0", "held-out-1"], "label": [other, int(held_out["label"][1])]})
    pa_csv.write_csv(labels, file)
    assert made.label(file).corrected == 1
    assert made.label(labels).unchanged == 2
    noted = made.label(labels.to_pandas().assign(note="checked"))
    assert (noted.unchanged, noted.ignored) == (2, ("note",))
    (again,) = made.recalibrate()
    assert first.id is not None
    assert again > first.id
    assert made.uses()[0].calibration == again
    assert made.uses()[0].key_name is not None


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
from venn_admit_client import InvalidInputError, connect
classifier = connect({!r}, {!r}).classifier({!r})
try:
    classifier.score(logits=[[0.0, 0.0, 0.0]])
except InvalidInputError as error:
    print(error)
"""


def test_without_pyarrow_it_says_what_to_install(served: Served) -> None:
    script = WITHOUT_PYARROW.format(served[1], served[2], NAME)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'venn-admit-client[arrow]'" in done.stdout
