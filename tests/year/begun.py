"""The state at the beginning: a classifier whose certificate stands, a rule by which points are audited, and keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url, text

import venn_admit
from tests.conftest import fresh_database
from tests.faults.server import Server
from tests.year.law import BEFORE, CLASS_NAMES, DIMENSION, draw
from tests.year.stream import ALPHA, AUDITED, NAME, ON_PAGE, OPERATOR, TRAINED, Calendar
from venn_admit.flows.keys.keys import create
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit.store.database.schema import upgrade


@contextmanager
def begun(server: Server, folder: Path, calendar: Calendar, seed: int) -> Iterator[str]:
    """The name of a database, that nobody is connected to, from which runs of one seed begin alike."""
    with fresh_database(server.url) as url:
        upgrade(url)
        with venn_admit.connect(url, home=folder / "beginning") as connection:
            first = connection.create(NAME, CLASS_NAMES, dimension=DIMENSION)
            for day, count, split in ((-1, TRAINED, "train"), (-2, calendar.held_out, "held-out")):
                points = draw(seed, day, count)
                vectors, logits = points.seen(BEFORE)
                first.ingest(
                    vectors=vectors, logits=logits, labels=points.labels, ids=points.ids, split=split, extractor="v1"
                )
            first.fit()
            first.calibrate(method="venn-abers", alpha=ALPHA, standing=True, score="network")
            first.audit(AUDITED)
        engine = create_engine(url)
        with transaction(engine) as connection:
            # The key of the draws is a random one, and they are to be the same whenever a seed is.
            connection.execute(text("UPDATE audit_rule SET key = decode(md5(:seed), 'hex')"), {"seed": str(seed)})
        engine.dispose()
        yield make_url(url).database or ""


def keys_of(url: str) -> dict[str, str]:
    """Keys for those who ask the service, by their names."""
    engine = create_engine(url)
    scopes = {OPERATOR: Scope.ADMIN, ON_PAGE: Scope.WRITE}
    keys = {name: create(engine, name, scope=scope).text for name, scope in scopes.items()}
    engine.dispose()
    return keys
