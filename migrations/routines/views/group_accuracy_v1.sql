-- What each calibration whose certificate was asked for groups admits of them, and how much of it is right: of all
-- decisions, without a requirement of q = K, by the values of each attribute. The labels that count are those of
-- selective_accuracy_v3. The interval takes points for independent.
CREATE VIEW report.group_accuracy_v1 AS
WITH counted AS (
    SELECT
        decided.classifier,
        decided.calibration,
        decided.alpha,
        asked.attribute,
        venn_admit.group_value_v1(exemplar.attributes -> asked.attribute) AS "group",
        count(*) AS decisions,
        count(*) FILTER (WHERE decided.decision IS NOT NULL) AS admitted,
        count(*) FILTER (WHERE decided.is_evaluable AND decided.decision IS NOT NULL) AS labelled,
        count(*) FILTER (WHERE decided.is_evaluable AND decided.decision = decided.label) AS correct
    FROM venn_admit.decided_point_v1 AS decided
    INNER JOIN venn_admit.calibrator AS calibrator ON decided.calibrator_id = calibrator.id
    INNER JOIN venn_admit.exemplar AS exemplar ON decided.exemplar_id = exemplar.id
    CROSS JOIN
        LATERAL (
            SELECT DISTINCT substring(kind.name FROM 'group:(.*)$') AS attribute
            FROM unnest(calibrator.certify) AS kind (name)
            WHERE kind.name LIKE '%group:%'
        ) AS asked
    WHERE NOT decided.require_full_match
    GROUP BY
        decided.classifier,
        decided.calibration,
        decided.alpha,
        asked.attribute,
        venn_admit.group_value_v1(exemplar.attributes -> asked.attribute)
),

shared AS (
    SELECT
        *,
        correct::double precision / nullif(labelled, 0) AS share_correct,
        -- The square of the normal distribution's 0.975-quantile, for Wilson's interval.
        3.8414588206941236::double precision AS z_squared
    FROM counted
)

SELECT
    -- Name of the classifier.
    classifier,
    -- The snapshot that decided.
    calibration,
    -- Name of the attribute.
    attribute,
    -- Its value; null for points that have none.
    "group",
    -- Points that were decided on.
    decisions,
    -- Those of them that are admitted.
    admitted,
    -- Share of the points that is admitted.
    admitted / decisions::double precision AS share_admitted,
    -- Admitted points whose label is known, and that the calibration was not made with.
    labelled,
    -- Those of them whose prediction is the label.
    correct,
    -- Share of the labelled admitted points that is right.
    share_correct,
    -- Lower end of Wilson's 95 percent interval of it.
    (
        share_correct * labelled + z_squared / 2
        - sqrt(z_squared * (share_correct * (1 - share_correct) * labelled + z_squared / 4))
    ) / (labelled + z_squared) AS wilson_low,
    -- Upper end of it.
    (
        share_correct * labelled + z_squared / 2
        + sqrt(z_squared * (share_correct * (1 - share_correct) * labelled + z_squared / 4))
    ) / (labelled + z_squared) AS wilson_high,
    -- The share that is promised, 1 - alpha.
    (1 - alpha)::double precision AS target
FROM shared;
