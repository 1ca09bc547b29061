-- The chunks that the last chunk of their job waits for.
CREATE VIEW venn_admit.awaited_chunk_v1 AS
SELECT
    job_id,
    ordinal
FROM venn_admit.job_chunk
WHERE
    NOT is_last
    AND state <> 'done';
