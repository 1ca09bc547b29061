-- What flips between two snapshots of a classifier: exemplars that both decided on with the same options, to another
-- outcome; and partitions, bins of q with a true class, in which one admits calibration points and the other none. The
-- cause is parameters or training data if what the decision rests on changed with the KNN's parameters, or without. If
-- it did not, the calibration points or the setting did: the cause is threshold if the settings differ, unless they do
-- so in the thresholds alone and the probabilities changed too; new labels if calibration points came, left or were
-- relabelled; and parameters or training data if they are the same, and only what the KNN says of them changed.
CREATE FUNCTION report.snapshot_diff_v1(a bigint, b bigint)
RETURNS TABLE (
    -- decision, or partition.
    kind text,
    -- The user's id of the exemplar; null for a partition.
    external_id text,
    -- Whether the decisions are up-weighted by the localizer; null for a partition.
    weighted boolean,
    -- Whether a point with q < K was rejected; null for a partition.
    require_full_match boolean,
    -- Least q of the bin; of the exemplar's under b.
    q_from integer,
    -- Number of the class: the one that b predicts, or the true class of a partition.
    class integer,
    -- Name of that class.
    class_name text,
    -- The outcome under a: admitted as a class, or the reason of the rejection; of a partition, points admitted.
    outcome_a text,
    -- The outcome under b.
    outcome_b text,
    -- parameters, training data, threshold or new labels.
    cause text
)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $routine$
    WITH snapshots AS (
        SELECT
            first.id AS first_id,
            second.id AS second_id,
            first.number AS first_number,
            second.number AS second_number,
            first.calibrator_id AS first_calibrator_id,
            second.calibrator_id AS second_calibrator_id,
            first.knn_parameters_id <> second.knn_parameters_id AS other_parameters,
            first.calibrator_id = second.calibrator_id AS same_setting,
            (of_first.method, of_first.alpha, of_first.bin_edges)
            IS NOT DISTINCT FROM (of_second.method, of_second.alpha, of_second.bin_edges)
            AND (of_first.delta, of_first.kappa, of_first.score)
            IS NOT DISTINCT FROM (of_second.delta, of_second.kappa, of_second.score) AS same_evidence,
            of_first.method = of_second.method AS same_method,
            of_second.bin_edges,
            classifier.class_names
        FROM venn_admit.calibration AS first
        INNER JOIN venn_admit.calibration AS second ON second.id = snapshot_diff_v1.b
        INNER JOIN venn_admit.calibrator AS of_first ON first.calibrator_id = of_first.id
        INNER JOIN venn_admit.calibrator AS of_second ON second.calibrator_id = of_second.id
        INNER JOIN venn_admit.classifier AS classifier ON of_second.classifier_id = classifier.id
        WHERE
            first.id = snapshot_diff_v1.a
            AND of_first.classifier_id = of_second.classifier_id
    ),

    first_point AS (
        SELECT
            point.exemplar_id,
            point.split,
            point.label,
            point.match_count,
            point.distance
        FROM snapshots
        INNER JOIN venn_admit.calibration_point AS point ON snapshots.first_calibrator_id = point.calibrator_id
        WHERE venn_admit.is_in_snapshot_v1(snapshots.first_number, point.valid_from, point.valid_until)
    ),

    second_point AS (
        SELECT
            point.exemplar_id,
            point.split,
            point.label,
            point.match_count,
            point.distance
        FROM snapshots
        INNER JOIN venn_admit.calibration_point AS point ON snapshots.second_calibrator_id = point.calibrator_id
        WHERE venn_admit.is_in_snapshot_v1(snapshots.second_number, point.valid_from, point.valid_until)
    ),

    -- Which calibration points changed; those of vp are compared only if both methods keep them.
    points AS (
        SELECT
            coalesce(
                bool_or(
                    before.exemplar_id IS NULL
                    OR after.exemplar_id IS NULL
                    OR before.label <> after.label
                ) FILTER (WHERE 'mc' IN (before.split, after.split) OR snapshots.same_method),
                FALSE
            ) AS other_labels,
            coalesce(
                bool_or((before.match_count, before.distance) IS DISTINCT FROM (after.match_count, after.distance))
                FILTER (WHERE before.exemplar_id = after.exemplar_id),
                FALSE
            ) AS other_view
        FROM first_point AS before
        FULL JOIN second_point AS after ON before.exemplar_id = after.exemplar_id
        CROSS JOIN snapshots
    ),

    partitions AS (
        SELECT
            part.q_from,
            part.label,
            part.class_name,
            coalesce(sum(part.admitted) FILTER (WHERE part.calibration = snapshots.first_id), 0) AS admitted_a,
            coalesce(sum(part.admitted) FILTER (WHERE part.calibration = snapshots.second_id), 0) AS admitted_b
        FROM snapshots
        INNER JOIN report.partition_v2 AS part ON part.calibration IN (snapshots.first_id, snapshots.second_id)
        WHERE part.calibration IN (snapshot_diff_v1.a, snapshot_diff_v1.b)
        GROUP BY part.q_from, part.label, part.class_name
    )

    SELECT
        'decision',
        exemplar.external_id,
        after.weighted,
        after.require_full_match,
        snapshots.bin_edges[width_bucket(after.match_count, snapshots.bin_edges)],
        after.predicted,
        snapshots.class_names[after.predicted + 1],
        coalesce(before.reason, 'admitted as ' || snapshots.class_names[before.decision + 1]),
        coalesce(after.reason, 'admitted as ' || snapshots.class_names[after.decision + 1]),
        CASE
            -- A score of the network alone does not depend on the KNN.
            WHEN (before.logits, before.match_count, before.distance)
                IS DISTINCT FROM (after.logits, after.match_count, after.distance)
                AND (
                    score_before.score IS NULL
                    OR score_after.score IS NULL
                    OR score_before.score <> score_after.score
                    OR (
                        before.match_count <> after.match_count
                        AND (cardinality(snapshots.bin_edges) > 1 OR after.require_full_match)
                    )
                )
                THEN CASE WHEN snapshots.other_parameters THEN 'parameters' ELSE 'training data' END
            WHEN
                NOT snapshots.same_setting
                AND (
                    NOT snapshots.same_evidence
                    OR (before.lower, before.upper) IS NOT DISTINCT FROM (after.lower, after.upper)
                )
                THEN 'threshold'
            WHEN points.other_labels THEN 'new labels'
            WHEN snapshots.other_parameters THEN 'parameters'
            ELSE 'training data'
        END
    FROM snapshots
    CROSS JOIN points
    INNER JOIN venn_admit.decision AS before ON snapshots.first_id = before.calibration_id
    INNER JOIN venn_admit.decision AS after
        ON
            snapshots.second_id = after.calibration_id
            AND before.exemplar_id = after.exemplar_id
            AND before.weighted = after.weighted
            AND before.require_full_match = after.require_full_match
    INNER JOIN venn_admit.exemplar AS exemplar ON after.exemplar_id = exemplar.id
    LEFT JOIN venn_admit.abers_evidence AS score_before ON before.id = score_before.decision_id
    LEFT JOIN venn_admit.abers_evidence AS score_after ON after.id = score_after.decision_id
    WHERE (before.decision, before.reason) IS DISTINCT FROM (after.decision, after.reason)
    UNION ALL
    SELECT
        'partition',
        NULL,
        NULL,
        NULL,
        partitions.q_from,
        partitions.label,
        partitions.class_name,
        partitions.admitted_a || ' points admitted',
        partitions.admitted_b || ' points admitted',
        CASE
            WHEN snapshots.other_parameters THEN 'parameters'
            WHEN points.other_view THEN 'training data'
            WHEN snapshots.same_setting THEN 'new labels'
            ELSE 'threshold'
        END
    FROM snapshots
    CROSS JOIN points
    CROSS JOIN partitions
    WHERE (partitions.admitted_a > 0) <> (partitions.admitted_b > 0)
$routine$;
