-- name: next_number
-- Take the next number of a calibrator, for rows that are about to be written, and return it with the method.
UPDATE calibrator
SET last_number = last_number + 1
WHERE id = :calibrator_id
RETURNING
    last_number AS number,
    method;

-- name: retire_calibration
-- Retire the current snapshot, before another is made current.
UPDATE calibration
SET state = 'retired'
WHERE
    calibrator_id = :calibrator_id
    AND state = 'current';

-- name: make_current
-- Make a snapshot the current one.
UPDATE calibration
SET state = 'current'
WHERE id = :calibration_id;

-- name: add_calibration
-- Insert a new snapshot, which is not current yet.
INSERT INTO calibration (
    calibrator_id,
    number,
    knn_parameters_id,
    mc_count,
    vp_count,
    reason,
    state
)
VALUES (
    :calibrator_id,
    :number,
    :knn_parameters_id,
    :mc_count,
    :vp_count,
    :reason,
    'withheld'
)
RETURNING id;

-- name: add_band_radius
-- Store the radius of a snapshot's bands.
INSERT INTO band_radius (calibration_id, s_hat, omega)
VALUES (:calibration_id, :s_hat, :omega);

-- name: add_quartiles
-- Store the quartiles of d of a snapshot.
INSERT INTO snapshot_quartiles (calibration_id, quartiles)
VALUES (:calibration_id, :quartiles);

-- name: copy_quartiles
-- Store the quartiles of d of a snapshot with the points of one before.
INSERT INTO snapshot_quartiles (calibration_id, quartiles)
SELECT
    :calibration_id ::bigint AS calibration_id,
    quartiles
FROM snapshot_quartiles
WHERE calibration_id = :before;

-- name: latest_calibration
-- The current snapshot of the calibrator in use.
SELECT calibration_id AS id
FROM calibration_in_use_v1
WHERE classifier_id = :classifier_id;

-- name: latest_key
-- What the current snapshot of the calibrator in use is known by, with the classifier's name, extractor and version of
-- training exemplars, which may change later, and which of some keys are valid, once for each of some exemplars as
-- their users know them, in the given order, or once if there are none of them; no row if there is no snapshot, or no
-- such classifier.
WITH latest AS (
    SELECT
        calibration.id,
        calibration.revision,
        classifier.name,
        classifier.extractor,
        classifier.support_revision
    FROM classifier
    INNER JOIN calibrator ON classifier.id = calibrator.classifier_id
    INNER JOIN calibration ON calibrator.id = calibration.calibrator_id
    WHERE
        -- As `classifiers.classifier_by_name` finds it.
        classifier.id = (
            SELECT named.id
            FROM classifier AS named
            WHERE
                named.name = :name
                OR (
                    named.is_current
                    AND named.name = :shared_name
                    AND named.generation = :generation
                )
            ORDER BY (named.name = :name) DESC
            LIMIT 1
        )
        AND classifier.deleting_since IS NULL
        AND calibration.state = 'current'
    ORDER BY calibrator.chosen_at DESC, calibrator.id DESC
    LIMIT 1
)

SELECT
    latest.id,
    latest.revision,
    latest.name,
    latest.extractor,
    latest.support_revision,
    array(
        SELECT api_key.id
        FROM api_key
        WHERE
            api_key.id = any(:key_ids ::bigint[])
            AND api_key.revoked_at IS NULL
            AND (api_key.expires_at IS NULL OR api_key.expires_at > now())
    ) AS valid_keys,
    described.external_id,
    described.network_predicted,
    described.attributes
FROM latest
LEFT JOIN (
    SELECT
        wanted.position,
        exemplar.external_id,
        exemplar.network_predicted,
        exemplar.attributes
    FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
    INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
) AS described ON TRUE
ORDER BY described.position;

-- name: calibration_by_id
-- A snapshot and its setting.
SELECT
    calibration.id,
    calibration.number,
    calibration.revision,
    calibration.knn_parameters_id,
    band_radius.s_hat,
    band_radius.omega,
    calibration.mc_count,
    calibration.vp_count,
    calibrator.id AS calibrator_id,
    calibrator.classifier_id,
    to_jsonb(calibrator)::text AS settings
FROM calibration
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
LEFT JOIN band_radius ON calibration.id = band_radius.calibration_id
WHERE calibration.id = :calibration_id;

