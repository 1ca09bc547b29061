-- name: next_version
-- A version above all versions and all exemplar ids before it.
SELECT nextval(pg_get_serial_sequence('exemplar', 'id'));

-- name: renew
-- Record that the training exemplars changed, so that cached copies of them are out of date.
UPDATE classifier
SET
    support_revision = gen_random_uuid(),
    support_version = :version
WHERE id = :classifier_id;

-- name: having_waiting
-- The classifiers, one or all, that have training exemplars that wait. One is looked up for each: a join may read all
-- that train before it compares versions.
SELECT classifier.id
FROM classifier
WHERE
    (CAST(:classifier_id AS integer) IS NULL OR classifier.id = :classifier_id)
    AND classifier.deleting_since IS NULL
    AND (
        SELECT waiting.id
        FROM exemplar AS waiting
        WHERE
            waiting.classifier_id = classifier.id
            AND waiting.split = 'train'
            AND waiting.id > classifier.support_version
        ORDER BY waiting.id
        LIMIT 1
    ) IS NOT NULL;

-- name: await_locks
-- Wait for locks as long as it takes, in this transaction.
SELECT set_config('lock_timeout', '0', TRUE);

-- name: lock_waiting
-- Lock classifiers before training exemplars join. Recording a job for a calibration or a fit locks its
-- classifier too, so that each sees what the other did.
SELECT id
FROM classifier
WHERE id = ANY(:classifier_ids ::integer[])
ORDER BY id
FOR NO KEY UPDATE;

-- name: lock_waiting_if_free
-- Do the same with those of them that nobody else has locked.
SELECT id
FROM classifier
WHERE id = ANY(:classifier_ids ::integer[])
ORDER BY id
FOR NO KEY UPDATE
SKIP LOCKED;

-- name: join_waiting
-- Let the training exemplars that wait train from now on, of some classifiers, unless they must wait on, for
-- most_wait at most.
WITH holding AS (
    -- Recalibrations that have a job or, once that is done, are about to make a snapshot.
    SELECT calibrator.classifier_id
    FROM recalibration_request AS request
    INNER JOIN calibrator ON request.calibrator_id = calibrator.id
    INNER JOIN job ON request.job_id = job.id
    WHERE
        calibrator.classifier_id = ANY(:classifier_ids ::integer[])
        AND calibrator.retired_at IS NULL
        AND request.error IS NULL
        AND job.state IN ('running', 'done')
        AND job.removed_at IS NULL
    UNION ALL
    -- Jobs that bring neighbours up to date or fit, unless nobody computes them; and chunks that score, if they are
    -- being computed again, mostly because what arrived disturbed them. Others do not put a recalibration off.
    SELECT job.classifier_id
    FROM job
    WHERE
        job.classifier_id = ANY(:classifier_ids ::integer[])
        AND job.state = 'running'
        AND (
            (job.kind <> 'score' AND job.created_at > now() - CAST(:most_wait AS interval))
            OR EXISTS (
                SELECT
                FROM job_chunk AS chunk
                WHERE
                    chunk.job_id = job.id
                    AND chunk.state = 'running'
                    AND chunk.lease_until > now()
                    AND (job.kind <> 'score' OR chunk.error IS NOT NULL)
            )
        )
    UNION ALL
    -- Jobs that brought all neighbours up to date for somebody who is about to calibrate or to fit.
    SELECT job.classifier_id
    FROM job
    WHERE
        job.classifier_id = ANY(:classifier_ids ::integer[])
        AND job.state = 'done'
        AND job.kind = 'approximate'
        AND job.support_version IS NOT NULL
        AND job.removed_at IS NULL
        AND job.finished_at > now() - CAST(:most_wait AS interval)
        AND NOT EXISTS (
            SELECT
            FROM calibration
            INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
            WHERE
                calibrator.classifier_id = job.classifier_id
                AND calibration.created_at >= job.finished_at
        )
        AND NOT EXISTS (
            SELECT
            FROM knn_parameters AS parameters
            WHERE
                parameters.classifier_id = job.classifier_id
                AND parameters.created_at >= job.finished_at
        )
)

UPDATE classifier
SET
    support_revision = gen_random_uuid(),
    support_version = (
        SELECT max(exemplar.id)
        FROM exemplar
        WHERE
            exemplar.classifier_id = classifier.id
            AND exemplar.split = 'train'
    )
