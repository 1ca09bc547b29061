"""Extended leases of attempts at a request, on the way up and back."""

from datetime import timedelta

from alembic import command
from sqlalchemy import Engine, text

from tests.migrations.migrating import move
from venn_admit.service.flows.access import idempotency
from venn_admit.service.store.access.idempotency import KeptAnswer
from venn_admit.service.store.database.engine import connect, transaction

LEASES = "SELECT idempotency_key, leased_until FROM idempotent_request"
HOUR = timedelta(hours=1)


def leases(engine: Engine, query: str = LEASES) -> dict[str, object]:
    with connect(engine) as connection:
        return {row.idempotency_key: row.leased_until for row in connection.execute(text(query))}


def test_older_programs_find_leases_where_they_look_for_them(empty: Engine) -> None:
    move(empty, "head")
    names = ("short", "long", "answered", "other attempt")
    attempts = []
    for name in names:
        began = idempotency.begin(empty, "key 1", name, "POST /", kept_for=HOUR)
        assert began is not None
        attempts.append(began[0])
    for attempt in attempts[1:]:
        idempotency.extend(empty, attempt)
    idempotency.record(empty, attempts[2], KeptAnswer(b"0" * 32, 200, {}, b""), kept_for=HOUR)
    with transaction(empty) as connection:
        connection.execute(text("UPDATE idempotent_lease SET leased_until = leased_until + interval '1 hour'"))
        connection.execute(
            text("UPDATE idempotent_request SET attempt = gen_random_uuid() WHERE idempotency_key = 'other attempt'")
        )
    before, extended = leases(empty), leases(empty, LEASES.replace("request", "lease"))
    move(empty, "0048", command.downgrade)
    assert leases(empty) == before | {"long": extended["long"]}
    assert extended["long"] != before["long"]
    move(empty, "head")
    assert leases(empty) == before | {"long": extended["long"]}
