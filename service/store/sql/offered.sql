-- name: partition_map
-- The partition map: calibration points and recent traffic by q and by quartile of d.
-- The page leaves out traffic that was decided on before training exemplars changed, exemplars that the calibration was
-- made with, and all but the newest 10,000 rows.
WITH edge AS (
    SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY d) AS quartiles
    FROM report.calibration_point_v1
    WHERE calibration = :calibration
),

calibrated AS (
    SELECT
        width_bucket(q, :match_edges ::integer[]) AS q_group,
        d_quartile,
        count(*) AS points,
        count(*) FILTER (WHERE is_right) AS correct,
        count(*) FILTER (WHERE is_admitted) AS admitted
    FROM report.calibration_point_v1
    WHERE
        calibration = :calibration
        AND split = :split
    GROUP BY q_group, d_quartile
),

newest AS (
    SELECT DISTINCT ON (external_id)
        calibration,
        q,
        d
    FROM report.decision_v2
    WHERE classifier = :classifier
    ORDER BY external_id ASC, created_at DESC, calibration DESC
),

recent AS (
    SELECT
        width_bucket(newest.q, :match_edges ::integer[]) AS q_group,
        width_bucket(newest.d, edge.quartiles) + 1 AS d_quartile,
        count(*) AS traffic
    FROM newest
    CROSS JOIN edge
    INNER JOIN report.calibration_v2 AS made ON newest.calibration = made.calibration
    INNER JOIN report.calibration_v2 AS shown ON made.knn_parameters = shown.knn_parameters
    WHERE shown.calibration = :calibration
    GROUP BY q_group, d_quartile
)

SELECT
    coalesce(calibrated.q_group, recent.q_group) AS q_group,
    coalesce(calibrated.d_quartile, recent.d_quartile) AS d_quartile,
    coalesce(calibrated.points, 0) AS points,
    calibrated.correct / calibrated.points::double precision AS share_right,
    calibrated.admitted / calibrated.points::double precision AS share_admitted,
    coalesce(recent.traffic, 0) AS traffic,
    coalesce(recent.traffic, 0) / nullif(sum(recent.traffic) OVER (), 0)::double precision AS share_of_traffic
FROM calibrated
FULL JOIN recent
    ON
        calibrated.q_group = recent.q_group
        AND calibrated.d_quartile = recent.d_quartile
ORDER BY q_group, d_quartile;

-- name: class_coverage
-- Calibration points by predicted class, by true class and over all: the share that is admitted, and the share right of
-- it. Of calibrations by Venn-Abers, the page decides on each point of mc by the bounds of the other folds, and this
-- query by the bounds of the calibration itself. The page computes the intervals.
SELECT
    counted_by.per,
    counted_by.class,
    min(counted_by.class_name) AS class_name,
    count(*) AS points,
    avg(point.is_admitted::integer)::double precision AS share_admitted,
    (avg(point.is_right::integer) FILTER (WHERE point.is_admitted))::double precision AS share_right
FROM report.calibration_point_v1 AS point
CROSS JOIN
    LATERAL (
        VALUES
        ('predicted', point.predicted, point.predicted_class),
        ('true', point.label, point.class_name),
        ('all', NULL, NULL)
    ) AS counted_by (per, class, class_name)
WHERE
    point.calibration = :calibration
    AND point.split = :split
GROUP BY counted_by.per, counted_by.class
ORDER BY array_position(ARRAY['predicted', 'true', 'all'], counted_by.per), counted_by.class;

-- name: history
-- What the newest calibrations changed, up to this one, and the share of its points that each would admit.
SELECT
    change.calibration,
    change.created_at,
    change.reason,
    change.method,
    change.state,
    change.mc_count,
    change.vp_count,
    change.previous,
    change.arrived,
    change.relabelled,
    change.gone,
    change.moved,
    change.other_parameters,
    change.other_training,
    change.other_settings,
    judged.admitted
FROM report.calibration_change_v1 AS change
LEFT JOIN
    LATERAL (
        SELECT avg(point.is_admitted::integer)::double precision AS admitted
        FROM report.calibration_point_v1 AS point
        WHERE
            point.calibration = change.calibration
            AND point.split = CASE change.method WHEN 'venn-admit' THEN 'vp' ELSE 'mc' END
    ) AS judged
    ON change.mc_count + change.vp_count <= 50000
WHERE
    change.classifier = :classifier
    AND change.calibration <= :calibration
ORDER BY change.calibration DESC
LIMIT 6;

-- name: lamps
-- The lamps of the monitor: those that are lit and harmful, then the other lit ones, then the nearest to it.
SELECT
    lamp,
    class_name,
    matching_neighbours,
    labels,
    share_correct,
    lower_bound,
    largest_e_value,
    needed,
    is_lit,
    is_harmful
FROM report.monitor_v1
WHERE
    classifier = :classifier
    AND setting = :setting
ORDER BY
    is_lit AND is_harmful DESC,
    is_lit DESC,
    largest_e_value / needed DESC NULLS LAST,
    lamp ASC,
    class_name ASC;
