-- The audit ledger: who asked for what over HTTP, and what was answered, and changes of keys. Secrets are not stored,
-- and addresses of clients are left out.
CREATE VIEW report.audit_v1 AS
SELECT
    -- Key of the event; ascends in the order of what was done.
    event.id AS event,
    -- When it was done, or refused.
    event.created_at,
    -- Day on which that was, in UTC.
    (event.created_at AT TIME ZONE 'UTC')::date AS day,
    -- http, command line, or schedule.
    event.origin,
    -- Number of the key that was shown; null without a valid one, or if a token was shown.
    event.key_id AS key,
    -- What the key is for, in the words of whoever made it.
    api_key.name AS key_name,
    -- Scope of the key: read, score, write or admin.
    api_key.scope AS key_scope,
    -- Subject of the token that was shown; null without one.
    event.subject,
    -- What was asked for: the operationId of the route, authenticate, create_key, revoke_key, create_generation,
    -- switch_generation, state_extractor, delete_job or prune_jobs.
    event.action,
    -- Method and path template; null unless it came over HTTP.
    event.route,
    -- The classifier, key or job that the path or command names, by the name that it had then.
    event.target,
    -- Status of the answer; null unless it came over HTTP.
    event.status,
    -- Whether it was done: the answer is a success, or it did not come over HTTP.
    coalesce(event.status < 400, TRUE) AS is_done,
    -- Whether an earlier answer was given again, and nothing was done anew.
    event.is_replay,
    -- X-Request-ID of the answer, under which the log has the request; null unless it came over HTTP.
    event.request_id
FROM venn_admit.audit_event AS event
LEFT JOIN venn_admit.api_key AS api_key ON event.key_id = api_key.id;
