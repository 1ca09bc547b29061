-- name: of_classifiers
-- What is watched of each classifier: how old the calibration is that it decides with, how long labels or data have
-- waited for a recalibration, how many labels wait that calibrate, and how many alarms stand; null if there is none.
WITH newest_label AS (
    SELECT
        id,
        exemplar_id,
        selection,
        created_at
    FROM label_event
    -- They are not read at all while nothing waits.
    WHERE EXISTS (SELECT FROM recalibration_request)
    ORDER BY id DESC
    -- Everybody who watches the service asks this every few seconds, so it must cost little however many labels wait.
    LIMIT :most_labels
)

SELECT
    classifier.name AS classifier,
    extract(EPOCH FROM now() - calibration.created_at)::double precision AS calibration_seconds,
    extract(EPOCH FROM now() - request.first_requested_at)::double precision AS waiting_seconds,
    (
        SELECT count(*)
        FROM newest_label
        INNER JOIN exemplar ON newest_label.exemplar_id = exemplar.id
        WHERE
            exemplar.classifier_id = classifier.id
            AND (
                newest_label.selection = 'random'
                OR (
                    newest_label.selection = 'review'
                    AND exemplar.split IN ('knn', 'mc', 'vp')
                )
            )
            AND request.calibrator_id IS NOT NULL
            AND newest_label.created_at > calibration.created_at
    ) AS labels_waiting,
    coalesce(alarm.alarms, 0) AS alarms
FROM classifier
LEFT JOIN calibration_in_use_v1 AS in_use ON classifier.id = in_use.classifier_id
LEFT JOIN calibration ON in_use.calibration_id = calibration.id
LEFT JOIN recalibration_request AS request ON calibration.calibrator_id = request.calibrator_id
LEFT JOIN (
    SELECT
        classifier_id,
        count(*) AS alarms
    FROM alarm_row_v2
    WHERE
        is_standing
        AND is_harmful
    GROUP BY classifier_id
) AS alarm ON classifier.id = alarm.classifier_id
ORDER BY classifier.name;

-- name: oldest_job
-- How long ago the longest-running job was requested; null if none is running.
SELECT extract(EPOCH FROM now() - min(created_at))::double precision AS seconds
FROM job
WHERE state = 'running';

-- name: oldest_waiting_chunk
-- How long the chunk that has waited longest for a worker has waited; null if none waits. A chunk waits from when its
-- job was requested, from when its claim ended without a result, or from when it may be tried again; a last chunk,
-- which waits for the others first, at the earliest from when the last of these was claimed.
SELECT
    extract(
        EPOCH FROM now() - min(
            greatest(
                job.created_at,
                chunk.claimed_at,
                chunk.not_before,
                CASE WHEN chunk.state = 'running' THEN chunk.lease_until END,
                CASE
                    WHEN chunk.is_last
                        THEN (
                            SELECT max(other.claimed_at)
                            FROM job_chunk AS other
                            WHERE
                                other.job_id = job.id
                                AND other.claimed_at IS NOT NULL
                        )
                END
            )
        )
    )::double precision AS seconds
FROM job_chunk AS chunk
INNER JOIN job ON chunk.job_id = job.id
WHERE
    job.state = 'running'
    AND is_chunk_free_v1(chunk.state, chunk.not_before, chunk.lease_until)
    AND (
        NOT chunk.is_last
        OR NOT EXISTS (
            SELECT
            FROM awaited_chunk_v1 AS awaited
            WHERE awaited.job_id = chunk.job_id
        )
    );
