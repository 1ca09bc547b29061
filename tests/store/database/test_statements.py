"""Rows that are streamed come in blocks, through a cursor on the server."""

from sqlalchemy import Engine, text

from tests.store.exemplars.test_exemplars import make_classifier
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import exemplars

ROWS = 10_000
INSERTED = f"""
INSERT INTO exemplar (id, classifier_id, external_id, split, network_logits, network_predicted, content_digest)
SELECT n, :classifier_id, n::text, 'scored', '{{0, 1}}', 1, ''
FROM generate_series(1, {ROWS}) AS n
"""


def test_no_more_than_a_block_is_held(engine: Engine) -> None:
    with transaction(engine) as connection:
        classifier = make_classifier(connection)
        connection.execute(text(INSERTED), {"classifier_id": classifier.id})
    sizes, cursors = [], set()
    with connect(engine) as connection:
        for block in exemplars.export_rows(connection, classifier):
            sizes.append(len(block))
            cursors.add(connection.exec_driver_sql("SELECT count(*) FROM pg_cursors").scalar_one())
    assert sizes == [4096, 4096, ROWS - 2 * 4096]
    assert cursors == {1}
