-- The calibration points of every snapshot, current or not, by split, bin of q, quartile of d and label. Quartiles are
-- those of all points of the snapshot. A d that equals a quartile is above it.
CREATE VIEW report.partition_v2 AS
SELECT
    -- Name of the classifier.
    point.classifier,
    -- The snapshot.
    point.calibration,
    -- Method of calibration, venn-admit or venn-abers.
    point.method,
    -- mc or vp.
    point.split,
    -- Number of the bin of q, from 0.
    point.bin,
    -- Least q of the bin.
    min(point.bin_edges[point.bin + 1]) AS q_from,
    -- Greatest q of the bin.
    min(coalesce(point.bin_edges[point.bin + 2] - 1, point.neighbour_count)) AS q_to,
    -- Quartile of d, 1 to 4; null if the points have no d.
    width_bucket(point.d, spread.quartiles) + 1 AS d_quartile,
    -- Least d of the quartile; 0 for the first.
    min(
        CASE
            WHEN point.d < spread.quartiles[1] THEN 0
            ELSE spread.quartiles[width_bucket(point.d, spread.quartiles)]
        END
    ) AS d_from,
    -- First d beyond the quartile; infinity for the last.
    min(
        CASE
            WHEN point.d IS NOT NULL
                THEN coalesce(spread.quartiles[width_bucket(point.d, spread.quartiles) + 1], 'Infinity')
        END
    ) AS d_below,
    -- Number of the true class.
    point.label,
    -- Name of the true class.
    min(point.class_names[point.label + 1]) AS class_name,
    -- Points.
    count(*) AS points,
    -- Points whose prediction is right.
    count(*) FILTER (WHERE point.predicted = point.label) AS correct,
    -- Share of the points whose prediction is right.
    avg((point.predicted = point.label)::integer)::double precision AS accuracy,
    -- Mean score of the points: 1 - pi of the label for venn-admit, the score of the prediction for venn-abers.
    avg(point.score) AS mean_score,
    -- The paper's threshold: the alpha-quantile of pi of the label for venn-admit, of the score for venn-abers.
    percentile_cont(point.alpha::double precision) WITHIN GROUP (
        ORDER BY CASE WHEN point.method = 'venn-admit' THEN 1 - point.score ELSE point.score END
    ) AS threshold,
    -- Points of vp with an ADMIT set of one class; null in mc and unless the method is venn-admit.
    CASE
        WHEN point.split = 'vp' AND point.method = 'venn-admit' THEN count(*) FILTER (WHERE point.is_singleton)
    END AS singletons,
    -- Share of the points with an ADMIT set of one class; null where singletons is.
    avg(point.is_singleton::integer)::double precision AS share_singleton,
    -- Share of the singletons whose prediction is right; null without any.
    (avg((point.predicted = point.label)::integer) FILTER (WHERE point.is_singleton))::double precision
        AS share_correct_of_singletons,
    -- Points that the snapshot admits by plain probabilities: of vp for venn-admit, each left out of its own category;
    -- of any split for venn-abers, though its bounds rest on the very points of mc. Null for mc of venn-admit.
    CASE
        WHEN point.split = 'vp' OR point.method = 'venn-abers' THEN count(*) FILTER (WHERE point.is_admitted)
    END AS admitted
FROM venn_admit.judged_point_v1 AS point
LEFT JOIN venn_admit.snapshot_quartiles AS spread ON point.calibration = spread.calibration_id
-- What tells rows apart comes first, which is what sorting compares first.
GROUP BY
    point.label,
    point.bin,
    d_quartile,
    point.split,
    point.calibration,
    point.alpha,
    point.method,
    point.classifier;
