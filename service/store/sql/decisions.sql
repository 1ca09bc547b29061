-- name: undecided
-- Those of the exemplars asked for that have no decision yet, in the order asked for.
SELECT wanted.exemplar_id
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
WHERE
    NOT EXISTS (
        SELECT 1
        FROM decision
        WHERE
            decision.calibration_id = :calibration_id
            AND decision.exemplar_id = wanted.exemplar_id
            AND decision.weighted = :weighted
            AND decision.require_full_match = :require_full_match
    )
ORDER BY wanted.position;

-- name: job_decisions
-- What `score --out` writes: one row a row of the request, in its order.
SELECT
    exemplar.external_id,
    decision.predicted,
    decision.logits,
    decision.match_count,
    decision.distance,
    decision.admit_set,
    decision.band_size,
    decision.threshold,
    decision.category_size,
    decision.upweight,
    decision.lower,
    decision.upper,
    decision.decision,
    decision.reason,
    decision.calibration_id
FROM job
INNER JOIN job_row ON job.id = job_row.job_id
INNER JOIN exemplar ON job_row.exemplar_id = exemplar.id
INNER JOIN decision
    ON
        job.calibration_id = decision.calibration_id
        AND job_row.exemplar_id = decision.exemplar_id
        AND job.weighted = decision.weighted
        AND job.require_full_match = decision.require_full_match
WHERE job.id = :job_id
ORDER BY job_row.row_number;

-- name: decision_counts
-- How many rows of a job were admitted, per class, and rejected, per reason.
SELECT
    decision.decision,
    decision.reason,
    count(*) AS rows
FROM job
INNER JOIN job_row ON job.id = job_row.job_id
INNER JOIN decision
    ON
        job.calibration_id = decision.calibration_id
        AND job_row.exemplar_id = decision.exemplar_id
        AND job.weighted = decision.weighted
        AND job.require_full_match = decision.require_full_match
WHERE job.id = :job_id
GROUP BY decision.decision, decision.reason
ORDER BY decision.decision, decision.reason;

-- name: decision_by_id
-- One decision as it is stored.
SELECT
    decision.id,
    decision.calibration_id,
    decision.exemplar_id,
    decision.weighted,
    decision.require_full_match,
    decision.complete_to,
    decision.predicted,
    decision.match_count,
    decision.distance,
    decision.logits,
    decision.admit_set,
    decision.band_size,
    decision.threshold,
    decision.category_size,
    decision.upweight,
    decision.lower,
    decision.upper,
    decision.decision,
    decision.reason,
    decision.created_at,
    exemplar.external_id,
    exemplar.label,
    exemplar.classifier_id
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE decision.id = :decision_id;
