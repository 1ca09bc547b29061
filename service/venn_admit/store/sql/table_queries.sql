-- name: partition_map
-- The partition map: calibration points and recent traffic by q and by quartile of d.
-- The page leaves out traffic that was decided on before training exemplars changed, and all but the newest 10,000
-- rows.
WITH edge AS (
    SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY d) AS quartiles
    FROM report.calibration_point_v1
    WHERE calibration = :calibration
),

calibrated AS (
    SELECT
        width_bucket(q, :match_edges ::integer[]) AS q_group,
        d_quartile,
        count(*) AS points,
        count(*) FILTER (WHERE is_right) AS correct,
        count(*) FILTER (WHERE is_admitted) AS admitted
    FROM report.calibration_point_v1
    WHERE
        calibration = :calibration
        AND split = :split
    GROUP BY q_group, d_quartile
),

recent AS (
    SELECT
        width_bucket(decided.q, :match_edges ::integer[]) AS q_group,
        width_bucket(decided.d, edge.quartiles) + 1 AS d_quartile,
        count(*) AS traffic
    FROM report.recent_decision_v1 AS decided
    CROSS JOIN edge
    INNER JOIN report.calibration_v2 AS made ON decided.knn_parameters = made.knn_parameters
    WHERE
        decided.classifier = :classifier
        AND made.calibration = :calibration
    GROUP BY q_group, d_quartile
)

SELECT
    coalesce(calibrated.q_group, recent.q_group) AS q_group,
    coalesce(calibrated.d_quartile, recent.d_quartile) AS d_quartile,
    coalesce(calibrated.points, 0) AS points,
    calibrated.correct / calibrated.points::double precision AS share_right,
    calibrated.admitted / calibrated.points::double precision AS share_admitted,
    coalesce(recent.traffic, 0) AS traffic,
    coalesce(recent.traffic, 0) / nullif(sum(recent.traffic) OVER (), 0)::double precision AS share_of_traffic
FROM calibrated
FULL JOIN recent
    ON
        calibrated.q_group = recent.q_group
        AND calibrated.d_quartile = recent.d_quartile
ORDER BY q_group, d_quartile;

-- name: class_coverage
-- Calibration points by predicted class, by true class and over all: the share that is admitted, and the share right of
-- it. For calibrations by Venn-Abers without a policy, the page decides on each point of mc by the bounds of the other
-- folds, and this query by the bounds of the calibration itself. The page computes the intervals.
SELECT
    counted_by.per,
    counted_by.class,
    min(counted_by.class_name) AS class_name,
    count(*) AS points,
    avg(point.is_admitted::integer)::double precision AS share_admitted,
    (avg(point.is_right::integer) FILTER (WHERE point.is_admitted))::double precision AS share_right
FROM report.calibration_point_v1 AS point
CROSS JOIN
    LATERAL (
        VALUES
        ('predicted', point.predicted, point.predicted_class),
        ('true', point.label, point.class_name),
        ('all', NULL, NULL)
    ) AS counted_by (per, class, class_name)
WHERE
    point.calibration = :calibration
    AND point.split = :split
GROUP BY counted_by.per, counted_by.class
ORDER BY array_position(ARRAY['predicted', 'true', 'all'], counted_by.per), counted_by.class;

-- name: history
-- What the newest calibrations changed, up to this one, and the share of its points that each would admit.
SELECT
    change.calibration,
    change.created_at,
    change.reason,
    change.method,
    change.state,
    change.mc_count,
    change.vp_count,
    change.previous,
    change.arrived,
    change.relabelled,
    change.gone,
    change.moved,
    change.other_parameters,
    change.other_training,
    change.other_settings,
    judged.admitted
FROM report.calibration_change_v1 AS change
LEFT JOIN
    LATERAL (
        SELECT avg(point.is_admitted::integer)::double precision AS admitted
        FROM report.calibration_point_v1 AS point
        WHERE
            point.calibration = change.calibration
            AND point.split = CASE change.method WHEN 'venn-admit' THEN 'vp' ELSE 'mc' END
    ) AS judged
    ON change.mc_count + change.vp_count <= 50000
