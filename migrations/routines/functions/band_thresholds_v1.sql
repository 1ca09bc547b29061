-- The count and the threshold score of each class in a band, from mc. The rank is exact, because alpha is a decimal; a
-- rank beyond the count has no score.
--
-- The planner puts the body in the place of the call.
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
        ranked.label,
        max(ranked.band_size),
        min(ranked.score) FILTER (
            WHERE ranked.position = ceil((ranked.band_size + 1) * (1 - band_thresholds_v1.alpha))
        )
    FROM (
        SELECT
            point.label,
            point.score,
            row_number() OVER (PARTITION BY point.label ORDER BY point.score) AS position,
            count(*) OVER (PARTITION BY point.label) AS band_size
        FROM venn_admit.band_points_v1(
            band_thresholds_v1.calibrator,
            'mc',
            band_thresholds_v1.bin,
            band_thresholds_v1.distance,
            band_thresholds_v1.omega
        ) AS point
    ) AS ranked
    GROUP BY ranked.label
$routine$;
