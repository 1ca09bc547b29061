"""The shells refuse the same exemplars, say how to take them all the same, and count them alike."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import venn_admit
import venn_admit_client as client
from tests.api.conftest import remote_client, serving
from tests.api.service import OWN, Service
from tests.cli import samples
from tests.cli.databases import copied
from tests.cli.program import Program
from tests.files.samples import Columns
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import create_engine

SHELLS = ("command line", "HTTP", "HTTP, file", "Python", "client")


@dataclass(frozen=True)
class Answer:
    """What a shell made of exemplars: the refusal, or else the counts."""

    refused: str = ""
    counts: tuple[int, ...] = ()


class Shells:
    """Every shell on one database."""

    def __init__(self, program: Program, service: Service, folder: Path, connection: Any, remote: Any) -> None:
        self.program, self.service, self.folder = program, service, folder
        self.engine = create_engine(program.url)
        self.have_taken_training_rows = False
        self.classifiers = {"Python": connection.classifier(samples.NAME), "client": remote.classifier(samples.NAME)}

    def ingest(self, shell: str, columns: Columns, **options: Any) -> Answer:
        """Give held-out exemplars to a shell, with options as Python has them."""
        match shell:
            case "command line":
                path = samples.save(self.folder, "given.npz", columns)
                words = [f"--{name.replace('_', '-')}" for name in options]
                done = self.program("ingest", samples.NAME, path, "--split", "held-out", "--json", *words)
                return Answer(done.stderr) if done.code else counted(done.result.__getitem__)
            case "HTTP":
                rows = [{name: one.tolist() for name, one in zip(columns, row, strict=True)} for row in by_row(columns)]
                body = {"split": "held-out", "exemplars": rows, **options}
                return of_response(self.service.post(f"{OWN}/exemplars", body))
            case "HTTP, file":
                file = io.BytesIO()
                pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), file)
                options = {name: str(value).lower() for name, value in options.items()}
                answer = self.service.ask(
                    "POST",
                    f"{OWN}/exemplars/file",
                    key=Scope.ADMIN,
                    params={"split": "held-out", **options},
                    content=file.getvalue(),
                    headers={"Content-Type": "application/vnd.apache.parquet"},
                )
                return of_response(answer)
        try:
            done = self.classifiers[shell].ingest(
                vectors=columns["vector"],
                logits=columns["logits"],
                labels=columns["label"],
                ids=columns["external_id"],
                **options,
            )
        except (venn_admit.VennAdmitError, client.VennAdmitError) as error:
            return Answer("; ".join([str(error), *getattr(error, "__notes__", ())]))
        return counted(lambda name: getattr(done, name))


def by_row(columns: Columns) -> Iterator[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)


def of_response(answer: Any) -> Answer:
    return counted(answer.json().__getitem__) if answer.status_code < 300 else Answer(answer.json()["detail"])


def counted(value: Callable[[str], Any]) -> Answer:
    return Answer(counts=tuple(value(name) for name in ("rows", "new", "copies", "training_copies")))


@pytest.fixture(scope="module")
def shells(ingested: Program, server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shells]:
    folder = tmp_path_factory.mktemp("guards")
    with (
        copied(ingested, server_url, folder) as program,
        serving(program) as service,
        remote_client(service) as remote,
        venn_admit.connect(program.url, home=program.home) as connection,
    ):
        made = Shells(program, service, folder, connection, remote)
        yield made
        made.engine.dispose()


def named(columns: Columns, prefix: str) -> Columns:
    return {**columns, "external_id": np.array([f"{prefix}-{row}" for row in range(len(columns["label"]))])}


@pytest.mark.parametrize("shell", SHELLS)
def test_training_rows_are_refused_unless_they_are_allowed(shells: Shells, shell: str) -> None:
    columns = named(samples.take(samples.train(), slice(7)), f"train by {shell}")
    refusal = shells.ingest(shell, columns).refused
    assert "got 7 with the vector and logits, or of the document, of one that does the other: row 0, id" in refusal
    advised = {"command line": "`--allow-training-rows`", "Python": "`allow_training_rows=True`"}
    assert advised.get(shell, '`"allow_training_rows": true`') in refusal
    taken = shells.ingest(shell, columns, allow_training_rows=True)
    # Those by a shell before, which may be any, or none: each process of the tests has a database of its own.
    copies = 7 if shells.have_taken_training_rows else 0
    assert (taken.refused, taken.counts) == ("", (7, 7, copies, 7))
    shells.have_taken_training_rows = True


@pytest.mark.parametrize("shell", SHELLS)
def test_copies_are_counted(shells: Shells, shell: str) -> None:
    columns = named(samples.take(samples.held_out(), slice(5)), f"held out by {shell}")
    assert shells.ingest(shell, columns).counts == (5, 5, 5, 0)


@pytest.mark.parametrize("shell", SHELLS)
def test_probabilities_are_refused_unless_that_is_stated(shells: Shells, shell: str) -> None:
    columns = named(samples.exemplars("p", 20, seed=SHELLS.index(shell)), f"probabilities by {shell}")
    raised = np.exp(columns["logits"].astype(np.float64))
    columns["logits"] = (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)
    refusal = shells.ingest(shell, columns).refused
    assert "expected logits, got numbers that lie in [0, 1] and sum to 1 in every row" in refusal
    advised = {
        "command line": ("`--probabilities`", "`--as-logits`"),
        "Python": ("`probabilities=True`", "`probabilities=False`"),
    }
    for way in advised.get(shell, ('`"probabilities": true`', '`"probabilities": false`')):
        assert way in refusal
    assert shells.ingest(shell, columns, probabilities=True).counts == (20, 20, 0, 0)
    with shells.engine.connect() as connection:
        query = text("SELECT network_logits FROM venn_admit.exemplar WHERE external_id = :id")
        stored = connection.execute(query, {"id": str(columns["external_id"][0])}).scalar_one()
    assert stored == pytest.approx(np.log(columns["logits"][0]), abs=1e-6)
