"""Sessions under a role of the database, and all relations that it may be tried on."""

from sqlalchemy import Engine

from venn_admit.store.database.engine import create_engine

RELATIONS = """
SELECT format('%I.%I', nspname, relname) AS name, nspname AS schema, relkind
FROM pg_class
INNER JOIN pg_namespace ON relnamespace = pg_namespace.oid
WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
ORDER BY 1
"""


def as_role(engine: Engine, role: str, *more: str) -> Engine:
    escaped = role.replace(" ", "\\ ")
    url = engine.url.update_query_dict({"options": " ".join([f"-c role={escaped}", *more])})
    return create_engine(url.render_as_string(hide_password=False))
