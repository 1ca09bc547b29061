-- Every job and how far it is.
CREATE VIEW report.job_v2 AS
SELECT
    -- Name of the classifier.
    classifier,
    -- Key of the job.
    job,
    -- approximate, score, fit or certify.
    kind,
    -- running, done, failed or cancelled.
    state,
    -- Snapshot to score with; null for jobs of other kinds, and if it was let go after the job was removed.
    calibration,
    -- Number of rows asked for.
    rows,
    -- Rows of the chunks that are done, or were when the job was removed.
    rows_done,
    -- Chunks that the job is divided into; 0 of a removed one.
    chunks,
    -- Chunks that failed for good.
    chunks_failed,
    -- Claims of the chunk that was claimed most often.
    most_attempts,
    -- Why it failed or was cancelled; null otherwise.
    error,
    -- When it was requested.
    created_at,
    -- When it was done, failed or was cancelled; null while it runs.
    finished_at,
    -- Seconds from request to end; null while it runs.
    seconds,
    -- When its rows, chunks and decisions were removed; null while they are kept.
    removed_at
FROM venn_admit.job_summary_v1;
