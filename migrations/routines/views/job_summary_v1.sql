-- Every job and how far it is: what `jobs list` and report.job_v2 show.
CREATE VIEW venn_admit.job_summary_v1 AS
SELECT
    classifier.name AS classifier,
    job.id AS job,
    job.kind,
    job.state,
    job.calibration_id AS calibration,
    job.row_count AS rows,
    coalesce(job.rows_done, chunk.rows_done) AS rows_done,
    chunk.chunks,
    chunk.chunks_failed,
    chunk.most_attempts,
    job.error,
    job.created_at,
    job.finished_at,
    extract(EPOCH FROM job.finished_at - job.created_at)::double precision AS seconds,
    job.removed_at
FROM venn_admit.job AS job
INNER JOIN venn_admit.classifier AS classifier ON job.classifier_id = classifier.id
CROSS JOIN
    -- Of each job by itself, so that a list of the newest jobs reads no other job's chunks.
    LATERAL (
        SELECT
            count(*) AS chunks,
            coalesce(sum(part.end_row - part.first_row) FILTER (WHERE part.state = 'done'), 0)::bigint AS rows_done,
            count(*) FILTER (WHERE part.state = 'failed') AS chunks_failed,
            coalesce(max(part.attempts), 0) AS most_attempts
        FROM venn_admit.job_chunk AS part
        WHERE part.job_id = job.id
    ) AS chunk;
