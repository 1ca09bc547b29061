-- What each snapshot of a classifier changed against the one before it that is still kept, whichever its setting.
-- Points of vp are compared if both snapshots have some.
CREATE VIEW venn_admit.snapshot_change_v1 AS
SELECT
    classifier.id AS classifier_id,
    classifier.name AS classifier,
    calibration.id AS calibration,
    calibration.created_at,
    calibration.reason,
    calibrator.method,
    calibrator.id AS setting,
    calibration.state,
    calibration.mc_count,
    calibration.vp_count,
    before.id AS previous,
    point.arrived,
    point.relabelled,
    point.gone,
    point.moved,
    coalesce(calibration.knn_parameters_id <> before.knn_parameters_id, FALSE) AS other_parameters,
    coalesce(calibration.knn_parameters_id = before.knn_parameters_id AND point.moved > 0, FALSE) AS other_training,
    CASE
        -- What the first snapshot was made under differs from nothing.
        WHEN asked.id IS NULL THEN ARRAY[]::text[]
        ELSE array_remove(
            ARRAY[
                CASE WHEN asked.method <> calibrator.method THEN 'method' END,
                CASE WHEN asked.alpha <> calibrator.alpha THEN 'alpha' END,
                CASE WHEN asked.thresholds <> calibrator.thresholds THEN 'thresholds' END,
                CASE WHEN asked.bin_edges <> calibrator.bin_edges THEN 'bins of q' END,
                -- What the other method does not know is no difference.
                CASE WHEN asked.kappa <> calibrator.kappa THEN 'kappa' END,
                CASE WHEN asked.delta <> calibrator.delta THEN 'delta' END,
                CASE
                    WHEN asked.method = calibrator.method AND asked.score IS DISTINCT FROM calibrator.score
                        THEN 'score'
                END,
                CASE
                    WHEN
                        (asked.certify, asked.confidence, asked.document_test)
                        IS DISTINCT FROM (calibrator.certify, calibrator.confidence, calibrator.document_test)
                        THEN 'certificate'
                END,
                -- Null stands for pointwise, as before there were others, and of flags for false.
                CASE
                    WHEN coalesce(asked.promise, 'pointwise') <> coalesce(calibrator.promise, 'pointwise')
                        THEN 'promise'
                END,
                CASE WHEN asked.loss IS DISTINCT FROM calibrator.loss THEN 'loss' END,
                CASE WHEN (asked.standing IS TRUE) <> (calibrator.standing IS TRUE) THEN 'standing' END,
                CASE WHEN (asked.family IS TRUE) <> (calibrator.family IS TRUE) THEN 'family' END,
                CASE
                    WHEN
                        (asked.class_shares, asked.class_shares_within, asked.class_shares_estimated IS TRUE)
                        IS DISTINCT FROM (
                            calibrator.class_shares,
                            calibrator.class_shares_within,
                            calibrator.class_shares_estimated IS TRUE
                        )
                        THEN 'class shares'
                END,
                CASE
                    WHEN
                        asked.method = calibrator.method
                        AND (asked.undivided IS TRUE) <> (calibrator.undivided IS TRUE)
                        THEN 'undivided'
                END
            ],
            NULL
        )
    END AS other_settings
FROM venn_admit.calibration AS calibration
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
LEFT JOIN
    LATERAL (
        SELECT
            earlier.id,
            earlier.number,
            earlier.calibrator_id,
            earlier.knn_parameters_id,
            earlier.vp_count
        FROM venn_admit.calibration AS earlier
        INNER JOIN venn_admit.calibrator AS of_earlier ON earlier.calibrator_id = of_earlier.id
        WHERE
            of_earlier.classifier_id = calibrator.classifier_id
            AND earlier.id < calibration.id
        ORDER BY earlier.id DESC
        LIMIT 1
    ) AS before
    ON TRUE
LEFT JOIN venn_admit.calibrator AS asked ON before.calibrator_id = asked.id
LEFT JOIN
    LATERAL (
        SELECT
            count(*) FILTER (WHERE was.exemplar_id IS NULL) AS arrived,
            count(*) FILTER (WHERE (was.label, was.split) <> (now.label, now.split)) AS relabelled,
            count(*) FILTER (WHERE now.exemplar_id IS NULL) AS gone,
            count(*) FILTER (
                WHERE
                was.exemplar_id = now.exemplar_id
                AND (was.match_count, was.distance) IS DISTINCT FROM (now.match_count, now.distance)
            ) AS moved
        FROM (
            SELECT
                held.exemplar_id,
                held.split,
                held.label,
                held.match_count,
                held.distance
            FROM venn_admit.calibration_point AS held
            WHERE
                held.calibrator_id = before.calibrator_id
                AND venn_admit.is_in_snapshot_v1(before.number, held.valid_from, held.valid_until)
                AND (held.split = 'mc' OR calibration.vp_count > 0)
        ) AS was
        FULL JOIN (
            SELECT
                held.exemplar_id,
                held.split,
                held.label,
                held.match_count,
                held.distance
            FROM venn_admit.calibration_point AS held
            WHERE
                held.calibrator_id = calibration.calibrator_id
                AND venn_admit.is_in_snapshot_v1(calibration.number, held.valid_from, held.valid_until)
                AND (held.split = 'mc' OR before.vp_count > 0)
        ) AS now
            ON was.exemplar_id = now.exemplar_id
    ) AS point
    ON before.id IS NOT NULL;
