-- Whether a chunk of a running job is free or late: whoever has it has taken much longer than
-- others did for theirs.
--
-- The planner puts the expression in the place of the call, so that the index of open chunks serves it.
CREATE FUNCTION venn_admit.is_chunk_claimable_v1(
    state text,
    not_before timestamp with time zone,
    lease_until timestamp with time zone,
    claimed_at timestamp with time zone,
    late_at timestamp with time zone
)
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN venn_admit.is_chunk_free_v1(state, not_before, lease_until)
OR (state = 'running' AND claimed_at < late_at);
