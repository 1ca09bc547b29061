"""Training exemplars that wait: a calibration that never goes on."""

from sqlalchemy import text

from venn_admit.store.database.engine import create_engine, transaction


def hold_training(url: str) -> None:
    """Let the newest job that brought neighbours up to date run again, so that what arrives waits for it."""
    engine = create_engine(url)
    with transaction(engine) as connection:
        connection.execute(
            text(
                "UPDATE job SET state = 'running', created_at = now(), finished_at = NULL "
                "WHERE id = (SELECT max(id) FROM job WHERE kind = 'approximate')"
            )
        )
    engine.dispose()
