-- name: running_jobs
-- The number of running jobs of each classifier.
SELECT
    classifier_id,
    count(*) AS jobs
FROM job
WHERE state = 'running'
GROUP BY classifier_id;

-- name: newest_requests
-- The newest score job of each classifier that has one.
SELECT
    newest.classifier_id,
    newest.id AS job,
    newest.row_count,
    newest.created_at
FROM classifier
CROSS JOIN
    LATERAL (
        SELECT job.*
        FROM job
        WHERE
            job.classifier_id = classifier.id
            AND job.kind = 'score'
        ORDER BY job.id DESC
        LIMIT 1
    ) AS newest;

-- name: label_counts
-- The number of exemplars of each split with each label; null for exemplars without one.
SELECT
    split,
    label,
    count(*) AS exemplars
FROM exemplar
WHERE classifier_id = :classifier_id
GROUP BY split, label;

-- name: document_counts
-- The number of documents that the exemplars of each split come from. Exemplars without a document are left out.
SELECT
    document.split,
    count(*) AS documents
FROM (
    -- This is hashed, whereas count(DISTINCT ...) would sort.
    SELECT DISTINCT
        split,
        document_id
    FROM exemplar
    WHERE
        classifier_id = :classifier_id
        AND document_id IS NOT NULL
) AS document
GROUP BY document.split;

-- name: held_out_accuracy
-- How many labelled points of mc and vp the network predicts right, and how many of those with an approximation under
-- the parameters in use the KNN does.
SELECT
    count(*) AS points,
    count(*) FILTER (WHERE exemplar.network_predicted = exemplar.label) AS network_right,
    count(approximation.predicted) AS knn_points,
    count(*) FILTER (WHERE approximation.predicted = exemplar.label) AS knn_right
FROM exemplar
LEFT JOIN knn_parameters AS parameters
    ON
        exemplar.classifier_id = parameters.classifier_id
        AND parameters.is_current
LEFT JOIN approximation
    ON
        parameters.id = approximation.knn_parameters_id
        AND exemplar.id = approximation.exemplar_id
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split IN ('mc', 'vp')
    AND exemplar.label IS NOT NULL;

-- name: parameters
-- The parameters in use, and how well they were fitted; no row before the first.
SELECT
    id AS knn_parameters,
    origin,
    eta,
    eta_loc,
    fit_count AS fit,
    dev_count AS dev,
    dev_discrepancies,
    created_at
FROM knn_parameters
WHERE
    classifier_id = :classifier_id
    AND is_current;

-- name: last_score_job
-- The newest score job that has decided on anything; no row before the first.
SELECT job.id
FROM job
WHERE
    job.classifier_id = :classifier_id
    AND job.kind = 'score'
    AND job.removed_at IS NULL
    AND EXISTS (
        SELECT 1
        FROM job_chunk
        WHERE
            job_chunk.job_id = job.id
            AND job_chunk.state = 'done'
    )
ORDER BY job.id DESC
LIMIT 1;

-- name: last_decisions
-- The decisions made on the last rows of a job, the last row first, with one look-up per row. The subquery is asked
-- once; a join could begin with all rows of the job, if the statistics do not know it.
SELECT
    stored.id AS decision_id,
    exemplar.external_id,
    stored.predicted,
    stored.lower,
    stored.decision,
    stored.reason,
    stored.calibration_id AS calibration,
    stored.created_at
FROM job
INNER JOIN job_row
    ON
        job.id = job_row.job_id
        AND (
            SELECT asked.row_count - :rows
            FROM job AS asked
            WHERE asked.id = :job_id
        ) <= job_row.row_number
CROSS JOIN
    LATERAL (
        SELECT exemplar.external_id
        FROM exemplar
        WHERE exemplar.id = job_row.exemplar_id
        ORDER BY exemplar.id
        LIMIT 1
    ) AS exemplar
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
ORDER BY job_row.row_number DESC;
