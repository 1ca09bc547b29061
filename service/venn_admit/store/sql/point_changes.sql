-- name: share
-- Keep the ledger of a classifier as it is until the transaction ends, for a snapshot that is about to take its view.
SELECT pg_advisory_xact_lock_shared(7, :classifier_id);

-- name: current_view
-- What the transaction sees, and the greatest key of a held-out exemplar of the classifier.
SELECT
    CAST(pg_current_snapshot() AS text) AS seen,
    coalesce(max(newest.id), 0) AS last_exemplar_id
FROM unnest(ARRAY['knn', 'mc', 'vp']) AS held_out (split)
CROSS JOIN
    LATERAL (
        SELECT max(exemplar.id) AS id
        FROM exemplar
        WHERE
            exemplar.classifier_id = :classifier_id
            AND exemplar.split = held_out.split
    ) AS newest;

-- name: view_of_open_points
-- What the open points of a calibrator were computed from, and the revision of their snapshot, if it was not deleted.
-- There is no row if that is unknown, or if something else holds now.
SELECT
    snapshot.seen,
    snapshot.last_exemplar_id,
    snapshot.number,
    calibration.revision
FROM snapshot_view AS snapshot
INNER JOIN calibrator ON snapshot.calibrator_id = calibrator.id
LEFT JOIN calibration
    ON
        snapshot.calibrator_id = calibration.calibrator_id
        AND snapshot.number = calibration.number
WHERE
    snapshot.calibrator_id = :calibrator_id
    AND snapshot.number = calibrator.last_number
    AND snapshot.knn_parameters_id = :knn_parameters_id
    AND snapshot.identity = :identity;

-- name: changed_since
-- The held-out points that arrived or changed after a view; a null among them if it may be any.
SELECT change.exemplar_id
FROM point_change AS change
WHERE
    change.classifier_id = :classifier_id
    AND change.transaction_id
    >= CAST(CAST(pg_snapshot_xmin(CAST(:seen AS pg_snapshot)) AS text) AS bigint)
    AND NOT pg_visible_in_snapshot(
        CAST(CAST(change.transaction_id AS text) AS xid8), CAST(:seen AS pg_snapshot)
    )
UNION
SELECT arrived.id
FROM unnest(ARRAY['knn', 'mc', 'vp']) AS held_out (split)
CROSS JOIN
    -- Each split is looked up by itself: what was scored meanwhile, and may be many times as much, is not read.
    LATERAL (
        SELECT exemplar.id
        FROM exemplar
        WHERE
            exemplar.classifier_id = :classifier_id
            AND exemplar.split = held_out.split
            AND exemplar.id > :last_exemplar_id
        ORDER BY exemplar.id
    ) AS arrived;

-- name: add_view
-- Store from which view the open points of a calibrator were computed.
INSERT INTO snapshot_view (calibrator_id, number, knn_parameters_id, seen, identity, last_exemplar_id)
SELECT
    id,
    last_number,
    :knn_parameters_id,
    :seen,
    :identity,
    :last_exemplar_id
FROM calibrator
WHERE id = :calibrator_id
ON CONFLICT (calibrator_id) DO UPDATE
    SET
        number = excluded.number,
        knn_parameters_id = excluded.knn_parameters_id,
        seen = excluded.seen,
        identity = excluded.identity,
        last_exemplar_id = excluded.last_exemplar_id;

-- name: add_changes
-- Leave points to the next snapshot, which this one could not hold.
INSERT INTO point_change (classifier_id, transaction_id, exemplar_id)
SELECT
    :classifier_id,
    CAST(CAST(pg_current_xact_id() AS text) AS bigint),
    left_out.exemplar_id
FROM unnest(:exemplar_ids ::bigint[]) AS left_out (exemplar_id);

-- name: forget_seen
-- Delete the changes that the views of all settings saw, all of them if there is none, and the views from which nothing
-- is computed any more.
WITH kept AS (
    SELECT
        snapshot.calibrator_id,
        snapshot.seen
    FROM snapshot_view AS snapshot
    INNER JOIN calibrator ON snapshot.calibrator_id = calibrator.id
    LEFT JOIN recalibration_request AS request ON calibrator.id = request.calibrator_id
    WHERE
        calibrator.classifier_id = :classifier_id
        AND calibrator.retired_at IS NULL
        AND snapshot.number = calibrator.last_number
        -- What cannot be recalibrated would keep every change until it can.
        AND request.error IS NULL
        -- A setting that was never in use is not kept current, except for a chain.
        AND (
            calibrator.standing
            OR EXISTS (
                SELECT 1
                FROM calibration
                WHERE
                    calibration.calibrator_id = calibrator.id
                    AND calibration.state = 'current'
            )
        )
),

outdated AS (
    DELETE FROM snapshot_view
    USING calibrator
    WHERE
        snapshot_view.calibrator_id = calibrator.id
        AND calibrator.classifier_id = :classifier_id
        AND NOT EXISTS (
            SELECT 1
            FROM kept
            WHERE kept.calibrator_id = snapshot_view.calibrator_id
        )
)

DELETE FROM point_change
WHERE
    classifier_id = :classifier_id
    AND transaction_id < (
        SELECT
            coalesce(
                min(CAST(CAST(pg_snapshot_xmin(CAST(kept.seen AS pg_snapshot)) AS text) AS bigint)),
                9223372036854775807
            )
        FROM kept
    );

-- name: own
-- Take the ledger of a classifier for this transaction, unless another one is about to make a snapshot.
SELECT pg_try_advisory_xact_lock(7, :classifier_id);
