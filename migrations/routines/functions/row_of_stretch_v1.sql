-- The row that stands for a stretch of numbered rows, the last of which may be cut short: any of them, by a hash of its
-- first, since what comes first may always be of one kind, as the first point of documents.
--
-- The planner puts the expression in the place of the call.
CREATE FUNCTION venn_admit.row_of_stretch_v1(first_row bigint, length bigint, row_count bigint)
RETURNS bigint
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN least(first_row + ('x' || left(md5(first_row::text), 12))::bit(48)::bigint % length, row_count - 1);
