-- The training exemplars nearest to the point of every decision, nearest first.
CREATE VIEW report.neighbour_v1 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- The decision.
    decision.id AS decision_id,
    -- The snapshot that decided.
    decision.calibration_id AS calibration,
    -- The user's id of the exemplar that was decided on.
    point.external_id,
    -- 1 for the nearest, up to K.
    near.position::integer AS rank,
    -- The user's id of the training exemplar.
    training.external_id AS neighbour,
    -- Euclidean distance to it.
    near.distance,
    -- Number of its class, as it is labelled now.
    training.label,
    -- Name of its class.
    classifier.class_names[training.label + 1] AS label_class,
    -- Number of the class that the network predicts for it.
    training.network_predicted AS predicted,
    -- Name of that class.
    classifier.class_names[training.network_predicted + 1] AS predicted_class,
    -- Whether both are the class that the KNN predicts for the point: q counts how many in a row are.
    training.label = own.predicted AND training.network_predicted = own.predicted AS is_match,
    -- Document that it is part of; null if it stands alone.
    training.document_id,
    -- Other values that the user supplied with it.
    training.attributes,
    -- Whether the list is still the one that was decided on; otherwise the training exemplars changed since.
    stored.support_version <= decision.support_version AS is_as_decided
FROM venn_admit.decision AS decision
INNER JOIN venn_admit.calibration AS calibration ON decision.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
INNER JOIN venn_admit.exemplar AS point ON decision.exemplar_id = point.id
INNER JOIN venn_admit.neighbours AS stored ON decision.exemplar_id = stored.exemplar_id
CROSS JOIN
    LATERAL (
        SELECT
            listed.id,
            listed.distance,
            listed.position
        FROM unnest(stored.neighbour_ids, stored.distances) WITH ORDINALITY AS listed (id, distance, position)
    ) AS near
CROSS JOIN
    -- The KNN's prediction, also where the network's was decided on; ties go to the lower class.
    LATERAL (
        SELECT array_position(decision.logits, max(each.logit)) - 1 AS predicted
        FROM unnest(decision.logits) AS each (logit)
    ) AS own
INNER JOIN venn_admit.exemplar AS training ON near.id = training.id;
