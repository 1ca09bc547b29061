-- The points of one split that are in a band of the current snapshot. The interval is closed, and written as in arrays.
--
-- The planner puts the body in the place of the call, so that a query reads the covering index alone.
CREATE FUNCTION venn_admit.band_points_v1(
    calibrator integer,
    split text,
    bin integer,
    distance double precision,
    omega double precision
)
RETURNS TABLE (label integer, predicted integer, score double precision, is_singleton boolean)
LANGUAGE sql
STABLE
PARALLEL SAFE
AS $routine$
    SELECT
        point.label,
        point.predicted,
        point.score,
        point.is_singleton
    FROM venn_admit.calibration_point AS point
    WHERE
        point.calibrator_id = band_points_v1.calibrator
        AND point.split = band_points_v1.split
        AND point.valid_until IS NULL
        AND point.bin = band_points_v1.bin
        AND point.distance >= band_points_v1.distance - band_points_v1.omega
        AND point.distance <= band_points_v1.distance + band_points_v1.omega
$routine$;
