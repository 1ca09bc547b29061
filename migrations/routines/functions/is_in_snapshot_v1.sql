-- Whether the snapshot with a number holds a row of calibration_point, of the same calibrator.
--
-- The planner puts the expression in the place of the call, so that a query is planned as if it were written there.
CREATE FUNCTION venn_admit.is_in_snapshot_v1(number integer, valid_from integer, valid_until integer)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN valid_from <= number AND (valid_until IS NULL OR valid_until > number);
