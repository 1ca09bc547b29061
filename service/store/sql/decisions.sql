-- name: undecided
-- Those of the given exemplars that have no decision yet, in the given order, with one look-up per id. An anti-join
-- would read all decisions of the snapshot for each id as long as the table has no statistics.
SELECT wanted.exemplar_id
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
LEFT JOIN
    LATERAL (
        SELECT decision.id
        FROM decision
        WHERE
            decision.calibration_id = :calibration_id
            AND decision.exemplar_id = wanted.exemplar_id
            AND decision.weighted = :weighted
            AND decision.require_full_match = :require_full_match
        -- There is at most one. The limit keeps this from becoming a join, and ordering a single row costs nothing.
        ORDER BY decision.exemplar_id
        LIMIT 1
    ) AS stored
    ON TRUE
WHERE stored.id IS NULL
ORDER BY wanted.position;

-- name: allocate_decision_ids
-- Keys for new decisions, ascending, packed into one value; null for none.
WITH counter AS MATERIALIZED (
    SELECT pg_get_serial_sequence('decision', 'id')::regclass AS name
)

SELECT string_agg(int8send(nextval(counter.name)), '')
FROM counter
CROSS JOIN generate_series(1, :count);

-- name: job_decisions
-- The rows that `score --out` writes: one per row of the request, in its order, with look-ups for the same reason.
SELECT
    exemplar.external_id,
    stored.predicted,
    stored.logits,
    stored.match_count,
    stored.distance,
    evidence.admit_set,
    evidence.band_size,
    evidence.threshold,
    evidence.category_size,
    abers.score,
    wanted.method,
    stored.upweight,
    stored.lower,
    stored.upper,
    stored.decision,
    stored.reason,
    stored.calibration_id
FROM (
    SELECT
        job.calibration_id,
        job.weighted,
        job.require_full_match,
        job_row.row_number,
        job_row.exemplar_id,
        calibrator.method
    FROM job
    INNER JOIN job_row ON job.id = job_row.job_id
    INNER JOIN calibration ON job.calibration_id = calibration.id
    INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
    WHERE job.id = :job_id
    -- This is looked up here, so that nothing as large as a decision is sorted.
    ORDER BY job_row.row_number
) AS wanted
CROSS JOIN
    LATERAL (
        SELECT exemplar.external_id
        FROM exemplar
        WHERE exemplar.id = wanted.exemplar_id
        ORDER BY exemplar.id
        LIMIT 1
    ) AS exemplar
CROSS JOIN
    LATERAL (
        SELECT
            decision.id,
            decision.predicted,
            decision.logits,
            decision.match_count,
            decision.distance,
            decision.upweight,
            decision.lower,
            decision.upper,
            decision.decision,
            decision.reason,
            decision.calibration_id
        FROM decision
        WHERE
            decision.calibration_id = wanted.calibration_id
            AND decision.exemplar_id = wanted.exemplar_id
            AND decision.weighted = wanted.weighted
            AND decision.require_full_match = wanted.require_full_match
        ORDER BY decision.exemplar_id
        LIMIT 1
    ) AS stored
LEFT JOIN
    LATERAL (
        SELECT
            admit_evidence.admit_set,
            admit_evidence.band_size,
            admit_evidence.threshold,
            admit_evidence.category_size
        FROM admit_evidence
        WHERE admit_evidence.decision_id = stored.id
        ORDER BY admit_evidence.decision_id
        LIMIT 1
    ) AS evidence
    ON TRUE
LEFT JOIN
    LATERAL (
        SELECT abers_evidence.score
        FROM abers_evidence
        WHERE abers_evidence.decision_id = stored.id
        ORDER BY abers_evidence.decision_id
        LIMIT 1
    ) AS abers
    ON TRUE
ORDER BY wanted.row_number;

-- name: decision_counts
-- The number of rows of a job that were admitted, or rejected for each reason, per predicted class, and the splits of
-- the exemplars.
SELECT
    exemplar.split,
    stored.predicted,
    stored.decision,
    stored.reason,
    count(*) AS rows
FROM job
INNER JOIN job_row ON job.id = job_row.job_id
CROSS JOIN
    LATERAL (
        SELECT exemplar.split
        FROM exemplar
        WHERE exemplar.id = job_row.exemplar_id
        ORDER BY exemplar.id
        LIMIT 1
    ) AS exemplar
CROSS JOIN
    LATERAL (
        SELECT
            decision.predicted,
            decision.decision,
            decision.reason
        FROM decision
        WHERE
            decision.calibration_id = job.calibration_id
            AND decision.exemplar_id = job_row.exemplar_id
            AND decision.weighted = job.weighted
            AND decision.require_full_match = job.require_full_match
        ORDER BY decision.exemplar_id
        LIMIT 1
    ) AS stored
WHERE job.id = :job_id
GROUP BY exemplar.split, stored.predicted, stored.decision, stored.reason
ORDER BY exemplar.split, stored.predicted, stored.decision, stored.reason;

-- name: newest_decision
-- The newest decision on an exemplar of a classifier; no row if there is none.
SELECT decision.id
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.external_id = :external_id
ORDER BY decision.id DESC
LIMIT 1;

-- name: decision_by_id
-- A decision as it is stored.
SELECT
    decision.id,
    decision.calibration_id,
    decision.exemplar_id,
    decision.weighted,
    decision.require_full_match,
    decision.support_version,
    decision.predicted,
    decision.match_count,
    decision.distance,
    decision.logits,
    admit_evidence.admit_set,
    admit_evidence.band_size,
    admit_evidence.threshold,
    admit_evidence.category_size,
    abers_evidence.score,
    abers_evidence.step_score,
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
LEFT JOIN admit_evidence ON decision.id = admit_evidence.decision_id
LEFT JOIN abers_evidence ON decision.id = abers_evidence.decision_id
WHERE decision.id = :decision_id;

-- name: page_of_decisions
-- The newest decisions of a classifier, or the newest before a given one. Nulls ask for any.
SELECT
    decision.id AS decision,
    exemplar.external_id,
    decision.calibration_id AS calibration,
    decision.weighted,
    decision.require_full_match,
    decision.predicted,
    decision.lower,
    decision.upper,
    decision.decision AS decided,
    decision.reason,
    decision.created_at
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE
    exemplar.classifier_id = :classifier_id
    AND (CAST(:before AS bigint) IS NULL OR decision.id < :before)
    AND (CAST(:calibration_id AS bigint) IS NULL OR decision.calibration_id = :calibration_id)
    AND (CAST(:external_id AS text) IS NULL OR exemplar.external_id = :external_id)
    AND (CAST(:admitted AS boolean) IS NULL OR (decision.decision IS NOT NULL) = :admitted)
ORDER BY decision.id DESC
LIMIT :row_limit;
