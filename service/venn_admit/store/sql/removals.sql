-- name: await_turn
-- Limit how long locks are waited for, in milliseconds; 0 for no limit. No other timeout ends the statement that waits.
SELECT
    set_config('lock_timeout', CAST(:milliseconds AS text), TRUE),
    set_config('statement_timeout', '0', TRUE);

-- name: in_turn
-- Restore the timeouts with which the session began.
SELECT set_config(name, reset_val, TRUE)
FROM pg_settings
WHERE name IN ('lock_timeout', 'statement_timeout');

-- name: remove
-- Delete decisions, with the evidence that refers to them, and record which; null if none of them was there.
WITH gone AS (
    DELETE FROM decision
    WHERE id = any(:decision_ids ::bigint[])
    RETURNING id, created_at
)

INSERT INTO decision_removal (classifier_id, reason, decisions, decision_count, decided_until)
SELECT
    :classifier_id,
    :reason,
    range_agg(int8range(id, id, '[]')),
    count(*),
    max(created_at)
FROM gone
HAVING count(*) > 0
RETURNING decision_count;

-- name: removal
-- When a decision was removed, and why; no row if it was not.
SELECT
    removed_at,
    reason
FROM decision_removal
WHERE decisions @> CAST(:decision_id AS bigint);

-- name: age_limit
-- The time before which a job must have ended to be old: it lies that far back, and so far that the longest label
-- deadline of a monitor has passed, and before everything that an answer kept under an Idempotency-Key may name, since
-- that answer may be given again.
SELECT
    least(
        now() - CAST(:kept_for AS interval),
        (SELECT now() - max(monitor.label_deadline) FROM monitor),
        (
            SELECT min(request.created_at)
            FROM idempotent_request AS request
            WHERE request.expires_at > now()
        )
    ) AS ended_before;

-- name: next_old
-- Lock the job that ended first, if it ended before a given time, leaving some classifiers out; no row if there is
-- none, except those that somebody else has locked.
SELECT id
FROM job
WHERE
    removed_at IS NULL
    AND finished_at < :ended_before
    AND classifier_id <> all(:blocked ::integer[])
ORDER BY finished_at
LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: old
-- The jobs that ended before a given time, with the rows that they asked for.
SELECT
    count(*) AS jobs,
    coalesce(sum(row_count), 0) AS rows
FROM job
WHERE
    removed_at IS NULL
    AND finished_at < :ended_before;

-- name: mark
-- Record that a job is removed, with how many of its rows were done; no row if it was removed before, or is running.
UPDATE job
SET
    removed_at = now(),
    removed_because = :reason,
    rows_done = (
        SELECT coalesce(sum(chunk.end_row - chunk.first_row) FILTER (WHERE chunk.state = 'done'), 0)
        FROM job_chunk AS chunk
        WHERE chunk.job_id = job.id
    )
WHERE
    id = :job_id
    AND state <> 'running'
    AND removed_at IS NULL
RETURNING id;

-- name: unfinished
-- The oldest removed job after a given one that has rows or chunks left, leaving some classifiers out.
SELECT
    id,
    classifier_id,
    kind,
    calibration_id,
    weighted,
    require_full_match,
    removed_because
FROM job
WHERE
    id > :after
    AND removed_at IS NOT NULL
    AND NOT is_emptied
    AND (CAST(:job_id AS bigint) IS NULL OR id = :job_id)
    AND classifier_id <> all(:blocked ::integer[])
ORDER BY id
LIMIT 1;

-- name: delete_rows
-- Delete some rows of a job, the first ones after a given one, and return their exemplars. Without that one, each part
-- would pass all rows deleted before it, which stay in the index while anybody may still see them.
WITH part AS (
    SELECT row_number
    FROM job_row
    WHERE
        job_id = :job_id
        AND row_number > :after
    ORDER BY row_number
    LIMIT :most
)

DELETE FROM job_row
WHERE
    job_id = :job_id
    AND row_number > :after
    AND row_number <= (SELECT max(part.row_number) FROM part)
RETURNING
    row_number,
    exemplar_id;

-- name: unneeded
-- The decisions of a removed job on some exemplars, except those that another job asks for, those on exemplars that
-- ever had a label which was not selected, and those on drawn ones: monitors, chains and measured accuracies rest on
-- these. If a selected label kept them, points of which somebody complains would be the only ones that count by a later
-- label. Look-ups, so that no table is read whole.
SELECT stored.id
FROM unnest(:exemplar_ids ::bigint[]) AS asked (exemplar_id)
CROSS JOIN
    LATERAL (
        SELECT decision.id
        FROM decision
        WHERE
            decision.calibration_id = :calibration_id
            AND decision.exemplar_id = asked.exemplar_id
            AND decision.weighted = :weighted
            AND decision.require_full_match = :require_full_match
        -- There is at most one. The limit keeps this from becoming a join, and ordering a single row costs nothing.
        ORDER BY decision.exemplar_id
        LIMIT 1
    ) AS stored
LEFT JOIN
    LATERAL (
        SELECT event.id
        FROM label_event AS event
        WHERE
            event.exemplar_id = asked.exemplar_id
            AND event.selection <> 'selected'
        ORDER BY event.id
        LIMIT 1
    ) AS labelled
    ON TRUE
LEFT JOIN audit_draw AS draw
    ON
        asked.exemplar_id = draw.exemplar_id
        AND draw.is_drawn
LEFT JOIN
    LATERAL (
        SELECT other.job_id
        FROM job_row AS other
        CROSS JOIN
            LATERAL (
                SELECT job.*
                FROM job
                WHERE job.id = other.job_id
                ORDER BY job.id
                LIMIT 1
            ) AS asking
        WHERE
            other.exemplar_id = asked.exemplar_id
            AND other.job_id <> :job_id
            AND asking.calibration_id = :calibration_id
            AND asking.weighted = :weighted
            AND asking.require_full_match = :require_full_match
        ORDER BY other.exemplar_id
        LIMIT 1
    ) AS needed
    ON TRUE
WHERE
    labelled.id IS NULL
    AND draw.exemplar_id IS NULL
    AND needed.job_id IS NULL;

-- name: empty
-- Delete the chunks of a job, whose rows are deleted, and record that nothing is left.
WITH gone AS (
    DELETE FROM job_chunk
    WHERE job_id = :job_id
)

UPDATE job
SET is_emptied = TRUE
WHERE id = :job_id;

-- name: vacuum_decision
-- Free the space of deleted rows for new ones.
VACUUM (SKIP_LOCKED) decision;

-- name: vacuum_admit_evidence
-- Free the space of deleted rows for new ones.
VACUUM (SKIP_LOCKED) admit_evidence;

-- name: vacuum_abers_evidence
-- Free the space of deleted rows for new ones.
VACUUM (SKIP_LOCKED) abers_evidence;

-- name: vacuum_job_row
-- Free the space of deleted rows for new ones.
VACUUM (SKIP_LOCKED) job_row;

-- name: vacuum_job_chunk
-- Free the space of deleted rows for new ones.
VACUUM (SKIP_LOCKED) job_chunk;
