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
-- Drop the partitions of the vectors of a classifier, unless others are using the table; return whether that was done.
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
