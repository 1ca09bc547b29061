"""Training exemplars that wait, on the way up and back."""

from alembic import command
from sqlalchemy import Engine, text

from tests.migrations.migrating import ROWS, move, run_script
from venn_admit.service.store.database.engine import connect, transaction
from venn_admit.service.store.exemplars import classifiers, support

NEWEST = 1_000_000


def test_those_that_wait_join_on_the_way_back(empty: Engine) -> None:
    """An older program would take them for training exemplars of the version before."""
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "head")
    with transaction(empty) as connection:
        classifier = classifiers.by_name(connection, "old")
        assert support.waiting(connection, classifier) == 0
        arriving = text(
            "INSERT INTO exemplar "
            "(id, classifier_id, external_id, split, network_logits, network_predicted, label, content_digest) "
            "VALUES (:newest, :id, 'waiting', 'train', '{0, 1}', 1, 1, '')"
        )
        connection.execute(arriving, {"newest": NEWEST, "id": classifier.id})
        assert support.waiting(connection, classifier) == 1
    move(empty, "0045", command.downgrade)
    standing = text("SELECT support_version, support_revision FROM classifier WHERE id = :id")
    with connect(empty) as connection:
        after = connection.execute(standing, {"id": classifier.id}).one()
    assert after.support_version == NEWEST
    assert after.support_revision != classifier.support_revision
    move(empty, "head")
    with connect(empty) as connection:
        assert connection.execute(standing, {"id": classifier.id}).one() == after
