-- Whether no message is under way for an open chunk: none was sent, or none since its last claim expired.
--
-- The planner puts the expression in the place of the call.
CREATE FUNCTION venn_admit.is_chunk_unsent_v1(sent_at timestamp with time zone, lease_until timestamp with time zone)
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN sent_at IS NULL
OR coalesce(lease_until < now() AND sent_at <= lease_until, FALSE);
