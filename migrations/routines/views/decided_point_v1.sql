-- Every decision with what its setting says of the point: the base of the views on decisions.
CREATE VIEW venn_admit.decided_point_v1 AS
SELECT
    classifier.id AS classifier_id,
    classifier.name AS classifier,
    classifier.class_names,
    classifier.neighbour_count,
    decision.calibration_id AS calibration,
    calibration.number,
    calibration.calibrator_id,
    calibrator.method,
    calibrator.alpha,
    calibrator.kappa,
    calibrator.thresholds,
    calibrator.bin_edges,
    decision.id AS decision_id,
    decision.exemplar_id,
    decision.weighted,
    decision.require_full_match,
    (decision.created_at AT TIME ZONE 'UTC')::date AS day,
    decision.predicted,
    decision.decision,
    decision.reason,
    decision.logits,
    decision.match_count AS q,
    -- Without vectors there is one bin.
    coalesce(width_bucket(decision.match_count, calibrator.bin_edges) - 1, 0) AS bin,
    decision.distance AS d,
    exemplar.split,
    exemplar.label,
    coalesce(exemplar.document_id, exemplar.external_id) AS document_key,
    -- Whether its label is known and says something about the snapshot, which was not made with it.
    exemplar.label IS NOT NULL
    AND exemplar.split <> 'train'
    -- A label that joined knn later had no part in the parameters of the snapshot.
    AND NOT (
        exemplar.split = 'knn'
        AND EXISTS (
            SELECT 1
            FROM venn_admit.label_event AS event
            INNER JOIN venn_admit.knn_parameters AS parameters ON event.created_at <= parameters.created_at
            WHERE
                event.exemplar_id = decision.exemplar_id
                AND parameters.id = calibration.knn_parameters_id
        )
    )
    AND NOT EXISTS (
        SELECT 1
        FROM venn_admit.calibration_point AS point
        WHERE
            point.calibrator_id = calibration.calibrator_id
            AND point.exemplar_id = decision.exemplar_id
            AND venn_admit.is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)
    ) AS is_evaluable
FROM venn_admit.decision AS decision
INNER JOIN venn_admit.calibration AS calibration ON decision.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
-- Every decision has an exemplar. An outer join is left out by a query that asks for nothing of it.
LEFT JOIN venn_admit.exemplar AS exemplar
    ON
        decision.exemplar_id = exemplar.id
        -- So it is, and a query for one classifier need not look at the exemplars of others.
        AND classifier.id = exemplar.classifier_id;
