-- name: put
-- A message at the end of a queue.
INSERT INTO message (queue, payload)
VALUES (:queue, CAST(:payload AS jsonb));

-- name: take
-- The oldest message of a queue, which is gone with this; one that another takes right now is passed by.
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
-- How many messages wait in a queue.
SELECT count(*) AS messages
FROM message
WHERE queue = :queue;

-- name: delete_all
-- Empty a queue.
DELETE FROM message
WHERE queue = :queue;
