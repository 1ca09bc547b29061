-- name: add_cascade
-- Store a cascade without stages.
INSERT INTO classifier_cascade (name)
VALUES (:name)
RETURNING id;

-- name: add_stage
-- Store a stage of a cascade.
INSERT INTO cascade_stage (cascade_id, place, classifier_id, cost)
VALUES (:cascade_id, :place, :classifier_id, :cost);

-- name: cascades
-- Every cascade, by name.
SELECT
    id,
    name,
    created_at
FROM classifier_cascade
ORDER BY name;

-- name: cascade
-- A cascade; no row if there is none of this name.
SELECT
    id,
    name,
    created_at
FROM classifier_cascade
WHERE name = :name;

-- name: stages
-- The stages of a cascade, in order.
SELECT
    place,
    classifier_id,
    cost
FROM cascade_stage
WHERE cascade_id = :cascade_id
ORDER BY place;

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
WHERE id = :cascade_id;

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

-- name: newest_calibration
-- The newest certificate of a cascade, how many there are, and the confidence that all of them hold together; no row if
-- it has none.
SELECT
    id,
    created_at,
    document,
    count(*) OVER () AS looks,
    greatest(0, 1 - sum(1 - confidence) OVER ()) AS joint_confidence
FROM cascade_calibration
WHERE cascade_id = :cascade_id
ORDER BY id DESC
LIMIT 1;

-- name: calibration_stages
-- What the stages serve of the evidence of a certificate, in order.
SELECT
    place,
    calibration_id,
    score,
    knn_parameters_id,
    thresholds,
    reached,
    served,
    served_right
FROM cascade_calibration_stage
WHERE cascade_calibration_id = :cascade_calibration_id
ORDER BY place;