WHERE
    change.classifier = :classifier
    AND change.calibration <= :calibration
ORDER BY change.calibration DESC
LIMIT 6;

-- name: lamps
-- The lamps of the monitor: those that are lit and harmful, then the other lit ones, then the nearest to it.
SELECT
    lamp,
    kind,
    class_name,
    "group",
    matching_neighbours,
    labels,
    share_correct,
    lower_bound,
    largest_e_value,
    needed,
    is_lit,
    is_harmful
FROM report.monitor_v2
WHERE
    classifier = :classifier
    AND setting = :setting
ORDER BY
    is_lit AND is_harmful DESC,
    is_lit DESC,
    largest_e_value / needed DESC NULLS LAST,
    lamp ASC,
    kind ASC,
    class_name ASC,
    "group" ASC;

-- name: stored
-- Exemplars by split, and those of them with a label.
SELECT
    split,
    exemplars,
    labelled
FROM report.exemplar_count_v1
WHERE classifier = :classifier
ORDER BY array_position(ARRAY['train', 'knn', 'mc', 'vp', 'scored'], split);

-- name: labels
-- Labels outside of the training data, by how they were selected, and how many of these exemplars calibrate. The newest
-- event since the label was last taken back says it; a selected correction changes only the label.
WITH event_by_point AS (
    SELECT
        *,
        max(event) FILTER (WHERE label IS NULL) OVER (PARTITION BY external_id) AS retraction
    FROM report.label_v1
    WHERE
        classifier = :classifier
        AND split <> 'train'
),

given_label AS (
    SELECT DISTINCT ON (external_id)
        classifier,
        external_id,
        split,
        selection,
        created_at
    FROM event_by_point
    WHERE event > coalesce(retraction, 0)
    ORDER BY external_id ASC, selection = 'selected' ASC, event DESC
)

SELECT
    given.selection,
    draw.rule,
    count(*) AS exemplars,
    count(*) FILTER (WHERE given.split <> 'scored') AS calibrating,
    min(draw.probability) AS least_probability,
    max(draw.probability) AS largest_probability,
    min(given.created_at) AS first,
    max(given.created_at) AS newest
FROM given_label AS given
LEFT JOIN report.audit_draw_v1 AS draw
    ON
        given.classifier = draw.classifier
        AND given.external_id = draw.external_id
        AND given.selection = 'review'
GROUP BY
    given.selection,
    draw.rule
ORDER BY
    given.selection,
    draw.rule;

-- name: certificates
-- Every certificate that looked at labels outside of the training data, in any generation, the newest first.
SELECT
    look.calibration,
    look.setting,
    look.classifier,
    look.created_at,
    look.confidence,
    look.looks,
    look.joint_confidence
FROM report.certificate_look_v2 AS look
INNER JOIN report.classifier_v1 AS known ON look.classifier = known.classifier
WHERE
    known.current_generation = (
        SELECT given.current_generation FROM report.classifier_v1 AS given
        WHERE given.classifier = :classifier
    )
ORDER BY look.looks DESC;

-- name: partitions_by_q
-- Calibration points by bin of q and true class. The page counts which of their bands are usable.
SELECT
    made.bin_edges[width_bucket(point.q, made.bin_edges)] AS q_from,
    point.label,
    min(point.class_name) AS class_name,
    count(*) FILTER (WHERE point.split = 'mc') AS mc,
    count(*) FILTER (WHERE point.split = 'vp') AS vp,
    count(*) FILTER (WHERE point.is_singleton) AS singletons,
    count(*) FILTER (WHERE point.is_singleton AND point.is_right) AS singletons_right
