-- The coarse table of partitions in the paper, of every snapshot: q = 0, q = K and any q, by d below its median, from
-- it on and any d, per true class and over all; once for the calibration points, and once for scored traffic whose
-- label is known and which the snapshot was not made with. The median is that of the points counted. A partition
-- without points has no row.
CREATE VIEW report.partition_summary_v1 AS
WITH judged AS NOT MATERIALIZED (
    SELECT
        'calibration' AS source,
        classifier,
        class_names,
        neighbour_count,
        calibration,
        method,
        alpha,
        NULL::boolean AS weighted,
        NULL::boolean AS require_full_match,
        label,
        predicted,
        q,
        d,
        CASE WHEN method = 'venn-admit' THEN 1 - score ELSE score END AS probability,
        NULL::boolean AS is_admitted
    FROM venn_admit.snapshot_point_v1
    UNION ALL
    SELECT
        'scored' AS source,
        decided.classifier,
        decided.class_names,
        decided.neighbour_count,
        decided.calibration,
        decided.method,
        decided.alpha,
        decided.weighted,
        decided.require_full_match,
        decided.label,
        decided.predicted,
        decided.q,
        decided.d,
        coalesce(abers.score, own.probability) AS probability,
        decided.decision IS NOT NULL AS is_admitted
    FROM venn_admit.decided_point_v1 AS decided
    LEFT JOIN venn_admit.abers_evidence AS abers ON decided.decision_id = abers.decision_id
    CROSS JOIN
        -- The softmax of the label. A difference is cut off where its exponential is no number any more.
        LATERAL (
            SELECT
                max(exp(greatest(of_class.logit - highest.logit, -700)))
                FILTER (WHERE of_class.number = decided.label + 1)
                / sum(exp(greatest(of_class.logit - highest.logit, -700))) AS probability
            FROM unnest(decided.logits) WITH ORDINALITY AS of_class (logit, number)
            CROSS JOIN (SELECT max(each.logit) AS logit FROM unnest(decided.logits) AS each (logit)) AS highest
        ) AS own
    WHERE decided.is_evaluable
),

spread AS NOT MATERIALIZED (
    SELECT
        source,
        classifier,
        calibration,
        weighted,
        require_full_match,
        count(*) AS points,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY d) AS median
    FROM judged
    GROUP BY source, classifier, calibration, weighted, require_full_match
)

SELECT
    -- calibration, or scored.
    judged.source,
    -- Name of the classifier.
    judged.classifier,
    -- The snapshot.
    judged.calibration,
    -- Method of calibration, venn-admit or venn-abers.
    judged.method,
    -- Whether the decisions are up-weighted by the localizer; null for calibration points.
    judged.weighted,
    -- Whether a point with q < K was rejected; null for calibration points.
    judged.require_full_match,
    -- q = 0, q = K, or any q.
    match.partition AS q,
    -- d < median, d >= median, or any d.
    near.partition AS d,
    -- The median of d.
    spread.median,
    -- Number of the true class; null over all.
    counted_by.class,
    -- Name of the true class; null over all.
    min(judged.class_names[counted_by.class + 1]) AS class_name,
    -- Points.
    count(*) AS points,
    -- Share of all points of the source.
    count(*) / spread.points::double precision AS share,
    -- Points whose prediction is right.
    count(*) FILTER (WHERE judged.predicted = judged.label) AS correct,
    -- Share of the points whose prediction is right.
    avg((judged.predicted = judged.label)::integer)::double precision AS accuracy,
    -- The alpha-quantile of pi of the label for venn-admit, of the score of the prediction for venn-abers.
    percentile_cont(judged.alpha::double precision) WITHIN GROUP (ORDER BY judged.probability) AS threshold,
    -- Points that were admitted; null for calibration points.
    CASE WHEN judged.source = 'scored' THEN count(*) FILTER (WHERE judged.is_admitted) END AS admitted
FROM judged
INNER JOIN spread
    ON
        judged.source = spread.source
        AND judged.classifier = spread.classifier
        AND judged.calibration = spread.calibration
        AND judged.weighted IS NOT DISTINCT FROM spread.weighted
        AND judged.require_full_match IS NOT DISTINCT FROM spread.require_full_match
CROSS JOIN
    LATERAL (
        VALUES ('any q'), (CASE judged.q WHEN 0 THEN 'q = 0' WHEN judged.neighbour_count THEN 'q = K' END)
    ) AS match (partition)
CROSS JOIN
    LATERAL (
        VALUES ('any d'), (CASE WHEN judged.d < spread.median THEN 'd < median' ELSE 'd >= median' END)
    ) AS near (partition)
CROSS JOIN LATERAL (VALUES (judged.label), (NULL)) AS counted_by (class)
WHERE
    match.partition IS NOT NULL
    AND (near.partition = 'any d' OR judged.d IS NOT NULL)
-- What tells rows apart comes first, which is what sorting compares first.
GROUP BY
    counted_by.class,
    judged.calibration,
    judged.weighted,
    judged.require_full_match,
    spread.median,
    spread.points,
    judged.alpha,
    match.partition,
    near.partition,
    judged.source,
    judged.method,
    judged.classifier;
