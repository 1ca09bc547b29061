-- How often each calibration is right about what it admits, by either method: plain and weighted, with and without
-- q = K, on all labelled decisions, per true class, per predicted class, and over all. A verdict says what the 95 %
-- interval of the share right proves: 1 - alpha is met, it is missed, or this sample cannot tell. Left out are points
-- that the calibration was made with: its own points, training data, and points of knn that had a label when its KNN
-- was fitted. A point whose label came later counts, whichever split the label has put it into. Labels that advance the
-- certificate that stands, by which the point was decided on, are no check of it, and are counted apart.
--
-- Points of one document are right or wrong together. Where documents hold several, the verdict's interval takes each
-- document for one point, which makes it wider than that of `evaluate`, which resamples documents.
CREATE VIEW report.selective_accuracy_v4 AS
WITH counted AS (
    SELECT
        classifier.name AS classifier,
        classifier.class_names,
        calibrator.method,
        calibrator.alpha,
        calibration.id AS calibration,
        tally.*
    FROM venn_admit.calibration AS calibration
    INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
    INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
    CROSS JOIN
        -- By what differs within a calibration: sorting by names as well took most of the time.
        LATERAL (
            SELECT
                decided.weighted,
                variant.q_equals_k,
                counted_by.per,
                counted_by.class,
                count(*) FILTER (WHERE NOT decided.is_certifying) AS points,
                count(*) FILTER (WHERE decided.is_certifying) AS certifying,
                count(*) FILTER (WHERE counts.is_admitted) AS admitted,
                count(*) FILTER (WHERE counts.is_admitted AND decided.predicted = decided.label) AS correct,
                -- Without those of points that do not count, which would be sorted too.
                count(DISTINCT CASE WHEN counts.is_admitted THEN decided.document_key END) AS documents
            FROM venn_admit.decided_point_v2 AS decided
            CROSS JOIN (VALUES (FALSE), (TRUE)) AS variant (q_equals_k)
            CROSS JOIN
                LATERAL (
                    SELECT
                        decided.decision IS NOT NULL
                        AND NOT decided.is_certifying
                        AND (NOT variant.q_equals_k OR decided.q = decided.neighbour_count) AS is_admitted
                ) AS counts
            CROSS JOIN
                -- Not GROUPING SETS, past which older servers hand down no condition.
                LATERAL (
                    VALUES ('true', decided.label), ('predicted', decided.predicted), ('all', NULL)
                ) AS counted_by (per, class)
            WHERE
                decided.calibration = calibration.id
                AND decided.is_evaluable
                AND (
                    NOT decided.require_full_match
                    OR (
                        variant.q_equals_k
                        -- A decision made with q = K alone counts where there is none without.
                        AND NOT EXISTS (
                            SELECT 1
                            FROM venn_admit.decision AS unrestricted
                            WHERE
                                unrestricted.calibration_id = decided.calibration
                                AND unrestricted.exemplar_id = decided.exemplar_id
                                AND unrestricted.weighted = decided.weighted
                                AND NOT unrestricted.require_full_match
                        )
                    )
                )
            GROUP BY counted_by.class, decided.weighted, variant.q_equals_k, counted_by.per
        ) AS tally
),

shared AS (
    SELECT
        counted.*,
        -- Each grouping counts every point once.
        sum(counted.points) OVER (
            PARTITION BY
                counted.classifier,
                counted.calibration,
                counted.weighted,
                counted.q_equals_k,
                counted.per
        ) AS all_points,
        counted.correct::double precision / nullif(counted.admitted, 0) AS share_correct,
        (1 - counted.alpha)::double precision AS target,
        least(counted.admitted, counted.documents)::double precision AS trials,
        -- The square of the normal distribution's 0.975-quantile, for Wilson's interval.
        3.8414588206941236::double precision AS z_squared
    FROM counted
),

judged AS (
    SELECT
        *,
        (share_correct * trials + z_squared / 2) / (trials + z_squared) AS middle,
        sqrt(z_squared * (share_correct * (1 - share_correct) * trials + z_squared / 4)) / (trials + z_squared) AS reach
    FROM shared
)

SELECT
    -- Name of the classifier.
    classifier,
    -- The snapshot that decided.
    calibration,
    -- Method of calibration, venn-admit or venn-abers.
    method,
    -- Whether the decisions are up-weighted by the localizer.
    weighted,
    -- Whether only predictions with q = K count as admitted.
    q_equals_k,
    -- What a row counts by: true, the true class; predicted, the predicted class; or all.
    per,
    -- Number of the class; null over all.
    class,
    -- Name of the class; null over all.
    class_names[class + 1] AS class_name,
    -- Admitted points whose prediction is the label.
    correct,
    -- Admitted points.
    admitted,
    -- Labelled points that were decided on, admitted or not, of all classes, without those that it was made with.
    all_points::bigint AS points,
    -- Labelled points of this row that are left out because their labels advance the certificate that stands.
    certifying,
    -- Documents that the admitted points are part of.
    documents,
    -- Share of the admitted points that is right.
    share_correct,
    -- Share of all points that is admitted in this row.
    admitted / nullif(all_points, 0)::double precision AS share_admitted,
    -- Lower end of Wilson's 95 percent interval of the share correct; it takes points for independent.
    (
        share_correct * admitted + z_squared / 2
        - sqrt(z_squared * (share_correct * (1 - share_correct) * admitted + z_squared / 4))
    ) / (admitted + z_squared) AS wilson_low,
    -- Upper end of it.
    (
        share_correct * admitted + z_squared / 2
        + sqrt(z_squared * (share_correct * (1 - share_correct) * admitted + z_squared / 4))
    ) / (admitted + z_squared) AS wilson_high,
    -- The share that is promised, 1 - alpha.
    target,
    -- Whether the target is met, missed, or this sample cannot_tell.
    CASE
        WHEN trials < 10 THEN 'cannot_tell'
        WHEN middle - reach >= target THEN 'met'
        WHEN middle + reach < target THEN 'missed'
        ELSE 'cannot_tell'
    END AS verdict
FROM judged;
