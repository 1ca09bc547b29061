"""Kept answers that name what was forgotten go: they are read once, after all else, while nothing is locked."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, text

from tests.running import Bench, Golden
from venn_admit.flows.removal import batches, one_generation
from venn_admit.flows.removal import forget as forgetting
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.removal.one_generation import remove_from
from venn_admit.store.access import idempotency
from venn_admit.store.database.engine import transaction


def keep(bench: Bench, name: str, answer: object) -> None:
    with transaction(bench.engine) as connection:
        connection.execute(
            text(
                "INSERT INTO idempotent_request (caller, idempotency_key, route, attempt, leased_until, digest, status,"
                " headers, answer, expires_at) VALUES ('key 1', :name, 'POST', gen_random_uuid(), now(), :digest, 200,"
                " '{}', :answer, now() + interval '1 day')"
            ),
            {
                "name": name,
                "digest": b"0" * 32,
                "answer": answer if isinstance(answer, bytes) else json.dumps(answer).encode(),
            },
        )


def kept(bench: Bench) -> list[str]:
    return [row.name for row in bench.rows("SELECT idempotency_key AS name FROM idempotent_request ORDER BY 1")]


def forgotten(bench: Bench, *ids: str, documents: Sequence[str] = (), dry_run: bool = False) -> int:
    done = forget(bench.workspace(chunk_rows=100), "edge", ids, documents, dry_run=dry_run)
    return done.rows.get("idempotent_request", 0)


def test_those_that_hold_an_id_go_and_others_stay(edge: Bench, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = 'a "quoted" \\ name, ü'
    arrays = golden.exemplars("score", slice(1))
    edge.ingest("edge", edge.write("odd.npz", {**arrays, "id": np.array([odd])}), "train")
    keep(edge, "as a value", {"rows": [{"id": "mc-4"}]})
    keep(edge, "as a key", {"mc-4": 1})
    keep(edge, "escaped", {"id": odd})
    keep(edge, "not escaped", json.dumps({"id": odd}, ensure_ascii=False).encode())
    keep(edge, "no document", b'{"id": "mc-4", "cut off')
    keep(edge, "other", {"id": "mc-40", "text": "mc-4 and others", "number": 4, "half": "\ud800"})
    monkeypatch.setattr(one_generation, "BLOCK", 2)
    assert forgotten(edge, "mc-4", odd, dry_run=True) == 5
    assert forgotten(edge, "mc-4", odd) == 5
    assert kept(edge) == ["other"]


def test_they_are_read_once_however_many_transactions_there_are(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real, readings = idempotency.some_answers, []

    def read(connection: Connection, **asked: Any) -> Any:
        readings.append(asked["after"])
        with transaction(edge.engine) as other:
            other.exec_driver_sql("SELECT FROM classifier FOR UPDATE NOWAIT")
            assert other.exec_driver_sql("SELECT pg_try_advisory_xact_lock(1, id) FROM classifier").scalar_one()
        return real(connection, **asked)

    monkeypatch.setattr(idempotency, "some_answers", read)
    monkeypatch.setattr(batches, "BATCH", 1)
    keep(edge, "one", {"id": "vp-1"})
    assert forgotten(edge, "mc-4", "mc-5", "vp-1") == 1
    assert [after is None for after in readings] == [True, False]


def test_one_that_is_stored_between_two_transactions_goes(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:

    def remove(*arguments: Any, **options: Any) -> None:
        keep(edge, f"before {len(kept(edge))}", {"id": "vp-1"})
        remove_from(*arguments, **options)

    monkeypatch.setattr(forgetting, "remove_from", remove)
    monkeypatch.setattr(batches, "BATCH", 1)
    assert forgotten(edge, "mc-4", "mc-5", "vp-1") == 3
    assert kept(edge) == []


def test_they_go_with_the_next_run_if_the_first_was_killed_before_it_read_them(
    edge: Bench, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing says any more by then which exemplars the document had."""
    arrays = golden.exemplars("score", slice(1))
    edge.ingest("edge", edge.write("a.npz", {**arrays, "id": np.array(["a-0"]), "doc": np.array(["doc-a"])}), "train")
    keep(edge, "one", {"id": "a-0"})

    class Died(Exception):  # noqa: N818
        pass

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "forget_answers", die)
        with pytest.raises(Died):
            forgotten(edge, documents=["doc-a"])
    assert kept(edge) == ["one"]
    assert forgotten(edge, documents=["doc-a"]) == 1
    assert kept(edge) == []
