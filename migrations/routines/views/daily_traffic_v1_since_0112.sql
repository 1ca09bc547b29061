-- The rows of all score jobs of a day by partition, beside the calibration points of the snapshot that decided on them:
-- traffic_v1 with the jobs of a day taken together. A row that two jobs of the day have counts twice.
CREATE VIEW report.daily_traffic_v1 AS
WITH daily AS (
    SELECT
        classifier,
        day,
        calibration,
        method,
        bin,
        q_from,
        q_to,
        d_quartile,
        sum(points)::bigint AS points,
        sum(admitted)::bigint AS admitted,
        sum(labelled)::bigint AS labelled,
        sum(correct)::bigint AS correct,
        -- Each job of the snapshot has the same.
        max(calibration_points) AS calibration_points,
        max(calibration_accuracy) AS calibration_accuracy
    FROM report.traffic_v1
    GROUP BY classifier, day, calibration, method, bin, q_from, q_to, d_quartile
),

totalled AS (
    SELECT
        daily.*,
        sum(daily.points) OVER of_day AS all_points,
        sum(daily.calibration_points) OVER of_day AS all_calibration_points,
        count(*) OVER of_day AS partitions
    FROM daily
    WINDOW of_day AS (PARTITION BY daily.classifier, daily.day, daily.calibration, daily.method)
),

shared AS (
    SELECT
        totalled.*,
        ((totalled.points + 0.5) / (totalled.all_points + 0.5 * totalled.partitions))::double precision AS smoothed,
        (
            (totalled.calibration_points + 0.5) / (totalled.all_calibration_points + 0.5 * totalled.partitions)
        )::double precision AS calibration_smoothed
    FROM totalled
)

SELECT
    -- Name of the classifier.
    classifier,
    -- Day on which the jobs were requested, in UTC.
    day,
    -- The snapshot that decided.
    calibration,
    -- Method of calibration, venn-admit or venn-abers.
    method,
    -- Number of the bin of q, from 0; null if the points have no q.
    bin,
    -- Least q of the bin.
    q_from,
    -- Greatest q of the bin.
    q_to,
    -- Quartile of d among the calibration points, 1 to 4; null if the points have no d.
    d_quartile,
    -- Rows of the day's jobs that were decided on.
    points,
    -- Share of the day's rows by this snapshot; null without decisions.
    (points / nullif(all_points, 0))::double precision AS share,
    -- Points of the snapshot.
    calibration_points,
    -- Share of the snapshot's points.
    (calibration_points / nullif(all_calibration_points, 0))::double precision AS calibration_share,
    -- Rows that were admitted.
    admitted,
    -- Rows whose label is known and with which the snapshot was not made.
    labelled,
    -- Those of them whose prediction is right.
    correct,
    -- Share of the labelled rows whose prediction is right; null without any.
    correct / nullif(labelled, 0)::double precision AS accuracy,
    -- Share of the snapshot's points whose prediction is right; null without any.
    calibration_accuracy,
    -- Population stability index of the day, as traffic_v1 has it of a job; null without decisions.
    CASE
        WHEN all_points > 0
            THEN sum((smoothed - calibration_smoothed) * ln(smoothed / calibration_smoothed)) OVER (
                PARTITION BY classifier, day, calibration, method
            )
    END AS stability_index
FROM shared;
