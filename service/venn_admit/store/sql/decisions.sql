-- name: undecided
-- The given exemplars that have no decision yet, in the given order, with one look-up per id. An anti-join
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
    admit_evidence.*,
    abers_evidence.*,
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
        SELECT decision.*
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
        SELECT admit_evidence.*
        FROM admit_evidence
        WHERE admit_evidence.decision_id = stored.id
        ORDER BY admit_evidence.decision_id
        LIMIT 1
    ) AS admit_evidence
    ON TRUE
LEFT JOIN
    LATERAL (
        SELECT abers_evidence.*
        FROM abers_evidence
        WHERE abers_evidence.decision_id = stored.id
        ORDER BY abers_evidence.decision_id
        LIMIT 1
    ) AS abers_evidence
    ON TRUE
ORDER BY wanted.row_number;

-- name: decision_counts
-- The number of rows of a job that were admitted, or rejected for each reason, per predicted class, and the splits of
-- the exemplars. One that was labelled after the snapshot, or its parameters, had no part in it: it counts as scored.
SELECT
    known.split,
    stored.predicted,
    stored.decision,
    stored.reason,
    count(*) AS rows
FROM job
INNER JOIN job_row ON job.id = job_row.job_id
INNER JOIN calibration ON job.calibration_id = calibration.id
LEFT JOIN knn_parameters AS parameters ON calibration.knn_parameters_id = parameters.id
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
            CASE
                WHEN
                    exemplar.split IN ('knn', 'mc', 'vp')
                    AND NOT EXISTS (
                        SELECT 1
                        FROM label_event AS event
                        WHERE
                            event.exemplar_id = job_row.exemplar_id
                            AND event.selection <> 'selected'
                            AND event.created_at <= CASE exemplar.split
                                WHEN 'knn' THEN parameters.created_at
                                ELSE calibration.created_at
                            END
                    )
                    THEN 'scored'
                ELSE exemplar.split
            END AS split
    ) AS known
CROSS JOIN
    LATERAL (
        SELECT decision.*
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
GROUP BY known.split, stored.predicted, stored.decision, stored.reason
ORDER BY known.split, stored.predicted, stored.decision, stored.reason;

-- name: newest_decision
-- The newest decision on an exemplar of a classifier; no row if there is none.
SELECT decision.id
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.external_id = :external_id
ORDER BY decision.id + 0 DESC
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
    admit_evidence.*,
    abers_evidence.*,
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
-- The newest decisions of a classifier before a given one; the outcomes wanted: admitted, rejected or both. Those of an
-- outcome and a snapshot are next to one another in an index, which is read from the end as far as is needed. A
-- condition on its leading columns would let the planner walk through the decisions of all classifiers instead.
WITH newest AS (
    -- As many as there are rows on a page are enough, because each has one that is newer than all of the others'.
    SELECT
        found.calibration_id,
        found.is_admitted,
        found.id
    FROM calibrator
    INNER JOIN calibration ON calibrator.id = calibration.calibrator_id
    CROSS JOIN unnest(:outcomes ::boolean[]) AS outcome (is_admitted)
    CROSS JOIN
        LATERAL (
            SELECT
                decision.calibration_id,
                decision.decision IS NOT NULL AS is_admitted,
                decision.id
            FROM decision
            WHERE
                (decision.decision IS NOT NULL, decision.calibration_id, decision.id)
                < (outcome.is_admitted, calibration.id, :before ::bigint)
            ORDER BY decision.decision IS NOT NULL DESC, decision.calibration_id DESC, decision.id DESC
            LIMIT 1
        ) AS found
    WHERE
        calibrator.classifier_id = :classifier_id
        AND (CAST(:calibration_id AS bigint) IS NULL OR calibration.id = :calibration_id)
        AND found.calibration_id = calibration.id
        AND found.is_admitted = outcome.is_admitted
    ORDER BY found.id DESC
    LIMIT :row_limit
)

SELECT
    listed.id AS decision,
    exemplar.external_id,
    listed.calibration_id AS calibration,
    listed.weighted,
    listed.require_full_match,
    listed.predicted,
    listed.lower,
    listed.upper,
    listed.decision AS decided,
    listed.reason,
    listed.created_at
FROM newest
CROSS JOIN
    LATERAL (
        SELECT decision.*
        FROM decision
        WHERE
            (decision.decision IS NOT NULL, decision.calibration_id, decision.id)
            <= (newest.is_admitted, newest.calibration_id, newest.id)
        ORDER BY decision.decision IS NOT NULL DESC, decision.calibration_id DESC, decision.id DESC
        LIMIT :row_limit
    ) AS listed
CROSS JOIN
    LATERAL (
        SELECT decided.external_id
        FROM exemplar AS decided
        WHERE decided.id = listed.exemplar_id
        ORDER BY decided.id
        LIMIT 1
    ) AS exemplar
WHERE
    listed.calibration_id = newest.calibration_id
    AND (listed.decision IS NOT NULL) = newest.is_admitted
ORDER BY listed.id DESC
LIMIT :row_limit;

-- name: page_of_exemplar
-- The newest decisions on one exemplar of a classifier before a given one. There are at most four by each snapshot; as
-- they are read first, this cannot become a walk through all decisions before the given one.
WITH made AS MATERIALIZED (
    SELECT
        decision.id,
        exemplar.external_id,
        decision.calibration_id,
        decision.weighted,
        decision.require_full_match,
        decision.predicted,
        decision.lower,
        decision.upper,
        decision.decision,
        decision.reason,
        decision.created_at
    FROM exemplar
    INNER JOIN decision ON exemplar.id = decision.exemplar_id
    WHERE
        exemplar.classifier_id = :classifier_id
        AND exemplar.external_id = :external_id
)

SELECT
    id AS decision,
    external_id,
    calibration_id AS calibration,
    weighted,
    require_full_match,
    predicted,
    lower,
    upper,
    decision AS decided,
    reason,
    created_at
FROM made
WHERE
    id < :before
    AND (CAST(:calibration_id AS bigint) IS NULL OR calibration_id = :calibration_id)
    AND (decision IS NOT NULL) = any(:outcomes ::boolean[])
ORDER BY id DESC
LIMIT :row_limit;
