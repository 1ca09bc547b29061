-- name: add_session
-- Store a session of the page by the digest of what the browser shows.
INSERT INTO page_session (digest, key_id, expires_at)
VALUES (:digest, :key_id, now() + CAST(:lifetime AS interval));

-- name: lock_key
-- Have sessions of a key begin one after the other, so that none is counted twice or not at all.
SELECT id
FROM api_key
WHERE id = :key_id
FOR NO KEY UPDATE;

-- name: remove_oldest_sessions
-- End the sessions of a key except the newest.
DELETE FROM page_session
WHERE
    digest IN (
        SELECT digest
        FROM page_session
        WHERE key_id = :key_id
        ORDER BY created_at DESC, digest ASC
        OFFSET :kept
    );

-- name: remove_expired_sessions
-- Forget sessions that would be refused anyway.
DELETE FROM page_session
WHERE expires_at <= now();

-- name: session_key
-- The key whose session this is, unless the session or the key is not accepted any more.
SELECT
    api_key.id,
    api_key.name,
    api_key.scope,
    classifier.name AS classifier
FROM page_session
INNER JOIN api_key ON page_session.key_id = api_key.id
LEFT JOIN classifier ON api_key.classifier_id = classifier.id
WHERE
    page_session.digest = :digest
    AND page_session.expires_at > now()
    AND api_key.revoked_at IS NULL
    AND (api_key.expires_at IS NULL OR api_key.expires_at > now());

-- name: remove_session
-- End a session.
DELETE FROM page_session
WHERE digest = :digest;