WHERE
    classifier.id = ANY(:classifier_ids ::integer[])
    AND (
        NOT EXISTS (
            SELECT 1
            FROM holding
            WHERE holding.classifier_id = classifier.id
        )
        -- Jobs that overlap would keep them waiting for ever.
        OR (
            SELECT longest.created_at
            FROM exemplar AS longest
            WHERE
                longest.classifier_id = classifier.id
                AND longest.split = 'train'
                AND longest.id > classifier.support_version
            ORDER BY longest.id
            LIMIT 1
        ) < now() - CAST(:most_wait AS interval)
    )
RETURNING classifier.id;

-- name: release
-- Let nothing wait any more for a calibration or a fit, for which a job brought all neighbours up to date.
UPDATE job
SET support_version = NULL
WHERE
    id = :job_id
    AND state = 'done';

-- name: waiting
-- How many training exemplars wait, which came after their classifier's support version, of one classifier or of all.
SELECT
    coalesce(sum(
        (
            SELECT count(*)
            FROM exemplar
            WHERE
                exemplar.classifier_id = classifier.id
                AND exemplar.split = 'train'
                AND exemplar.id > classifier.support_version
        )
    ), 0) AS waiting
FROM classifier
WHERE
    (CAST(:classifier_id AS integer) IS NULL OR classifier.id = :classifier_id)
    AND classifier.deleting_since IS NULL;

-- name: size
-- How many training exemplars a classifier has, without those that wait; counted up to a limit, if there is one.
SELECT count(*) AS training
FROM (
    SELECT exemplar.id
    FROM exemplar
    WHERE
        exemplar.classifier_id = :classifier_id
        AND exemplar.split = 'train'
        AND exemplar.id <= (
            SELECT classifier.support_version
            FROM classifier
            WHERE classifier.id = :classifier_id
        )
    ORDER BY exemplar.id
    LIMIT CAST(:at_most AS bigint)
) AS counted;

-- name: estimated_rows
-- How many rows the planner believes a table to have; -1 if they were never counted.
SELECT reltuples
FROM pg_class
WHERE oid = CAST(:partition AS regclass);

-- name: sample_a_tenth
-- Have ANALYZE look at a tenth of the rows that it takes by default, until the transaction ends.
SELECT set_config('default_statistics_target', '10', TRUE);

-- name: record_changes
-- Record training exemplars that were added, removed or relabelled together.
INSERT INTO support_change (classifier_id, version, exemplar_id, kind, label_before)
SELECT
    :classifier_id,
    :version,
    changed.exemplar_id,
    changed.kind,
    changed.label_before
FROM unnest(:exemplar_ids ::bigint[], :kinds ::text[], :labels_before ::integer[])
    AS changed (exemplar_id, kind, label_before);

-- name: changes
-- The changes after a version, except ingestion, newest first.
SELECT
    version,
    exemplar_id,
    kind,
    label_before
FROM support_change
WHERE
    classifier_id = :classifier_id
    AND version > :version
ORDER BY version DESC, exemplar_id ASC;

-- name: grew
-- Whether training exemplars arrived after a version, without those that wait.
SELECT
    (
        SELECT exemplar.id
        FROM exemplar
        WHERE
            exemplar.classifier_id = :classifier_id
            AND exemplar.split = 'train'
            AND exemplar.id > :version
            AND exemplar.id <= :support_version
        ORDER BY exemplar.id
        LIMIT 1
    ) IS NOT NULL
    OR EXISTS (
        SELECT 1
        FROM support_change
        WHERE
            classifier_id = :classifier_id
            AND version > :version
            AND kind = 'added'
    ) AS grew;

-- name: move_vectors
-- Move exemplars into or out of the training exemplars, by moving each vector to the other partition.
UPDATE exemplar_vector
SET support = :support
WHERE
    classifier_id = :classifier_id
    AND support <> :support
    AND exemplar_id = ANY(:exemplar_ids);

-- name: version
-- The support version of the current training exemplars.
SELECT support_version
FROM classifier
WHERE id = :classifier_id;

-- name: lock
-- Keep others, until this transaction ends, from writing results of a classifier, from changing its training exemplars
-- and from letting new ones join them; and return the version of these.
SELECT support_version
FROM classifier
WHERE id = :classifier_id
FOR NO KEY UPDATE;

-- name: complete_neighbours
-- Record that a job brought all neighbour lists up to its support version, as it has once all but its last chunk, if
-- it has one, are done.
UPDATE classifier
SET neighbours_support_version = job.support_version
FROM job
WHERE
    job.id = :job_id
    AND classifier.id = job.classifier_id
    AND job.support_version > classifier.neighbours_support_version
    AND NOT EXISTS (
        SELECT
        FROM job_chunk AS chunk
        WHERE
            chunk.job_id = :job_id
            AND NOT chunk.is_last
            AND chunk.state <> 'done'
    );
