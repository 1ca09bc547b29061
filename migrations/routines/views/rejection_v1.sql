-- The decisions by day, partition, predicted class and outcome: how many were admitted, and how many were rejected for
-- each reason.
CREATE VIEW report.rejection_v1 AS
SELECT
    -- Name of the classifier.
    decided.classifier,
    -- The snapshot that decided.
    decided.calibration,
    -- Method of calibration, venn-admit or venn-abers.
    decided.method,
    -- Whether the probabilities are up-weighted by the localizer.
    decided.weighted,
    -- Whether a point with q < K was rejected.
    decided.require_full_match,
    -- Day on which it was decided, in UTC.
    decided.day,
    -- Number of the bin of q, from 0; null if the points have no q.
    decided.bin,
    -- Least q of the bin.
    min(decided.bin_edges[decided.bin + 1]) AS q_from,
    -- Greatest q of the bin.
    min(
        CASE
            WHEN decided.bin IS NOT NULL
                THEN coalesce(decided.bin_edges[decided.bin + 2] - 1, decided.neighbour_count)
        END
    ) AS q_to,
    -- Quartile of d among the calibration points, 1 to 4; null if the points have no d.
    width_bucket(decided.d, spread.quartiles) + 1 AS d_quartile,
    -- Number of the predicted class.
    decided.predicted,
    -- Name of the predicted class.
    min(decided.class_names[decided.predicted + 1]) AS predicted_class,
    -- Why they were rejected; null if admitted.
    decided.reason,
    -- Decisions.
    count(*) AS points,
    -- Share of the decisions of the day, in all partitions, under the same snapshot and options.
    count(*) / (
        sum(count(*)) OVER (
            PARTITION BY
                decided.classifier,
                decided.calibration,
                decided.method,
                decided.weighted,
                decided.require_full_match,
                decided.day
        )
    )::double precision AS share
FROM venn_admit.decided_point_v1 AS decided
LEFT JOIN venn_admit.snapshot_quartiles AS spread ON decided.calibration = spread.calibration_id
GROUP BY
    decided.bin,
    d_quartile,
    decided.predicted,
    decided.calibration,
    decided.day,
    decided.weighted,
    decided.require_full_match,
    decided.reason,
    decided.method,
    decided.classifier;
