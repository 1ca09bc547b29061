-- All columns of a classifier are asked for by `*` of a view alone: those of a versioned view do not change.
-- noqa: disable=AM04

-- name: add_cascade
-- Store a cascade without stages.
INSERT INTO classifier_cascade (name)
VALUES (:name)
RETURNING id;

-- name: add_stage
-- Store a stage of a cascade.
INSERT INTO cascade_stage (cascade_id, place, classifier_id, cost)
VALUES (:cascade_id, :place, :classifier_id, :cost);

-- name: stages
-- The stages of a cascade, or of all by name, each with its classifier and with what the newest certificate says of it;
-- no row if there is no cascade of this name.
SELECT
    cascade.id AS cascade_id,
    cascade.name AS cascade,
    cascade.created_at AS cascade_created_at,
    newest.id AS cascade_calibration_id,
    stage.place,
    stage.cost,
    certified.calibration_id,
    certified.score,
    certified.knn_parameters_id,
    certified.thresholds,
    certified.reached,
    certified.served,
    certified.served_right,
    classifier.*
FROM classifier_cascade AS cascade
INNER JOIN cascade_stage AS stage ON cascade.id = stage.cascade_id
LEFT JOIN classifier_row_v1 AS classifier ON stage.classifier_id = classifier.id
LEFT JOIN LATERAL (
    SELECT max(certificate.id) AS id
    FROM cascade_calibration AS certificate
    WHERE certificate.cascade_id = cascade.id
) AS newest ON TRUE
LEFT JOIN cascade_calibration_stage AS certified
    ON
        newest.id = certified.cascade_calibration_id
        AND stage.place = certified.place
WHERE CAST(:name AS text) IS NULL OR cascade.name = :name
ORDER BY cascade.name, stage.place;

-- name: of_classifiers
-- The first cascade that has one of these generations as a stage; no row if none has.
SELECT
    cascade.name,
    stage.classifier_id
FROM cascade_stage AS stage
INNER JOIN classifier_cascade AS cascade ON stage.cascade_id = cascade.id
WHERE stage.classifier_id = ANY(:classifier_ids ::integer[])
ORDER BY cascade.name
LIMIT 1;

-- name: delete_cascade
-- Delete a cascade with its stages and certificates.
DELETE FROM classifier_cascade
WHERE name = :name;

-- name: add_calibration
-- Store a certificate of a cascade.
INSERT INTO cascade_calibration (cascade_id, alpha, confidence, is_certified, points, document)
VALUES (:cascade_id, :alpha, :confidence, :is_certified, :points, CAST(:document AS jsonb))
RETURNING id;

-- name: add_calibration_stage
-- Store what a stage serves of the evidence of a certificate.
INSERT INTO cascade_calibration_stage (
    cascade_calibration_id,
    place,
    calibration_id,
    score,
    knn_parameters_id,
    thresholds,
    reached,
    served,
    served_right
)
VALUES (
    :cascade_calibration_id,
    :place,
    :calibration_id,
    :score,
    :knn_parameters_id,
    :thresholds ::double precision[],
    :reached,
    :served ::integer[],
    :served_right ::integer[]
);

-- name: certificates
-- Certificates in full, each with the number of those of its cascade, and the confidence that all of these hold together.
SELECT
    newest.id,
    newest.created_at,
    newest.document,
    looks.looks,
    looks.joint_confidence
FROM cascade_calibration AS newest
CROSS JOIN LATERAL (
    SELECT
        count(*) AS looks,
        greatest(0, 1 - sum(1 - certificate.confidence)) AS joint_confidence
    FROM cascade_calibration AS certificate
    WHERE certificate.cascade_id = newest.cascade_id
) AS looks
WHERE newest.id = ANY(:calibration_ids ::bigint[]);