FROM report.calibration_point_v1 AS point
INNER JOIN report.calibration_v2 AS made ON point.calibration = made.calibration
WHERE point.calibration = :calibration
GROUP BY q_from, point.label
ORDER BY q_from, point.label;

-- name: partitions_by_d
-- Calibration points by quartile of d and true class. The page counts which of their bands are usable.
SELECT
    d_quartile,
    label,
    min(class_name) AS class_name,
    count(*) FILTER (WHERE split = 'mc') AS mc,
    count(*) FILTER (WHERE split = 'vp') AS vp,
    count(*) FILTER (WHERE is_singleton) AS singletons,
    count(*) FILTER (WHERE is_singleton AND is_right) AS singletons_right
FROM report.calibration_point_v1
WHERE calibration = :calibration
GROUP BY d_quartile, label
ORDER BY d_quartile, label;

-- name: cells
-- What each predicted class, and bin of q if there are several, can admit. The page counts which points of mc would be.
SELECT
    bin,
    predicted_class,
    points,
    correct,
    threshold,
    largest,
    admits_from
FROM report.cell_v1
WHERE calibration = :calibration
ORDER BY bin, predicted;

-- name: cell_budget
-- The right points that cells lack to admit anything: the fewest that, on top of some of the highest scores, would
-- bring the lower probability to the threshold. The page estimates how many random labels that takes.
WITH counted AS (
    SELECT
        cell.bin,
        cell.predicted,
        cell.predicted_class,
        cell.points,
        cell.correct,
        cell.largest,
        cell.threshold,
        count(*) OVER from_above AS points_above,
        count(*) FILTER (WHERE point.is_right) OVER from_above AS right_above
    FROM report.cell_v1 AS cell
    INNER JOIN report.calibration_v2 AS made ON cell.calibration = made.calibration
    INNER JOIN report.calibration_point_v1 AS point
        ON
            cell.calibration = point.calibration
            AND cell.predicted = point.predicted
            AND cell.bin = coalesce(width_bucket(point.q, made.bin_edges) - 1, 0)
    WHERE
        cell.calibration = :calibration
        AND cell.largest < cell.threshold
        AND point.split = 'mc'
    WINDOW from_above AS (PARTITION BY cell.bin, cell.predicted ORDER BY point.score DESC)
)

SELECT
    bin,
    predicted_class,
    points,
    correct,
    largest,
    threshold,
    ceil(
        round(
            least(
                min((threshold::numeric * (points_above + 1) - right_above) / nullif(1 - threshold::numeric, 0)),
                threshold::numeric / nullif(1 - threshold::numeric, 0)
            ),
            6
        )
    ) AS lacking
FROM counted
GROUP BY bin, predicted, predicted_class, points, correct, largest, threshold
ORDER BY bin, predicted;

-- name: band_budget
-- The labels that bands below kappa lack, of the points that this calibration itself decided on. The page counts all
-- recent traffic, as this calibration would decide on it.
SELECT
    q_from,
    class_name,
    points,
    lacking,
    labels_of_all
FROM report.label_budget_v1
WHERE calibration = :calibration
ORDER BY q_from, class;

-- name: quantiles
-- Quantiles of the calibration data and of recent traffic. The page compares the distributions; it takes the scores of
-- recent traffic from this calibration, whichever decided, and leaves out traffic that was decided on before training
-- exemplars changed, and all but the newest 10,000 rows.
SELECT
    'calibration data' AS of_what,
    percentile_disc(ARRAY[0.1, 0.25, 0.5, 0.75, 0.9]) WITHIN GROUP (ORDER BY q) AS q,
    percentile_disc(ARRAY[0.1, 0.25, 0.5, 0.75, 0.9]) WITHIN GROUP (ORDER BY d) AS d,
    percentile_disc(ARRAY[0.1, 0.25, 0.5, 0.75, 0.9]) WITHIN GROUP (ORDER BY score) AS score,
    count(*) AS points
