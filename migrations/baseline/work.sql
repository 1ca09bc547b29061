-- Jobs, their chunks, requests for recalibration, and messages.
--
-- Work is recorded here before any message is sent, so that losing the broker loses nothing.
-- Messages are not logged: one only wakes a worker up, and one that a crash loses is sent again.

-- Requests for work. The chunks of a job are its record; a message to a worker only wakes it up.
CREATE TABLE venn_admit.job (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Classifier that the work is for.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- approximate, score, fit or certify.
    kind text NOT NULL,
    -- running, done, failed or cancelled.
    state text NOT NULL,
    -- KNN parameters to use, or those that a fit made; null if only neighbours are computed, or if the classifier has
    -- logits only.
    knn_parameters_id integer REFERENCES venn_admit.knn_parameters (id),
    -- Snapshot to score with; null for jobs of other kinds, and if it was let go after the job was removed.
    calibration_id bigint REFERENCES venn_admit.calibration (id) ON DELETE SET NULL,
    -- Whether Venn probabilities are up-weighted; null unless the kind is score.
    weighted boolean,
    -- Whether points with q < K are rejected; null unless the kind is score.
    require_full_match boolean,
    -- Support version that all neighbour lists are complete to once it is done; null if not all are.
    support_version bigint,
    -- Number of rows in job_row.
    row_count integer NOT NULL,
    -- Why it failed or was cancelled; null otherwise.
    error text,
    -- When it was requested.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- When it was done, failed or was cancelled.
    finished_at timestamp with time zone,
    -- Key or token by which it was requested over HTTP, such as key 2; null otherwise.
    requested_by text,
    -- When its rows, chunks and decisions were removed; null while they are kept.
    removed_at timestamp with time zone,
    -- Why: age, by the setting, or request, because somebody asked for it; null while they are kept.
    removed_because text,
    -- Rows that were done when it was removed; null while its chunks are kept.
    rows_done integer,
    -- Whether all rows and chunks of a removed job are deleted.
    is_emptied boolean NOT NULL DEFAULT FALSE,
    CONSTRAINT job_kind_check CHECK (kind IN ('approximate', 'score', 'fit', 'certify')),
    CONSTRAINT job_state_check CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
    CONSTRAINT job_finished_check CHECK ((state = 'running') = (finished_at IS NULL)),
    CONSTRAINT job_score_check CHECK (
        (kind = 'score') = (weighted IS NOT NULL AND require_full_match IS NOT NULL)
        AND (kind = 'score' OR calibration_id IS NULL)
        AND (kind <> 'score' OR calibration_id IS NOT NULL OR removed_at IS NOT NULL)
    ),
    CONSTRAINT job_removed_check CHECK (
        num_nulls(removed_at, removed_because, rows_done) IN (0, 3)
        AND removed_because IN ('age', 'request')
        AND (removed_at IS NULL OR state <> 'running')
        AND (removed_at IS NOT NULL OR NOT is_emptied)
    )
);

CREATE INDEX job_running_idx
ON venn_admit.job (id)
WHERE state = 'running';

CREATE INDEX job_finished_idx
ON venn_admit.job (classifier_id, (kind = 'score'), finished_at)
WHERE finished_at IS NOT NULL;

-- Those whose age counts, and those whose removal goes on.
CREATE INDEX job_age_idx
ON venn_admit.job (finished_at)
WHERE removed_at IS NULL;

CREATE INDEX job_removal_idx
ON venn_admit.job (id)
WHERE removed_at IS NOT NULL AND NOT is_emptied;

-- The exemplars of a job, in the order of the request.
CREATE TABLE venn_admit.job_row (
    -- The job.
    job_id bigint NOT NULL REFERENCES venn_admit.job (id),
    -- 0, 1, ..., in the order of the request.
    row_number integer NOT NULL,
    -- Exemplar to compute.
    exemplar_id bigint NOT NULL REFERENCES venn_admit.exemplar (id),
    CONSTRAINT job_row_pkey PRIMARY KEY (job_id, row_number)
)
WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

-- Whether another job asks for an exemplar.
CREATE INDEX job_row_exemplar_id_idx ON venn_admit.job_row (exemplar_id);

-- Runs of a job's rows, each of which one worker computes and writes in one transaction.
CREATE TABLE venn_admit.job_chunk (
    -- The job.
    job_id bigint NOT NULL REFERENCES venn_admit.job (id),
    -- 0, 1, ... within the job.
    ordinal integer NOT NULL,
    -- First row number.
    first_row integer NOT NULL,
    -- One past the last row number.
    end_row integer NOT NULL,
    -- pending, running, done or failed.
    state text NOT NULL DEFAULT 'pending',
    -- Number of times that it was claimed.
    attempts smallint NOT NULL DEFAULT '0',
    -- When a message for it was last sent; null if none was sent yet.
    sent_at timestamp with time zone,
    -- Token of the current claim; a result with another token is refused.
    lease_token uuid,
    -- When the claim expires.
    lease_until timestamp with time zone,
    -- Worker that claimed it last.
    worker text,
    -- Error of the last attempt that failed.
    error text,
    -- When it was done or failed.
    finished_at timestamp with time zone,
    -- Earliest time of the next attempt; null if it need not wait.
    not_before timestamp with time zone,
    -- Whether it waits until all other chunks of the job are done.
    is_last boolean NOT NULL DEFAULT FALSE,
    -- When it was last claimed; null if it was not, or by a version of the program before 0041.
    claimed_at timestamp with time zone,
    -- When its claim was found to last much longer than others of the job, once at most; else null.
    late_at timestamp with time zone,
    CONSTRAINT job_chunk_pkey PRIMARY KEY (job_id, ordinal),
    CONSTRAINT job_chunk_state_check CHECK (state IN ('pending', 'running', 'done', 'failed')),
    CONSTRAINT job_chunk_rows_check CHECK (end_row > first_row),
    CONSTRAINT job_chunk_lease_check CHECK ((state = 'running') = (lease_token IS NOT NULL))
);

CREATE INDEX job_chunk_open_idx
ON venn_admit.job_chunk (job_id, ordinal)
WHERE state IN ('pending', 'running');

CREATE INDEX job_chunk_claimed_idx
ON venn_admit.job_chunk (job_id, claimed_at)
WHERE claimed_at IS NOT NULL;

-- Recalibrations that are due or will be. Requests are gathered in one row per calibrator.
CREATE TABLE venn_admit.recalibration_request (
    -- Calibrator that must be recalibrated.
    calibrator_id integer PRIMARY KEY REFERENCES venn_admit.calibrator (id),
    -- When the first request that is not served yet was made.
    first_requested_at timestamp with time zone NOT NULL,
    -- When the last request was made.
    last_requested_at timestamp with time zone NOT NULL,
    -- What changed, such as labels.
    reason text NOT NULL,
    -- Job that brings the approximations up to date; null if none is recorded yet.
    job_id bigint REFERENCES venn_admit.job (id),
    -- Why it could not be served; it then waits for the next request, or until somebody intervenes.
    error text,
    CONSTRAINT recalibration_request_requested_check CHECK (first_requested_at <= last_requested_at)
);

-- Messages to workers if the database is the broker; deleted on receipt, and lost in a crash.
CREATE UNLOGGED TABLE venn_admit.message (
    -- Key; ascends in order of sending.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Celery's queue.
    queue text NOT NULL,
    -- Content that Celery sends: the task, its job and its chunk.
    payload jsonb NOT NULL
);
