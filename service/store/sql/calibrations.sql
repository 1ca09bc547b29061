-- name: ensure_calibrator
-- A setting, new or known.
INSERT INTO calibrator (classifier_id, settings_digest, alpha, delta, kappa, bin_edges, thresholds)
VALUES (:classifier_id, :settings_digest, :alpha, :delta, :kappa, :bin_edges, :thresholds)
-- An update that changes nothing, so that the known row is returned too.
ON CONFLICT (classifier_id, settings_digest) DO UPDATE SET kappa = excluded.kappa
RETURNING id;

-- name: lock_calibration
-- One recalibration of a classifier at a time.
SELECT pg_advisory_xact_lock(2, :classifier_id);

-- name: latest_number
-- The number of the newest snapshot; 0 before the first.
SELECT coalesce(max(number), 0) AS number
FROM calibration
WHERE calibrator_id = :calibrator_id;

-- name: retire_calibration
-- The current snapshot gives way to the next.
UPDATE calibration
SET state = 'retired'
WHERE
    calibrator_id = :calibrator_id
    AND state = 'current';

-- name: add_calibration
-- A new current snapshot.
INSERT INTO calibration (
    calibrator_id,
    number,
    knn_parameters_id,
    s_hat,
    omega,
    mc_count,
    vp_count,
    reason,
    state
)
VALUES (
    :calibrator_id,
    :number,
    :knn_parameters_id,
    :s_hat,
    :omega,
    :mc_count,
    :vp_count,
    :reason,
    'current'
)
RETURNING id;

-- name: create_incoming_points
-- Where the rows of the next snapshot gather before they are compared.
CREATE TEMPORARY TABLE incoming_point (
    exemplar_id bigint NOT NULL,
    split text NOT NULL,
    label integer NOT NULL,
    predicted integer NOT NULL,
    match_count integer NOT NULL,
    bin integer NOT NULL,
    distance double precision NOT NULL,
    score double precision NOT NULL,
    admit_set bit varying
) ON COMMIT DROP;

-- name: analyze_incoming_points
-- Without statistics the comparison would be planned for a small table.
ANALYZE incoming_point;

-- name: close_changed_points
-- Open rows that the next snapshot no longer holds as they are.
UPDATE calibration_point AS point
SET valid_until = :number
WHERE
    point.calibrator_id = :calibrator_id
    AND point.valid_until IS NULL
    AND NOT EXISTS (
        SELECT 1
        FROM incoming_point AS incoming
        WHERE
            incoming.exemplar_id = point.exemplar_id
            AND incoming.split = point.split
            AND incoming.label = point.label
            AND incoming.predicted = point.predicted
            AND incoming.match_count = point.match_count
            AND incoming.bin = point.bin
            AND incoming.distance = point.distance
            AND incoming.score = point.score
            AND incoming.admit_set IS NOT DISTINCT FROM point.admit_set
    );

-- name: open_changed_points
-- Rows of the next snapshot that are new or differ from those before.
INSERT INTO calibration_point (
    calibrator_id,
    exemplar_id,
    valid_from,
    split,
    label,
    predicted,
    match_count,
    bin,
    distance,
    score,
    admit_set
)
SELECT
    :calibrator_id,
    incoming.exemplar_id,
    :number,
    incoming.split,
    incoming.label,
    incoming.predicted,
    incoming.match_count,
    incoming.bin,
    incoming.distance,
    incoming.score,
    incoming.admit_set
FROM incoming_point AS incoming
WHERE
    NOT EXISTS (
        SELECT 1
        FROM calibration_point AS point
        WHERE
            point.calibrator_id = :calibrator_id
            AND point.exemplar_id = incoming.exemplar_id
            AND point.valid_until IS NULL
    )
ORDER BY incoming.split, incoming.bin, incoming.distance;

-- name: latest_calibration
-- The snapshot that was made last, under whichever setting.
SELECT
    calibration.id,
    calibration.number,
    calibration.revision,
    calibration.knn_parameters_id,
    calibration.s_hat,
    calibration.omega,
    calibration.mc_count,
    calibration.vp_count,
    calibrator.id AS calibrator_id,
    calibrator.classifier_id,
    calibrator.alpha,
    calibrator.delta,
    calibrator.kappa,
    calibrator.bin_edges,
    calibrator.thresholds
FROM calibration
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
WHERE
    calibrator.classifier_id = :classifier_id
    AND calibration.state = 'current'
ORDER BY calibration.id DESC
LIMIT 1;

-- name: calibration_by_id
-- One snapshot.
SELECT
    calibration.id,
    calibration.number,
    calibration.revision,
    calibration.knn_parameters_id,
    calibration.s_hat,
    calibration.omega,
    calibration.mc_count,
    calibration.vp_count,
    calibrator.id AS calibrator_id,
    calibrator.classifier_id,
    calibrator.alpha,
    calibrator.delta,
    calibrator.kappa,
    calibrator.bin_edges,
    calibrator.thresholds
FROM calibration
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
WHERE calibration.id = :calibration_id;

-- name: snapshot_points
-- One split of a snapshot, as it was, in the order of its bands.
SELECT
    exemplar_id,
    label,
    predicted,
    match_count,
    distance,
    score,
    coalesce(is_singleton, FALSE) AS is_singleton
FROM calibration_point
WHERE
    calibrator_id = :calibrator_id
    AND split = :split
    AND valid_from <= :number
    AND (valid_until IS NULL OR valid_until > :number)
ORDER BY bin, distance, exemplar_id;

-- name: export_calibration
-- What `export --what calibration` writes.
SELECT
    exemplar.external_id,
    point.split,
    point.label,
    point.predicted,
    point.match_count,
    point.distance,
    point.score,
    point.admit_set
FROM calibration_point AS point
INNER JOIN exemplar ON point.exemplar_id = exemplar.id
WHERE
    point.calibrator_id = :calibrator_id
    AND point.valid_from <= :number
    AND (point.valid_until IS NULL OR point.valid_until > :number)
ORDER BY point.exemplar_id;

-- name: vacuum_points
-- Mark pages all-visible, without which an index-only scan visits the table, and refresh the statistics;
-- not waited for where somebody else is at it already.
VACUUM (ANALYZE, SKIP_LOCKED) calibration_point;