-- name: hold_calibration
-- Keep a snapshot from being deleted before the transaction ends; no row if it is gone.
SELECT id
FROM calibration
WHERE id = :calibration_id
FOR KEY SHARE;

-- name: calibrations
-- The newest snapshots of a classifier, the newest before a given one, or a given one, under any setting.
SELECT
    calibration.id AS calibration,
    calibrator.id AS setting,
    calibration.number,
    calibration.created_at,
    calibration.reason,
    calibration.mc_count AS mc,
    calibration.vp_count AS vp,
    calibration.state,
    calibration.state = 'current' AS is_current
FROM calibration
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
WHERE
    calibrator.classifier_id = :classifier_id
    AND (CAST(:before AS bigint) IS NULL OR calibration.id < :before)
    AND (CAST(:calibration_id AS bigint) IS NULL OR calibration.id = :calibration_id)
ORDER BY calibration.id DESC
LIMIT :row_limit;

-- name: snapshot_points
-- One split of a snapshot, as it was, in the order of its bands. Without vectors, q is -1 and d is NaN here; without
-- logits there is a NaN.
SELECT
    point.exemplar_id,
    point.label,
    point.predicted,
    coalesce(point.match_count, -1) AS match_count,
    coalesce(point.distance, 'NaN') AS distance,
    point.score,
    coalesce(point.is_singleton, FALSE) AS is_singleton,
    coalesce(point.logits, ARRAY['NaN'::float8]) AS logits
FROM calibration_point AS point
WHERE
    point.calibrator_id = :calibrator_id
    AND point.split = :split
    AND is_in_snapshot_v1(:number, point.valid_from, point.valid_until)
ORDER BY point.bin, point.distance, point.exemplar_id;

-- name: export_calibration
-- The rows that `export --what calibration` writes.
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
    AND is_in_snapshot_v1(:number, point.valid_from, point.valid_until)
ORDER BY point.exemplar_id;

-- name: lock_old_calibrations
-- Lock the oldest snapshots before the newest ones that no decision and no job refers to, except for jobs that were
-- removed; not the current one and those that somebody reads or is about to refer to.
SELECT id
FROM calibration
WHERE
    calibrator_id = :calibrator_id
    AND state <> 'current'
    AND number < (
        SELECT min(newest.number)
        FROM (
            SELECT number
            FROM calibration
            WHERE calibrator_id = :calibrator_id
            ORDER BY number DESC
            LIMIT :keep
        ) AS newest
    )
    -- The newest chain goes on from the newest one that it certified.
    AND id IS DISTINCT FROM (
        SELECT max(certificate.calibration_id)
        FROM certificate
        WHERE
            certificate.chain_id = (
                SELECT max(chain.id)
                FROM standing_chain AS chain
                WHERE chain.calibrator_id = :calibrator_id
            )
    )
    -- Each is looked up, however many decisions and jobs there are.
    AND (
        SELECT decision.calibration_id
        FROM decision
        WHERE decision.calibration_id = calibration.id
        ORDER BY decision.calibration_id
        LIMIT 1
    ) IS NULL
    AND (
        SELECT job.calibration_id
        FROM job
        WHERE
            job.calibration_id = calibration.id
            AND job.removed_at IS NULL
        ORDER BY job.calibration_id
        LIMIT 1
    ) IS NULL
ORDER BY number
LIMIT :most
FOR UPDATE SKIP LOCKED;

-- name: lock_withheld
-- Lock the snapshots before a given one that were never put in use, except those that somebody reads.
SELECT id
FROM calibration
WHERE
    calibrator_id = :calibrator_id
    AND state = 'withheld'
    AND id < :calibration_id
ORDER BY id
FOR UPDATE SKIP LOCKED;

-- name: delete_calibrations
-- Delete those of the given snapshots that no decision and no job refers to, except for jobs that were removed.
DELETE FROM calibration
WHERE
    id = ANY(:calibration_ids ::bigint[])
    AND NOT EXISTS (
        SELECT 1
        FROM decision
        WHERE decision.calibration_id = calibration.id
    )
    AND NOT EXISTS (
        SELECT 1
        FROM job
        WHERE
            job.calibration_id = calibration.id
            AND job.removed_at IS NULL
    );
