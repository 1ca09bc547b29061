-- What is kept of requests to the HTTP service.
--
-- Whoever gets no answer to a request that stores something sends it again, and must neither store it twice nor learn
-- less than from the first answer.

-- Requests with an Idempotency-Key, and their answers, for as long as they are kept.
CREATE TABLE venn_admit.idempotent_request (
    -- Who sent it: a key, or the subject of a token.
    caller text NOT NULL,
    -- What the caller named it.
    idempotency_key text NOT NULL,
    -- Method and path template of what it asks for.
    route text NOT NULL,
    -- The attempt at it; only this one records the answer.
    attempt uuid NOT NULL,
    -- Until when the attempt counts as running, unless it has extended its lease.
    leased_until timestamp with time zone NOT NULL,
    -- SHA-256 of the request; null until it is answered.
    digest bytea,
    -- Status of the answer; null until there is one.
    status integer,
    -- Headers of the answer that are about its content; null until there is one.
    headers jsonb,
    -- The answer; null until there is one.
    answer bytea,
    -- When the attempt began.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- From when on the same name is for another request.
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT idempotent_request_pkey PRIMARY KEY (caller, idempotency_key),
    CONSTRAINT idempotent_request_answered_check CHECK (num_nonnulls(digest, status, headers, answer) IN (0, 4)),
    CONSTRAINT idempotent_request_digest_check CHECK (octet_length(digest) = 32)
);

CREATE INDEX idempotent_request_expires_at_idx ON venn_admit.idempotent_request (expires_at);

-- Leases that attempts at a request have extended because they take longer than the first lease.
CREATE TABLE venn_admit.idempotent_lease (
    -- Who sent the request.
    caller text NOT NULL,
    -- What the caller named it.
    idempotency_key text NOT NULL,
    -- The attempt at it.
    attempt uuid NOT NULL,
    -- Until when the attempt counts as running; it extends this while its process lives.
    leased_until timestamp with time zone NOT NULL,
    CONSTRAINT idempotent_lease_pkey PRIMARY KEY (caller, idempotency_key, attempt),
    CONSTRAINT idempotent_lease_caller_fkey FOREIGN KEY (caller, idempotency_key)
    REFERENCES venn_admit.idempotent_request (caller, idempotency_key) ON DELETE CASCADE
);

-- Who did what: requests that store something, refused keys, and changes of keys. Only added to.
CREATE TABLE venn_admit.audit_event (
    -- Event.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- When it was done, or refused.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- http, command line, or schedule.
    origin text NOT NULL,
    -- The key that was shown; null without a valid one.
    key_id bigint REFERENCES venn_admit.api_key (id),
    -- Subject of the token that was shown; null without.
    subject text,
    -- What was asked for: the operationId of the route, authenticate, create_key, revoke_key, create_generation,
    -- switch_generation, state_extractor, delete_job, prune_jobs, forget_exemplars, delete_classifier or
    -- delete_generation.
    action text NOT NULL,
    -- Method and path template; null for the command line.
    route text,
    -- The classifier, key or job that the path or command names.
    target text,
    -- Of the answer; null for the command line.
    status integer,
    -- Whether an answer was given again, and nothing was done.
    is_replay boolean NOT NULL,
    -- X-Request-ID of the answer; null for the command line.
    request_id text,
    -- Where the request came from; null unless the settings ask for it.
    client_address text,
    CONSTRAINT audit_event_origin_check CHECK (origin IN ('http', 'command line', 'schedule')),
    CONSTRAINT audit_event_who_check CHECK (key_id IS NULL OR subject IS NULL)
);
