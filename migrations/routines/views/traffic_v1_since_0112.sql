-- The rows of every score job by partition, beside the calibration points of the snapshot that decided on them. Changed
-- proportions of partitions do no harm to what is promised inside each of them, as by bins of q under a pointwise rule.
-- A promise for a class pools its partitions, and need not survive changed proportions. A changed accuracy inside a
-- partition does harm in any case. So watch the accuracies, and take the stability index for a hint at how many points
-- will be admitted, and at whether a pooled promise still holds.
CREATE VIEW report.traffic_v1 AS
WITH counted AS (
    SELECT
        decided.classifier,
        job.id AS job,
        (job.created_at AT TIME ZONE 'UTC')::date AS day,
        decided.calibration,
        decided.method,
        decided.neighbour_count,
        decided.bin_edges,
        decided.bin,
        width_bucket(decided.d, spread.quartiles) + 1 AS d_quartile,
        count(*) AS points,
        count(*) FILTER (WHERE decided.decision IS NOT NULL) AS admitted,
        count(*) FILTER (WHERE decided.is_evaluable) AS labelled,
        count(*) FILTER (WHERE decided.is_evaluable AND decided.predicted = decided.label) AS correct,
        0 AS calibration_points,
        0 AS calibration_correct
    FROM venn_admit.job AS job
    INNER JOIN venn_admit.job_row AS row_of_job ON job.id = row_of_job.job_id
    INNER JOIN venn_admit.decided_point_v1 AS decided
        ON
            job.calibration_id = decided.calibration
            AND row_of_job.exemplar_id = decided.exemplar_id
            AND job.weighted = decided.weighted
            AND job.require_full_match = decided.require_full_match
    LEFT JOIN venn_admit.snapshot_quartiles AS spread ON decided.calibration = spread.calibration_id
    GROUP BY
        decided.classifier,
        job.id,
        job.created_at,
        decided.calibration,
        decided.method,
        decided.neighbour_count,
        decided.bin_edges,
        decided.bin,
        d_quartile
    UNION ALL
    SELECT
        classifier.name AS classifier,
        job.id AS job,
        (job.created_at AT TIME ZONE 'UTC')::date AS day,
        calibration.id AS calibration,
        calibrator.method,
        classifier.neighbour_count,
        calibrator.bin_edges,
        calibrated.bin,
        calibrated.d_quartile,
        0 AS points,
        0 AS admitted,
        0 AS labelled,
        0 AS correct,
        calibrated.points AS calibration_points,
        calibrated.correct AS calibration_correct
    FROM venn_admit.job AS job
    INNER JOIN venn_admit.calibration AS calibration ON job.calibration_id = calibration.id
    INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
    INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
    CROSS JOIN
        -- Of the snapshot of this job alone.
        LATERAL (
            SELECT
                point.bin,
                width_bucket(point.distance, spread.quartiles) + 1 AS d_quartile,
                count(*) AS points,
                count(*) FILTER (WHERE point.predicted = point.label) AS correct
            FROM venn_admit.calibration_point AS point
            LEFT JOIN venn_admit.snapshot_quartiles AS spread ON calibration.id = spread.calibration_id
            WHERE
                point.calibrator_id = calibration.calibrator_id
                AND venn_admit.is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)
            GROUP BY point.bin, d_quartile
        ) AS calibrated
    WHERE job.row_count > 0
),

beside AS (
    SELECT
        classifier,
        job,
        day,
        calibration,
        method,
        neighbour_count,
        bin_edges,
        bin,
        d_quartile,
        sum(points)::bigint AS points,
        sum(admitted)::bigint AS admitted,
        sum(labelled)::bigint AS labelled,
        sum(correct)::bigint AS correct,
        sum(calibration_points)::bigint AS calibration_points,
        sum(calibration_correct)::bigint AS calibration_correct
    FROM counted
    GROUP BY classifier, job, day, calibration, method, neighbour_count, bin_edges, bin, d_quartile
),

totalled AS (
    SELECT
        beside.*,
        sum(beside.points) OVER of_job AS all_points,
        sum(beside.calibration_points) OVER of_job AS all_calibration_points,
        count(*) OVER of_job AS partitions
    FROM beside
    WINDOW of_job AS (PARTITION BY beside.classifier, beside.job, beside.day, beside.calibration, beside.method)
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
    -- Key of the job.
    job,
    -- Day on which the job was requested, in UTC.
    day,
    -- The snapshot that decided.
    calibration,
    -- Method of calibration, venn-admit or venn-abers.
    method,
    -- Number of the bin of q, from 0; null if the points have no q.
    bin,
    -- Least q of the bin.
    bin_edges[bin + 1] AS q_from,
    -- Greatest q of the bin.
    CASE WHEN bin IS NOT NULL THEN coalesce(bin_edges[bin + 2] - 1, neighbour_count) END AS q_to,
    -- Quartile of d among the calibration points, 1 to 4; null if the points have no d.
    d_quartile,
    -- Rows of the job that were decided on.
    points,
    -- Share of the job's rows; null without decisions.
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
    calibration_correct / nullif(calibration_points, 0)::double precision AS calibration_accuracy,
    -- Population stability index of the job, the same in each of its rows: the sum of (p - c) ln(p / c) over
    -- partitions, where p and c are the shares of the job and of the snapshot with half a point more in each partition;
    -- null without decisions.
    CASE
        WHEN all_points > 0
            THEN sum((smoothed - calibration_smoothed) * ln(smoothed / calibration_smoothed)) OVER (
                PARTITION BY classifier, job, day, calibration, method
            )
    END AS stability_index
FROM shared;
