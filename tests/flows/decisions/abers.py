"""Real data for tests of Venn-Abers, and its decisions as they are stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import fresh_engine
from tests.running import Bench, make_reviews

STORED = """
SELECT decision.*, abers_evidence.*
FROM job
INNER JOIN job_row ON job.id = job_id
INNER JOIN decision USING (exemplar_id, calibration_id, weighted, require_full_match)
INNER JOIN abers_evidence ON decision.id = decision_id
WHERE job.id = :job_id
ORDER BY row_number
"""


@contextmanager
def with_reviews(server_url: str, template_database: str, folder: Path) -> Iterator[Bench]:
    """A database of its own with the classifier `reviews`, calibrated by Venn-ADMIT."""
    with fresh_engine(server_url, template_database) as engine:
        bench = Bench(engine, folder)
        make_reviews(bench, held_out_rows=4000)
        yield bench
