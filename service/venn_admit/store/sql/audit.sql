-- name: add
-- Add what was done, or refused, to the ledger.
INSERT INTO audit_event (origin, key_id, subject, action, route, target, status, is_replay, request_id, client_address)
VALUES (
    :origin,
    :key_id,
    :subject,
    :action,
    :route,
    :target,
    :status,
    :is_replay,
    :request_id,
    :client_address
);

-- name: events
-- The newest events; before: only those older than this one.
SELECT
    audit_event.id AS event,
    audit_event.created_at,
    audit_event.origin,
    audit_event.key_id AS key,
    api_key.name AS key_name,
    audit_event.subject,
    audit_event.action,
    audit_event.route,
    audit_event.target,
    audit_event.status,
    audit_event.is_replay,
    audit_event.request_id,
    audit_event.client_address
FROM audit_event
LEFT JOIN api_key ON audit_event.key_id = api_key.id
WHERE CAST(:before AS bigint) IS NULL OR audit_event.id < :before
ORDER BY audit_event.id DESC
LIMIT :row_limit;
