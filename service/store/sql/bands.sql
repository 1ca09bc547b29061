-- name: band_evidence
-- For one point, per class: the count and the threshold score of its band, from mc, and, for each predicted class and
-- each label, the count of the category, from vp. It reads only the covering index of the current snapshot.
--
-- The rank is exact, because alpha is a decimal. A rank beyond the count of the band has no score, so the threshold is
-- minus infinity. Only singletons have a category, and a singleton is {predicted}.
WITH class AS (
    SELECT generate_series(0, :class_count - 1) AS label
),

mc_band AS (
    SELECT
        label,
        score,
        row_number() OVER (PARTITION BY label ORDER BY score) AS position,
        count(*) OVER (PARTITION BY label) AS band_size
    FROM calibration_point
    WHERE
        calibrator_id = :calibrator_id
        AND split = 'mc'
        AND valid_until IS NULL
        AND bin = :bin
        AND distance >= :distance - :omega
        AND distance <= :distance + :omega
),

mc_class AS (
    SELECT
        label,
        max(band_size) AS band_size,
        min(score) FILTER (WHERE position = ceil((band_size + 1) * (1 - :alpha ::numeric))) AS threshold_score
    FROM mc_band
    GROUP BY label
),

vp_class AS (
    SELECT
        label,
        count(*) AS category_count
    FROM calibration_point
    WHERE
        calibrator_id = :calibrator_id
        AND split = 'vp'
        AND valid_until IS NULL
        AND bin = :bin
        AND distance >= :distance - :omega
        AND distance <= :distance + :omega
        AND predicted = :predicted
        AND is_singleton
    GROUP BY label
)

SELECT
    class.label,
    coalesce(mc_class.band_size, 0) AS band_size,
    mc_class.threshold_score,
    coalesce(1 - mc_class.threshold_score, '-Infinity') AS threshold,
    coalesce(vp_class.category_count, 0) AS category_count
FROM class
LEFT JOIN mc_class ON class.label = mc_class.label
LEFT JOIN vp_class ON class.label = vp_class.label
ORDER BY class.label;