FROM report.calibration_point_v1
WHERE
    calibration = :calibration
    AND split = :split
UNION ALL
SELECT
    'recent traffic' AS of_what,
    percentile_disc(ARRAY[0.1, 0.25, 0.5, 0.75, 0.9]) WITHIN GROUP (ORDER BY decided.q) AS q,
    percentile_disc(ARRAY[0.1, 0.25, 0.5, 0.75, 0.9]) WITHIN GROUP (ORDER BY decided.d) AS d,
    percentile_disc(ARRAY[0.1, 0.25, 0.5, 0.75, 0.9]) WITHIN GROUP (ORDER BY decided.score) AS score,
    count(*) AS points
FROM report.recent_decision_v1 AS decided
INNER JOIN report.calibration_v2 AS made ON decided.knn_parameters IS NOT DISTINCT FROM made.knn_parameters
WHERE
    decided.classifier = :classifier
    AND made.calibration = :calibration;

-- name: compared_shares
-- How many points are compared. The page decides on each of them once more, as this calibration would, and leaves out
-- traffic that was decided on before training exemplars changed, and all but the newest 10,000 rows.
SELECT
    (
        SELECT count(*)
        FROM report.calibration_point_v1
        WHERE
            calibration = :calibration
            AND split = :split
    ) AS calibration_points,
    count(*) AS recent_points
FROM report.recent_decision_v1 AS decided
INNER JOIN report.calibration_v2 AS made ON decided.knn_parameters IS NOT DISTINCT FROM made.knn_parameters
WHERE
    decided.classifier = :classifier
    AND made.calibration = :calibration;

-- name: outcomes
-- What was decided on recent traffic, by the options of the decisions: points, and their share of those options. The
-- page leaves out all but the newest 10,000 rows.
SELECT
    weighted,
    require_full_match,
    coalesce(reason, 'admitted') AS outcome,
    count(*) AS points,
    (count(*) / sum(count(*)) OVER (PARTITION BY weighted, require_full_match))::double precision AS share
FROM report.recent_decision_v1
WHERE classifier = :classifier
GROUP BY weighted, require_full_match, reason
ORDER BY weighted DESC, require_full_match DESC, reason ASC NULLS FIRST;

-- name: discrepancies
-- How often the predictions of KNN and network differ, as things are now.
SELECT
    found.is_scored,
    found.points,
    found.differing,
    found.differing / found.points::double precision AS share
FROM report.discrepancy_v1 AS found
INNER JOIN report.calibration_v2 AS made ON found.knn_parameters = made.knn_parameters
WHERE
    found.classifier = :classifier
    AND made.calibration = :calibration
ORDER BY found.is_scored;

-- name: policy_classes
-- The classes that something is promised for, or for which it came closest: the last policy of each chain that passed,
-- or the first that failed.
SELECT DISTINCT ON (tested.kind, tested.class, tested."group")
    tested.kind,
    tested.class_name,
    tested."group",
    tested.has_passed,
    tested.class_admitted / tested.points::double precision AS admitted,
    tested.class_right / nullif(tested.class_admitted, 0)::double precision AS share_right,
    tested.p_value
FROM report.policy_test_v2 AS tested
WHERE tested.calibration = :calibration
ORDER BY tested.kind ASC, tested.class ASC, tested."group" ASC, tested.has_passed DESC, tested.admitted DESC;

-- name: policy_tests
-- The policies that were tested, in order, chain by chain.
SELECT
    chain,
    chain_name,
    step,
    admitted,
    min(class_right / nullif(class_admitted, 0)::double precision) AS least_right,
    max(p_value) AS p_value,
    level,
    has_passed
FROM report.policy_test_v2
WHERE calibration = :calibration
GROUP BY chain, chain_name, step, admitted, level, has_passed
ORDER BY chain, step;

