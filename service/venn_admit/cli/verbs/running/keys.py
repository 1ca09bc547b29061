"""Verbs on the keys for the HTTP service: create, list, revoke."""

from typing import Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json
from venn_admit.cli.output import print_result

KeyId = Annotated[int, typer.Argument(help="Number of a key, from `venn-admit key list`.")]


def create_key(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[
        str,
        typer.Option(
            help="read: see what is stored; score: also decide, and have files scored; write: also store labels and "
            "data, and calibrate; admin: also create, rename and delete classifiers, and all else. Each includes those "
            "before it."
        ),
    ],
    classifier: Annotated[
        str | None, typer.Option(help="The one classifier that the key is for; default: all.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="Days after which the key expires, such as 90d; default: never.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key for the HTTP service, and show it once: it is not stored, and cannot be shown again."""
    from venn_admit.flows.keys.keys import create
    from venn_admit.runtime.settings import days

    kept = None if expires is None else days(expires).days
    made = create(open_session().engine, name, scope=scope, classifier=classifier, days=kept)
    print_result(
        as_json,
        {"key": made.id, "name": name, "scope": scope, "classifier": classifier, "secret": made.text},
        f"Key {made.id}, {name}, has the scope {scope}. It is shown only now, so keep it in a safe place:",
        made.text,
    )


def list_keys(as_json: Json = False) -> None:
    """List the keys: what each is for, whether it is valid, and when it was last used."""
    from venn_admit.cli.tables.rows import table
    from venn_admit.flows.keys.keys import list_keys as flow
    from venn_admit.results import rows_json

    rows = flow(open_session().engine)
    columns = ("key", "name", "scope", "classifier", "state", "created", "expires", "last used")
    shown = [
        (str(k.key), k.name, k.scope, k.classifier or "all", k.state, k.created_at, k.expires_at, k.last_used_at)
        for k in rows
    ]
    payload = {"keys": rows_json(rows)}
    print_result(as_json, payload, table(columns, shown) if rows else "There are no keys yet.")


def revoke_key(key: KeyId, as_json: Json = False) -> None:
    """Refuse a key from now on."""
    from venn_admit.flows.keys.keys import revoke

    revoke(open_session().engine, key)
    print_result(as_json, {"key": key, "state": "revoked"}, f"Key {key} is revoked: it is refused from now on.")
