-- How often Venn-ADMIT is right about what it admits: each of its four variants on all labelled decisions of each
-- calibration, per true class, per predicted class, and over all.
CREATE VIEW report.selective_accuracy_v1 AS
WITH labelled_decision AS (
    SELECT
        classifier.name AS classifier,
        classifier.class_names,
        classifier.neighbour_count,
        calibrator.alpha,
        decision.calibration_id,
        decision.exemplar_id,
        decision.weighted,
        decision.require_full_match,
        decision.predicted,
        decision.match_count,
        decision.decision,
        exemplar.label,
        coalesce(exemplar.document_id, exemplar.external_id) AS document_key
    FROM venn_admit.decision AS decision
    INNER JOIN venn_admit.exemplar AS exemplar ON decision.exemplar_id = exemplar.id
    INNER JOIN venn_admit.classifier AS classifier ON exemplar.classifier_id = classifier.id
    INNER JOIN venn_admit.calibration AS calibration ON decision.calibration_id = calibration.id
    INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
    WHERE
        exemplar.label IS NOT NULL
        -- What a snapshot was made with says nothing about it.
        AND exemplar.split NOT IN ('train', 'knn')
        AND NOT EXISTS (
            SELECT 1
            FROM venn_admit.calibration_point AS point
            WHERE
                point.calibrator_id = calibration.calibrator_id
                AND point.exemplar_id = decision.exemplar_id
                AND point.valid_from <= calibration.number
                AND (point.valid_until IS NULL OR point.valid_until > calibration.number)
        )
),

variant AS (
    SELECT
        labelled_decision.*,
        FALSE AS q_equals_k,
        labelled_decision.decision IS NOT NULL AS is_admitted
    FROM labelled_decision
    WHERE NOT labelled_decision.require_full_match
    UNION ALL
    SELECT
        labelled_decision.*,
        TRUE AS q_equals_k,
        labelled_decision.decision IS NOT NULL
        AND labelled_decision.match_count = labelled_decision.neighbour_count AS is_admitted
    FROM labelled_decision
    WHERE
        NOT labelled_decision.require_full_match
        -- A decision made with q = K alone counts where there is none without.
        OR NOT EXISTS (
            SELECT 1
            FROM venn_admit.decision AS unrestricted
            WHERE
                unrestricted.calibration_id = labelled_decision.calibration_id
                AND unrestricted.exemplar_id = labelled_decision.exemplar_id
                AND unrestricted.weighted = labelled_decision.weighted
                AND NOT unrestricted.require_full_match
        )
),

counted AS (
    SELECT
        classifier,
        class_names,
        alpha,
        calibration_id,
        weighted,
        q_equals_k,
        CASE grouping(label, predicted) WHEN 1 THEN 'true' WHEN 2 THEN 'predicted' ELSE 'all' END AS per,
        coalesce(label, predicted) AS class,
        count(*) AS points,
        count(*) FILTER (WHERE is_admitted) AS admitted,
        count(*) FILTER (WHERE is_admitted AND predicted = label) AS correct,
        count(DISTINCT document_key) FILTER (WHERE is_admitted) AS documents
    FROM variant
    GROUP BY
        GROUPING SETS (
            (classifier, class_names, alpha, calibration_id, weighted, q_equals_k, label),
            (classifier, class_names, alpha, calibration_id, weighted, q_equals_k, predicted),
            (classifier, class_names, alpha, calibration_id, weighted, q_equals_k)
        )
),

shared AS (
    SELECT
        counted.*,
        -- Each grouping counts every point once.
        sum(counted.points) OVER (
            PARTITION BY
                counted.classifier,
                counted.calibration_id,
                counted.weighted,
                counted.q_equals_k,
                counted.per
        ) AS all_points,
        counted.correct::double precision / nullif(counted.admitted, 0) AS share_correct,
        -- The square of the normal distribution's 0.975-quantile, for Wilson's interval.
        3.8414588206941236::double precision AS z_squared
    FROM counted
)

SELECT
    -- What users call the classifier.
    classifier,
    -- The snapshot that decided.
    calibration_id AS calibration,
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
    -- Labelled points that were decided on, admitted or not, of all classes.
    all_points::bigint AS points,
    -- Documents that the admitted points are part of.
    documents,
    -- Share of the admitted points that is right.
    share_correct,
    -- Share of all points that is admitted in this row.
    admitted / all_points::double precision AS share_admitted,
    -- Lower end of Wilson's 95 percent interval of the share correct. It takes points for independent; if documents
    -- hold several, see `venn-admit evaluate`.
    (
        share_correct * admitted + z_squared / 2
        - sqrt(z_squared * (share_correct * (1 - share_correct) * admitted + z_squared / 4))
    ) / (admitted + z_squared) AS wilson_low,
    -- Upper end of the same interval.
    (
        share_correct * admitted + z_squared / 2
        + sqrt(z_squared * (share_correct * (1 - share_correct) * admitted + z_squared / 4))
    ) / (admitted + z_squared) AS wilson_high,
    -- few: under 10 admitted points or documents; otherwise whether 1 - alpha are right: well or under.
    CASE
        WHEN least(admitted, documents) < 10 THEN 'few'
        WHEN correct >= (1 - alpha) * admitted THEN 'well'
        ELSE 'under'
    END AS verdict
FROM shared;