-- name: parts_by_q
-- Calibration data and recent traffic by q. The page says what this calibration would admit of either, and leaves out
-- traffic that was decided on before training exemplars changed, and all but the newest 10,000 rows.
WITH calibrated AS (
    SELECT
        width_bucket(point.q, :part_edges ::integer[]) AS part,
        count(*) AS points,
        count(*) FILTER (WHERE point.is_right) AS correct
    FROM report.calibration_point_v1 AS point
    WHERE
        point.calibration = :calibration
        AND point.split = 'mc'
    GROUP BY part
),

recent AS (
    SELECT
        width_bucket(decided.q, :part_edges ::integer[]) AS part,
        count(*) AS points
    FROM report.recent_decision_v1 AS decided
    INNER JOIN report.calibration_v2 AS made ON decided.knn_parameters = made.knn_parameters
    WHERE
        decided.classifier = :classifier
        AND made.calibration = :calibration
    GROUP BY part
)

SELECT
    coalesce(calibrated.part, recent.part) AS part,
    coalesce(calibrated.points, 0) / (sum(calibrated.points) OVER ())::double precision AS share_of_mc,
    coalesce(recent.points, 0) / (sum(recent.points) OVER ())::double precision AS share_of_recent,
    calibrated.correct / calibrated.points::double precision AS share_right
FROM calibrated
FULL JOIN recent ON calibrated.part = recent.part
ORDER BY part;

-- name: parts_by_d
-- Calibration data and recent traffic by d, cut at its quartiles over mc. The page says what this calibration would
-- admit of either, and leaves out traffic that was decided on before training exemplars changed, and all but the newest
-- 10,000 rows.
WITH edge AS (
    SELECT percentile_disc(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY d) AS quartiles
    FROM report.calibration_point_v1
    WHERE
        calibration = :calibration
        AND split = 'mc'
),

calibrated AS (
    SELECT
        width_bucket(point.d, edge.quartiles) AS part,
        count(*) AS points,
        count(*) FILTER (WHERE point.is_right) AS correct
    FROM report.calibration_point_v1 AS point CROSS JOIN edge
    WHERE
        point.calibration = :calibration
        AND point.split = 'mc'
    GROUP BY part
),

recent AS (
    SELECT
        width_bucket(decided.d, edge.quartiles) AS part,
        count(*) AS points
    FROM report.recent_decision_v1 AS decided CROSS JOIN edge
    INNER JOIN report.calibration_v2 AS made ON decided.knn_parameters = made.knn_parameters
    WHERE
        decided.classifier = :classifier
        AND made.calibration = :calibration
    GROUP BY part
)

SELECT
    coalesce(calibrated.part, recent.part) AS part,
    coalesce(calibrated.points, 0) / (sum(calibrated.points) OVER ())::double precision AS share_of_mc,
    coalesce(recent.points, 0) / (sum(recent.points) OVER ())::double precision AS share_of_recent,
    calibrated.correct / calibrated.points::double precision AS share_right
FROM calibrated
FULL JOIN recent ON calibrated.part = recent.part
ORDER BY part;

-- name: parts_by_score
-- Points of mc by score within each predicted class, cut at its quartiles. The page scores recent traffic as this
-- calibration would, and says what it would admit.
WITH edge AS (
    SELECT
        predicted,
        percentile_disc(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY score) AS quartiles
    FROM report.calibration_point_v1
    WHERE
        calibration = :calibration
        AND split = 'mc'
    GROUP BY predicted
)

SELECT
    point.predicted,
    point.predicted_class,
    width_bucket(point.score, edge.quartiles) AS part,
    count(*) / (sum(count(*)) OVER (PARTITION BY point.predicted))::double precision AS share_of_mc,
    avg(point.is_right::integer)::double precision AS share_right
FROM report.calibration_point_v1 AS point
INNER JOIN edge ON point.predicted = edge.predicted
WHERE
    point.calibration = :calibration
    AND point.split = 'mc'
GROUP BY point.predicted, point.predicted_class, part
ORDER BY point.predicted, part;
