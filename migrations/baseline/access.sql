-- Who may ask the HTTP service for what.

-- Keys for the HTTP service.
CREATE TABLE venn_admit.api_key (
    -- Key; part of the secret's text.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What the key is for, in the words of whoever made it.
    name text NOT NULL,
    -- SHA-256 of the 256 random bits of the secret, which is not stored.
    digest bytea NOT NULL,
    -- read, score, write or admin; each includes those before it.
    scope text NOT NULL,
    -- The one classifier that it is for; null if it is for all.
    classifier_id integer REFERENCES venn_admit.classifier (id),
    -- When it was made.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- From when on it is refused; null if it does not expire.
    expires_at timestamp with time zone,
    -- When it was revoked; null if it was not.
    revoked_at timestamp with time zone,
    -- When it was last used, within a minute; null if it never was.
    last_used_at timestamp with time zone,
    CONSTRAINT api_key_scope_check CHECK (scope IN ('read', 'score', 'write', 'admin')),
    CONSTRAINT api_key_digest_check CHECK (octet_length(digest) = 32)
);

-- Sessions of the page of the HTTP service; those that expired are removed when another begins.
CREATE TABLE venn_admit.page_session (
    -- SHA-256 of the 256 random bits that the browser shows, which are not stored.
    digest bytea PRIMARY KEY,
    -- The key that signed in.
    key_id bigint NOT NULL REFERENCES venn_admit.api_key (id),
    -- When it began.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- From when on it is refused.
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT page_session_digest_check CHECK (octet_length(digest) = 32)
);
