-- name: add_key
-- Store a key by the digest of its secret.
INSERT INTO api_key (name, digest, scope, classifier_id, expires_at)
VALUES (:name, :digest, :scope, :classifier_id, now() + CAST(:lifetime AS interval))
RETURNING id;

-- name: key_by_id
-- A key, with the state that it is in now.
SELECT
    api_key.id,
    api_key.name,
    api_key.digest,
    api_key.scope,
    classifier.name AS classifier,
    coalesce(api_key.expires_at <= now(), FALSE) AS is_expired,
    api_key.revoked_at IS NOT NULL AS is_revoked,
    api_key.last_used_at IS NULL OR api_key.last_used_at < now() - interval '1 minute' AS is_use_due
FROM api_key
LEFT JOIN classifier ON api_key.classifier_id = classifier.id
WHERE api_key.id = :key_id;

-- name: keys
-- Every key, the newest first; never its digest.
SELECT
    api_key.id AS key,
    api_key.name,
    api_key.scope,
    classifier.name AS classifier,
    api_key.created_at,
    api_key.expires_at,
    api_key.revoked_at,
    api_key.last_used_at,
    CASE
        WHEN api_key.revoked_at IS NOT NULL THEN 'revoked'
        WHEN api_key.expires_at <= now() THEN 'expired'
        ELSE 'valid'
    END AS state
FROM api_key
LEFT JOIN classifier ON api_key.classifier_id = classifier.id
ORDER BY api_key.id DESC;

-- name: valid_keys
-- How many keys would be accepted now.
SELECT count(*)
FROM api_key
WHERE
    revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > now());

-- name: revoke_key
-- Refuse a key from now on; a key that was revoked before keeps its time. No row if there is no such key.
UPDATE api_key
SET revoked_at = coalesce(revoked_at, now())
WHERE id = :key_id
RETURNING id;

-- name: note_use
-- Note that a key is used, at most once a minute.
UPDATE api_key
SET last_used_at = now()
WHERE
    id = :key_id
    AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: move_keys
-- Have the keys for a classifier go with its name, from one generation to another.
UPDATE api_key
SET classifier_id = :after_id
WHERE classifier_id = :before_id;
