"""Decisions by Venn-Abers, as they are stored and on points alone."""

from typing import Any

import numpy as np
from sqlalchemy import Row

from tests.running import EXAMPLES, Bench, Scores
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import PointDecision, PointScorer

STORED = """
SELECT decision.*, abers_evidence.*
FROM job
INNER JOIN job_row ON job.id = job_id
INNER JOIN decision USING (exemplar_id, calibration_id, weighted, require_full_match)
INNER JOIN abers_evidence ON decision.id = decision_id
WHERE job.id = :job_id
ORDER BY row_number
"""


def agreeing_decisions(
    reviews: Bench, *, require_full_match: bool
) -> tuple[Scores, list[Row[Any]], list[PointDecision]]:
    """Some real points as a job decides on them, its stored decisions, and those on each point alone.

    They are the same by a promise about a share of what is admitted, and some are replayed.
    """
    with np.load(EXAMPLES / "ood.npz") as arrays:
        part = {name: arrays[name][:60] for name in ("r", "f", "y")}
    scores = reviews.score(
        "reviews", reviews.write("part.npz", part), weighted=None, require_full_match=require_full_match
    )
    stored = reviews.rows(STORED, job_id=scores.request.job_id)
    scorer = PointScorer(reviews.workspace())
    alone = [
        scorer.score("reviews", vector, logits=logits, require_full_match=require_full_match)
        for vector, logits in zip(part["r"].astype(np.float32), part["f"].astype(np.float32), strict=True)
    ]
    for row, found in zip(stored, alone, strict=True):
        assert found.fields == {field: row._mapping[field] for field in found.fields}
        assert found.policy is not None
    for row in stored[::10]:
        again = replay(reviews.workspace(), row.id)
        assert (again.differing, again.policy is None) == ((), False)
    return scores, stored, alone
