-- name: begin
-- Let some generations of a classifier count as being deleted from now on.
UPDATE classifier
SET deleting_since = coalesce(deleting_since, clock_timestamp())
WHERE id = ANY(:classifier_ids);

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
-- Some exemplars of a classifier that are left, the first ones after a given one. Here and below, each part begins
-- after the last key of the part before: rows that are deleted stay in the index while anybody may still see them.
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

-- name: delete_recalibration_request
-- Delete some requests for recalibration.
WITH part AS MATERIALIZED (
    SELECT
        request.ctid AS place,
        request.calibrator_id
    FROM recalibration_request AS request
    INNER JOIN calibrator ON request.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND request.calibrator_id > :calibrator_id
    ORDER BY request.calibrator_id
    LIMIT :batch
),

gone AS (
    DELETE FROM recalibration_request
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT calibrator_id
FROM part
ORDER BY calibrator_id;

-- name: delete_monitor_state
-- Delete some states of monitors.
WITH part AS MATERIALIZED (
    SELECT
        state.ctid AS place,
        state.monitor_id,
        state.documents
    FROM monitor_state AS state
    INNER JOIN monitor ON state.monitor_id = monitor.id
    INNER JOIN calibrator ON monitor.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND (state.monitor_id, state.documents) > (:monitor_id, :documents)
    ORDER BY
        state.monitor_id,
        state.documents
    LIMIT :batch
),

gone AS (
    DELETE FROM monitor_state
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT
    monitor_id,
    documents
FROM part
ORDER BY
    monitor_id,
    documents;

-- name: delete_monitor_reading
-- Delete some readings of monitors.
WITH part AS MATERIALIZED (
    SELECT
        reading.ctid AS place,
        reading.monitor_id,
        reading.lamp,
        reading.number
    FROM monitor_reading AS reading
    INNER JOIN monitor ON reading.monitor_id = monitor.id
    INNER JOIN calibrator ON monitor.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND (reading.monitor_id, reading.lamp, reading.number) > (:monitor_id, :lamp, :number)
    ORDER BY
        reading.monitor_id,
        reading.lamp,
        reading.number
    LIMIT :batch
),

gone AS (
    DELETE FROM monitor_reading
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT
    monitor_id,
    lamp,
    number
FROM part
ORDER BY
    monitor_id,
    lamp,
    number;

-- name: delete_monitor_alarm
-- Delete some alarms of monitors.
WITH part AS MATERIALIZED (
    SELECT
        alarm.ctid AS place,
        alarm.id
    FROM monitor_alarm AS alarm
    INNER JOIN monitor ON alarm.monitor_id = monitor.id
    INNER JOIN calibrator ON monitor.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND alarm.id > :id
    ORDER BY alarm.id
    LIMIT :batch
),

gone AS (
    DELETE FROM monitor_alarm
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

-- name: delete_monitor
-- Delete some monitors, of which nothing else is left.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.id
    FROM monitor AS one
    INNER JOIN calibrator ON one.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND one.id > :id
    ORDER BY one.id
    LIMIT :batch
),

gone AS (
    DELETE FROM monitor
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

-- name: delete_job_chunk
-- Delete some chunks of jobs.
WITH part AS MATERIALIZED (
    SELECT
        chunk.ctid AS place,
        chunk.job_id,
        chunk.ordinal
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    WHERE
        job.classifier_id = :classifier_id
        AND (chunk.job_id, chunk.ordinal) > (:job_id, :ordinal)
    ORDER BY
        chunk.job_id,
        chunk.ordinal
    LIMIT :batch
),

gone AS (
    DELETE FROM job_chunk
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT
    job_id,
    ordinal
FROM part
ORDER BY
    job_id,
    ordinal;

-- name: delete_job
-- Delete some jobs.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.id
    FROM job AS one
    WHERE
        one.classifier_id = :classifier_id
        AND one.id > :id
    ORDER BY one.id
    LIMIT :batch
),

gone AS (
    DELETE FROM job
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

-- name: delete_venn_abers_step
-- Delete some steps of cells.
WITH part AS MATERIALIZED (
    SELECT
        step.ctid AS place,
        step.calibrator_id,
        step.cell,
        step.score,
        step.valid_from
    FROM venn_abers_step AS step
    INNER JOIN calibrator ON step.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND (step.calibrator_id, step.cell, step.score, step.valid_from) > (:calibrator_id, :cell, :score, :valid_from)
    ORDER BY
        step.calibrator_id,
        step.cell,
        step.score,
        step.valid_from
    LIMIT :batch
),

gone AS (
    DELETE FROM venn_abers_step
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT
    calibrator_id,
    cell,
    score,
    valid_from
FROM part
ORDER BY
    calibrator_id,
    cell,
    score,
    valid_from;

-- name: delete_forgotten_point
-- Delete some of what is left of calibration points that were forgotten.
WITH part AS MATERIALIZED (
    SELECT
        point.ctid AS place,
        point.id
    FROM forgotten_point AS point
    INNER JOIN calibrator ON point.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND point.id > :id
    ORDER BY point.id
    LIMIT :batch
),

gone AS (
    DELETE FROM forgotten_point
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

-- name: delete_band_radius
-- Delete the radii of the bands of some snapshots.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.calibration_id
    FROM band_radius AS one
    INNER JOIN calibration ON one.calibration_id = calibration.id
    INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND one.calibration_id > :calibration_id
    ORDER BY one.calibration_id
    LIMIT :batch
),

gone AS (
    DELETE FROM band_radius
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT calibration_id
FROM part
ORDER BY calibration_id;

-- name: delete_snapshot_quartiles
-- Delete the quartiles of some snapshots.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.calibration_id
    FROM snapshot_quartiles AS one
    INNER JOIN calibration ON one.calibration_id = calibration.id
    INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND one.calibration_id > :calibration_id
    ORDER BY one.calibration_id
    LIMIT :batch
),

gone AS (
    DELETE FROM snapshot_quartiles
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT calibration_id
FROM part
ORDER BY calibration_id;

-- name: delete_score_choice
-- Delete the scores of some snapshots.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.calibration_id
    FROM score_choice AS one
    INNER JOIN calibration ON one.calibration_id = calibration.id
    INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND one.calibration_id > :calibration_id
    ORDER BY one.calibration_id
    LIMIT :batch
),

gone AS (
    DELETE FROM score_choice
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT calibration_id
FROM part
ORDER BY calibration_id;

-- name: delete_certificate
-- Delete the certificates of some snapshots.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.calibration_id
    FROM certificate AS one
    INNER JOIN calibration ON one.calibration_id = calibration.id
    INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND one.calibration_id > :calibration_id
    ORDER BY one.calibration_id
    LIMIT :batch
),

gone AS (
    DELETE FROM certificate
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT calibration_id
FROM part
ORDER BY calibration_id;

-- name: delete_calibration
-- Delete some snapshots, of which nothing else is left.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.id
    FROM calibration AS one
    INNER JOIN calibrator ON one.calibrator_id = calibrator.id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND one.id > :id
    ORDER BY one.id
    LIMIT :batch
),

gone AS (
    DELETE FROM calibration
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

-- name: delete_calibrator
-- Delete some of the settings.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.id
    FROM calibrator AS one
    WHERE
        one.classifier_id = :classifier_id
        AND one.id > :id
    ORDER BY one.id
    LIMIT :batch
),

gone AS (
    DELETE FROM calibrator
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

-- name: delete_training_epoch
-- Delete some of the logs of fits.
WITH part AS MATERIALIZED (
    SELECT
        epoch.ctid AS place,
        epoch.knn_parameters_id,
        epoch.model,
        epoch.epoch
    FROM training_epoch AS epoch
    INNER JOIN knn_parameters AS parameters ON epoch.knn_parameters_id = parameters.id
    WHERE
        parameters.classifier_id = :classifier_id
        AND (epoch.knn_parameters_id, epoch.model, epoch.epoch) > (:knn_parameters_id, :model, :epoch)
    ORDER BY
        epoch.knn_parameters_id,
        epoch.model,
        epoch.epoch
    LIMIT :batch
),

gone AS (
    DELETE FROM training_epoch
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT
    knn_parameters_id,
    model,
    epoch
FROM part
ORDER BY
    knn_parameters_id,
    model,
    epoch;

-- name: delete_knn_parameters
-- Delete some of the parameters.
WITH part AS MATERIALIZED (
    SELECT
        one.ctid AS place,
        one.id
    FROM knn_parameters AS one
    WHERE
        one.classifier_id = :classifier_id
        AND one.id > :id
    ORDER BY one.id
    LIMIT :batch
),

gone AS (
    DELETE FROM knn_parameters
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

-- name: delete_forgotten_training
-- Delete some of what is left of training exemplars that were forgotten.
WITH part AS MATERIALIZED (
    SELECT
        training.ctid AS place,
        training.id
    FROM forgotten_training AS training
    WHERE
        training.classifier_id = :classifier_id
        AND training.id > :id
    ORDER BY training.id
    LIMIT :batch
),

gone AS (
    DELETE FROM forgotten_training
    WHERE ctid = ANY(array(SELECT part.place FROM part))
)

SELECT id
FROM part
ORDER BY id;

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
