-- Whether no message is under way for an open chunk: none was sent, or none since its last claim expired or was late.
--
-- The planner puts the expression in the place of the call.
CREATE FUNCTION venn_admit.is_chunk_unsent_v2(
    sent_at timestamp with time zone,
    lease_until timestamp with time zone,
    claimed_at timestamp with time zone,
    late_at timestamp with time zone
)
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN sent_at IS NULL
OR coalesce(lease_until < now() AND sent_at <= lease_until, FALSE)
OR coalesce(claimed_at < late_at AND sent_at < late_at, FALSE);
