-- How often network and KNN are right on the calibration points of every snapshot, current or not, without rejection:
-- per class and over all, with F0.5. The localizer is left out, because its distances are not stored.
CREATE VIEW report.point_accuracy_v1 AS
WITH predicted AS NOT MATERIALIZED (
    SELECT
        point.classifier,
        point.class_names,
        point.calibration,
        point.method,
        said.predictor,
        said.class AS predicted,
        point.label
    FROM venn_admit.snapshot_point_v1 AS point
    INNER JOIN venn_admit.exemplar AS exemplar ON point.exemplar_id = exemplar.id
    CROSS JOIN
        LATERAL (
            VALUES
            ('network', exemplar.network_predicted),
            ('KNN', CASE WHEN point.method = 'venn-admit' THEN point.predicted END)
        ) AS said (predictor, class)
    WHERE said.class IS NOT NULL
),

counted AS (
    SELECT
        predicted.classifier,
        predicted.class_names,
        predicted.calibration,
        predicted.method,
        predicted.predictor,
        counted_by.class,
        count(*) FILTER (WHERE counted_by.side = 'label') AS points,
        count(*) FILTER (WHERE counted_by.side = 'label' AND predicted.predicted = predicted.label) AS correct,
        count(*) FILTER (WHERE counted_by.side = 'prediction') AS predictions
    FROM predicted
    CROSS JOIN
        LATERAL (
            VALUES
            ('label', predicted.label), ('prediction', predicted.predicted), ('label', NULL), ('prediction', NULL)
        ) AS counted_by (side, class)
    GROUP BY
        predicted.classifier,
        predicted.class_names,
        predicted.calibration,
        predicted.method,
        predicted.predictor,
        counted_by.class
),

measured AS (
    SELECT
        *,
        -- 1.25 P R / (0.25 P + R), where P = correct / predictions and R = correct / points.
        1.25 * correct / (0.25 * points + predictions)::double precision AS f_half
    FROM counted
)

SELECT
    -- Name of the classifier.
    classifier,
    -- The snapshot.
    calibration,
    -- Method of calibration, venn-admit or venn-abers.
    method,
    -- network, or KNN, which snapshots by venn-abers do not hold.
    predictor,
    -- Number of the class; null over all.
    class,
    -- Name of the class; null over all.
    class_names[class + 1] AS class_name,
    -- Points of mc and vp whose label is the class.
    points,
    -- Those of them whose prediction is right.
    correct,
    -- Points whose prediction is the class, right or wrong.
    predictions,
    -- Share of the points whose prediction is right; null without points.
    correct / nullif(points, 0)::double precision AS accuracy,
    -- F0.5 of the class against the rest; over all, its mean over the classes that occur.
    CASE
        WHEN class IS NULL
            THEN avg(f_half) FILTER (WHERE class IS NOT NULL) OVER (PARTITION BY classifier, calibration, predictor)
        ELSE f_half
    END AS f_half
FROM measured;
