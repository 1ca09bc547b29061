-- Every job and how far it is.
CREATE VIEW report.job_v1 AS
SELECT
    classifier.name AS classifier,
    job.id AS job,
    job.kind,
    job.state,
    job.calibration_id AS calibration,
    job.row_count,
    -- Rows of the chunks that are done.
    coalesce(sum(chunk.end_row - chunk.first_row) FILTER (WHERE chunk.state = 'done'), 0) AS rows_done,
    -- Chunks that the job is divided into.
    count(chunk.ordinal) AS chunks,
    -- Chunks that failed for good.
    count(chunk.ordinal) FILTER (WHERE chunk.state = 'failed') AS chunks_failed,
    -- Claims of the chunk that was claimed most often.
    coalesce(max(chunk.attempts), 0) AS most_attempts,
    job.error,
    job.created_at,
    job.finished_at
FROM venn_admit.job AS job
INNER JOIN venn_admit.classifier AS classifier ON job.classifier_id = classifier.id
LEFT JOIN venn_admit.job_chunk AS chunk ON job.id = chunk.job_id
GROUP BY classifier.name, job.id;
