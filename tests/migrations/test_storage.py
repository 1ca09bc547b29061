"""How tables are stored: when Postgres vacuums and counts them."""

from collections.abc import Mapping

from sqlalchemy import Engine, text

from venn_admit.store.database.engine import connect

SETTINGS = """
SELECT relname, reloptions FROM pg_class
WHERE relnamespace = 'venn_admit'::regnamespace AND relkind = 'r' AND reloptions::text LIKE '%autovacuum%'
"""
# What grows with exemplars, calibrations and decisions. Vectors are in partitions, two for each classifier.
LARGE = {
    "abers_evidence",
    "admit_evidence",
    "approximation",
    "calibration_point",
    "decision",
    "exemplar",
    "job_row",
    "label_event",
    "neighbours",
}


def settings(engine: Engine) -> Mapping[str, list[str]]:
    with connect(engine) as connection:
        return {row.relname: sorted(row.reloptions) for row in connection.execute(text(SETTINGS))}


def test_large_tables_are_vacuumed_and_counted_sooner(engine: Engine) -> None:
    shares = [
        "autovacuum_analyze_scale_factor=0.02",
        "autovacuum_vacuum_insert_scale_factor=0.05",
        "autovacuum_vacuum_scale_factor=0.05",
    ]
    assert settings(engine) == dict.fromkeys(LARGE, shares)
