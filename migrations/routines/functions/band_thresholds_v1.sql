-- The count and the threshold score of each class in a band, from mc. The rank is exact, because alpha is a decimal; a
-- rank beyond the count has no score.
--
-- The planner puts the body in the place of the call. One sort gives the scores in order; the rank is computed once a
-- class.
CREATE FUNCTION venn_admit.band_thresholds_v1(
    calibrator integer,
    bin integer,
    distance double precision,
    omega double precision,
    alpha numeric
)
RETURNS TABLE (label integer, band_size bigint, threshold_score double precision)
LANGUAGE sql
STABLE
PARALLEL SAFE
AS $routine$
    SELECT
        point.label,
        count(*),
        (array_agg(point.score ORDER BY point.score))[
            ceil((count(*) + 1) * (1 - band_thresholds_v1.alpha))::integer
        ]
    FROM venn_admit.band_points_v1(
        band_thresholds_v1.calibrator,
        'mc',
        band_thresholds_v1.bin,
        band_thresholds_v1.distance,
        band_thresholds_v1.omega
    ) AS point
    GROUP BY point.label
$routine$;
