-- Whether nobody has a chunk of a running job, or its claim has expired, and it need not wait for its next attempt.
--
-- The planner puts the expression in the place of the call, so that the index of open chunks serves it.
CREATE FUNCTION venn_admit.is_chunk_free_v1(
    state text, not_before timestamp with time zone, lease_until timestamp with time zone
)
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN (not_before IS NULL OR not_before <= now())
AND state IN ('pending', 'running')
AND (state = 'pending' OR lease_until < now());
