-- name: put
-- Append a message to a queue.
INSERT INTO message (queue, payload)
VALUES (:queue, CAST(:payload AS jsonb));

-- name: take
-- Take the oldest message from a queue and delete it. A message that another session is taking is skipped.
DELETE FROM message
WHERE
    id = (
        SELECT id
        FROM message
        WHERE queue = :queue
        ORDER BY id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
RETURNING payload;

-- name: count
-- The number of messages that wait in a queue.
SELECT count(*) AS messages
FROM message
WHERE queue = :queue;

-- name: delete_all
-- Empty a queue.
DELETE FROM message
WHERE queue = :queue;
