-- name: band_evidence
-- For one point, per class: the count and the threshold score of its band, from mc, and, for each predicted class and
-- each label, the count of the category, from vp. It reads only the covering index of the current snapshot.
--
-- A class without a threshold score has the threshold minus infinity. Only singletons have a category, and a singleton
-- is {predicted}.
WITH class AS (
    SELECT generate_series(0, :class_count - 1) AS label
),

vp_class AS (
    SELECT
        label,
        count(*) AS category_count
    FROM band_points_v1(:calibrator_id, 'vp', :bin, :distance, :omega)
    WHERE
        predicted = :predicted
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
LEFT JOIN band_thresholds_v1(:calibrator_id, :bin, :distance, :omega, :alpha) AS mc_class
    ON class.label = mc_class.label
LEFT JOIN vp_class ON class.label = vp_class.label
ORDER BY class.label;
