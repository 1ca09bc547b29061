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
-- Whether training exemplars arrived after a version.
SELECT
    EXISTS (
        SELECT 1
        FROM exemplar
        WHERE
            classifier_id = :classifier_id
            AND split = 'train'
            AND id > :version
    )
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

-- name: lock_for_results
-- Let the results of one classifier be written one transaction at a time, while its training exemplars stay as they
-- are.
SELECT support_version
FROM classifier
WHERE id = :classifier_id
FOR NO KEY UPDATE;

-- name: complete_neighbours
-- Record that a job brought all neighbour lists up to its support version.
UPDATE classifier
SET neighbours_support_version = job.support_version
FROM job
WHERE
    job.id = :job_id
    AND job.state = 'done'
    AND classifier.id = job.classifier_id
    AND job.support_version > classifier.neighbours_support_version;
