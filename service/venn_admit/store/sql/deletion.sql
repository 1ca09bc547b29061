-- name: begin
-- Let some generations of a classifier count as being deleted from now on, and say in the audit ledger who asked.
SELECT begin_deletion_v1(:classifier_ids ::integer[], :origin, :key_id, :subject);

-- name: revoke_keys
-- Refuse the keys for a classifier from now on.
UPDATE api_key
SET revoked_at = coalesce(revoked_at, now())
WHERE classifier_id = ANY(:classifier_ids);

-- name: end_sessions
-- End the sessions of the page that such keys began.
DELETE FROM page_session
WHERE
    key_id IN (
        SELECT id
        FROM api_key
        WHERE classifier_id = ANY(:classifier_ids)
    );

-- name: cancel_jobs
-- Cancel jobs that were recorded just before the deletion began.
UPDATE job
SET
    state = 'cancelled',
    error = 'the classifier is being deleted',
    finished_at = now()
WHERE
    classifier_id = :classifier_id
    AND state = 'running';

-- name: drop_vector_partitions
-- Drop the partitions of the vectors of a classifier, unless others use the table right now; whether that is done.
SELECT drop_vector_partitions_v1(:classifier_id);

-- name: some_exemplars
-- Some exemplars of a classifier that are left, the first ones after a given one: rows that are deleted stay in the
-- index while anybody may still see them.
SELECT
    split,
    id
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND (split, id) > (:split, :id)
ORDER BY
    split,
    id
LIMIT :batch;

-- name: release_keys
-- Have the keys for a classifier, which are revoked for good, no longer refer to it.
UPDATE api_key
SET
    revoked_at = coalesce(revoked_at, now()),
    classifier_id = NULL
WHERE classifier_id = :classifier_id;

-- name: hand_on
-- Have the first generation that is left be the one that the others refer to, in place of one that is deleted.
UPDATE classifier AS later
SET original_id = nullif(first_left.id, later.id)
FROM (
    SELECT min(left_over.id) AS id
    FROM classifier AS left_over
    WHERE left_over.original_id = :classifier_id
) AS first_left
WHERE later.original_id = :classifier_id;

-- name: delete_classifier
-- Delete the row of a classifier's generation, the last of it.
DELETE FROM classifier
WHERE id = :classifier_id;

-- name: count_rows
-- How many rows there are of a classifier's generation, by table.
WITH own_calibrator AS (
    SELECT id
    FROM calibrator
    WHERE classifier_id = :classifier_id
),

own_calibration AS (
    SELECT calibration.id
    FROM calibration
    INNER JOIN own_calibrator ON calibration.calibrator_id = own_calibrator.id
),

own_parameters AS (
    SELECT id
    FROM knn_parameters
    WHERE classifier_id = :classifier_id
),

own_job AS (
    SELECT id
    FROM job
    WHERE classifier_id = :classifier_id
),

own_exemplar AS (
    SELECT id
    FROM exemplar
    WHERE classifier_id = :classifier_id
)

SELECT
    'exemplar' AS name,
    count(*) AS rows
FROM own_exemplar
UNION ALL
SELECT
    'exemplar_vector' AS name,
    count(*) AS rows
FROM exemplar_vector
WHERE exemplar_vector.classifier_id = :classifier_id
UNION ALL
SELECT
    'label_event' AS name,
    count(*) AS rows
FROM label_event
INNER JOIN own_exemplar ON label_event.exemplar_id = own_exemplar.id
UNION ALL
SELECT
    'neighbours' AS name,
    count(*) AS rows
FROM neighbours
INNER JOIN own_exemplar ON neighbours.exemplar_id = own_exemplar.id
UNION ALL
SELECT
    'support_change' AS name,
    count(*) AS rows
FROM support_change
WHERE support_change.classifier_id = :classifier_id
UNION ALL
SELECT
    'approximation' AS name,
    count(*) AS rows
FROM approximation
INNER JOIN own_parameters ON approximation.knn_parameters_id = own_parameters.id
UNION ALL
SELECT
    'knn_parameters' AS name,
    count(*) AS rows
FROM own_parameters
UNION ALL
SELECT
    'training_epoch' AS name,
    count(*) AS rows
FROM training_epoch
INNER JOIN own_parameters ON training_epoch.knn_parameters_id = own_parameters.id
UNION ALL
SELECT
    'calibrator' AS name,
    count(*) AS rows
FROM own_calibrator
UNION ALL
SELECT
    'calibration' AS name,
    count(*) AS rows
FROM own_calibration
UNION ALL
SELECT
    'calibration_point' AS name,
    count(*) AS rows
FROM calibration_point
INNER JOIN own_calibrator ON calibration_point.calibrator_id = own_calibrator.id
UNION ALL
SELECT
    'venn_abers_step' AS name,
    count(*) AS rows
FROM venn_abers_step
INNER JOIN own_calibrator ON venn_abers_step.calibrator_id = own_calibrator.id
UNION ALL
SELECT
    'monitor' AS name,
    count(*) AS rows
FROM monitor
INNER JOIN own_calibrator ON monitor.calibrator_id = own_calibrator.id
UNION ALL
SELECT
    'decision' AS name,
    count(*) AS rows
FROM decision
INNER JOIN own_calibration ON decision.calibration_id = own_calibration.id
UNION ALL
SELECT
    'job' AS name,
    count(*) AS rows
FROM own_job
UNION ALL
SELECT
    'job_chunk' AS name,
    count(*) AS rows
FROM job_chunk
INNER JOIN own_job ON job_chunk.job_id = own_job.id
UNION ALL
SELECT
    'job_row' AS name,
    count(*) AS rows
FROM job_row
INNER JOIN own_job ON job_row.job_id = own_job.id
UNION ALL
SELECT
    'recalibration_request' AS name,
    count(*) AS rows
FROM recalibration_request
INNER JOIN own_calibrator ON recalibration_request.calibrator_id = own_calibrator.id
UNION ALL
SELECT
    'classifier' AS name,
    count(*) AS rows
FROM classifier
WHERE classifier.id = :classifier_id
ORDER BY name;
