"""Decisions by Venn-Abers, as they are stored."""

STORED = """
SELECT decision.*, abers_evidence.*
FROM job
INNER JOIN job_row ON job.id = job_id
INNER JOIN decision USING (exemplar_id, calibration_id, weighted, require_full_match)
INNER JOIN abers_evidence ON decision.id = decision_id
WHERE job.id = :job_id
ORDER BY row_number
"""
