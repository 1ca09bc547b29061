-- The calibration points of every snapshot, and whether it admits them by plain probabilities: the points of vp under
-- the method venn-admit, each left out of its own category, and all under venn-abers, by the certified policy if one
-- was asked for, with its groups. Null for mc of venn-admit.
CREATE VIEW venn_admit.judged_point_v1 AS
WITH counted AS (
    SELECT
        point.classifier_id,
        point.classifier,
        point.class_names,
        point.neighbour_count,
        point.calibration,
        point.number,
        point.calibrator_id,
        point.method,
        point.alpha,
        point.thresholds,
        point.bin_edges,
        point.exemplar_id,
        point.split,
        point.label,
        point.predicted,
        point.q,
        point.bin,
        point.d,
        point.score,
        point.is_singleton,
        place.side,
        sum(place.points) OVER band AS points_up_to,
        sum(place.correct) OVER band AS correct_up_to
    FROM venn_admit.snapshot_point_v1 AS point
    INNER JOIN venn_admit.band_radius AS radius ON point.calibration = radius.calibration_id
    CROSS JOIN
        -- The point itself, and the two ends of its band, to which points exactly there belong. A running count up to
        -- each end takes one sort, where counting every band would read each of its points.
        LATERAL (
            VALUES
            (point.d - radius.omega, -1, 0, 0),
            (point.d, 0, 1, (point.label = point.predicted)::integer),
            (point.d + radius.omega, 1, 0, 0)
        ) AS place (distance, side, points, correct)
    WHERE point.is_singleton
    WINDOW band AS (
        PARTITION BY point.calibration, point.bin, point.predicted, point.classifier
        ORDER BY place.distance, place.side
    )
),

measured AS (
    SELECT
        counted.*,
        sum(counted.side * counted.points_up_to) OVER of_point AS points_in_band,
        sum(counted.side * counted.correct_up_to) OVER of_point AS correct_in_band
    FROM counted
    WINDOW of_point AS (PARTITION BY counted.exemplar_id, counted.calibration, counted.classifier)
)

SELECT
    classifier_id,
    classifier,
    class_names,
    neighbour_count,
    calibration,
    number,
    calibrator_id,
    method,
    alpha,
    thresholds,
    bin_edges,
    exemplar_id,
    split,
    label,
    predicted,
    q,
    bin,
    d,
    score,
    is_singleton,
    (correct_in_band - (label = predicted)::integer)::double precision / points_in_band::double precision
    >= thresholds[predicted + 1]::double precision AS is_admitted
FROM measured
WHERE side = 0
UNION ALL
SELECT
    classifier_id,
    classifier,
    class_names,
    neighbour_count,
    calibration,
    number,
    calibrator_id,
    method,
    alpha,
    thresholds,
    bin_edges,
    exemplar_id,
    split,
    label,
    predicted,
    q,
    bin,
    d,
    score,
    is_singleton,
    CASE WHEN split = 'vp' THEN FALSE END AS is_admitted
FROM venn_admit.snapshot_point_v1
WHERE
    method = 'venn-admit'
    AND is_singleton IS NOT TRUE
UNION ALL
SELECT
    point.classifier_id,
    point.classifier,
    point.class_names,
    point.neighbour_count,
    point.calibration,
    point.number,
    point.calibrator_id,
    point.method,
    point.alpha,
    point.thresholds,
    point.bin_edges,
    point.exemplar_id,
    point.split,
    point.label,
    point.predicted,
    point.q,
    point.bin,
    point.d,
    point.score,
    point.is_singleton,
    -- The threshold is null if the policy never admits the class, or none is certified.
    coalesce(
        CASE WHEN certificate.bounded = 'score' THEN point.score ELSE coalesce(step.lower, 0) END >= CASE
            WHEN point.certify IS NULL THEN point.thresholds[point.predicted + 1]::double precision
            ELSE point.policy[point.predicted + 1]
        END,
        FALSE
    )
    -- A group has a threshold of its own, if the certificate was asked for groups.
    AND (
        certificate.groups IS NULL
        OR venn_admit.reaches_groups_v1(
            certificate.groups,
            point.predicted,
            point.score,
            (
                SELECT exemplar.attributes
                FROM venn_admit.exemplar AS exemplar
                WHERE exemplar.id = point.exemplar_id
            )
        )
    ) AS is_admitted
FROM venn_admit.snapshot_point_v1 AS point
LEFT JOIN venn_admit.certificate AS certificate ON point.calibration = certificate.calibration_id
LEFT JOIN
    LATERAL (
        SELECT found.lower
        FROM venn_admit.venn_abers_step AS found
        WHERE
            found.calibrator_id = point.calibrator_id
            AND found.cell = point.bin * cardinality(point.class_names) + point.predicted
            AND found.score <= point.score
            AND venn_admit.is_in_snapshot_v1(point.number, found.valid_from, found.valid_until)
        ORDER BY found.score DESC
        LIMIT 1
    ) AS step
    ON TRUE
WHERE point.method = 'venn-abers';
