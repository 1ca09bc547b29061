-- name: labelled
-- The given exemplars that have a label, in the given order, whether the snapshot was made with them, and whether all
-- of their labels are those of chosen points: one that was drawn at random goes on being one.
SELECT
    wanted.exemplar_id,
    exemplar.split = 'train'
    -- A label that joined knn later had no part in the parameters of the snapshot.
    OR (
        exemplar.split = 'knn'
        AND EXISTS (
            SELECT 1
            FROM label_event AS event
            INNER JOIN calibration ON calibration.id = :calibration_id
            INNER JOIN knn_parameters AS parameters ON calibration.knn_parameters_id = parameters.id
            WHERE
                event.exemplar_id = wanted.exemplar_id
                AND event.created_at <= parameters.created_at
        )
    )
    OR EXISTS (
        SELECT 1
        FROM calibration_point AS point
        WHERE
            point.calibrator_id = :calibrator_id
            AND point.exemplar_id = wanted.exemplar_id
            AND is_in_snapshot_v1(:number, point.valid_from, point.valid_until)
    )
    -- A snapshot without vp is compared with methods that are calibrated on vp too.
    OR (
        exemplar.split = 'vp'
        AND :vp_count = 0
        AND EXISTS (
            SELECT 1
            FROM label_event AS event
            INNER JOIN calibration ON calibration.id = :calibration_id
            WHERE
                event.exemplar_id = wanted.exemplar_id
                AND event.created_at <= calibration.created_at
        )
    )
    -- So do the labels that advance a chain, however late they came.
    OR EXISTS (
        SELECT 1
        FROM certificate
        INNER JOIN standing_evidence AS evidence ON certificate.chain_id = evidence.chain_id
        WHERE
            certificate.calibration_id = :calibration_id
            AND evidence.exemplar_id = wanted.exemplar_id
    ) AS is_seen,
    coalesce(given.is_chosen, FALSE) AS is_chosen
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
CROSS JOIN
    LATERAL (
        SELECT bool_and(event.selection <> 'random') AS is_chosen
        FROM label_events_since_retraction_v1(exemplar.id) AS event
    ) AS given
WHERE exemplar.label IS NOT NULL
ORDER BY wanted.position;

-- name: decided
-- The labelled exemplars that a calibration has decided on, under any options.
SELECT DISTINCT decision.exemplar_id
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE
    decision.calibration_id = :calibration_id
    AND exemplar.label IS NOT NULL
ORDER BY decision.exemplar_id;

-- name: decisions
-- The decisions on the given exemplars, weighted or plain, and with any q, in the given order. Without vectors, what
-- follows from them is -1 and NaN, as no column of the copy may be null.
SELECT
    exemplar.label,
    exemplar.network_predicted,
    exemplar.network_logits,
    decision.predicted,
    coalesce(decision.match_count, -1) AS match_count,
    coalesce(decision.distance, 'NaN') AS distance,
    coalesce(
        decision.logits,
        array_fill(CAST('NaN' AS double precision), ARRAY[cardinality(exemplar.network_logits)])
    ) AS logits,
    coalesce(decision.lower, 'NaN') AS lower,
    coalesce(decision.upper, 'NaN') AS upper,
    decision.decision IS NOT NULL AS is_admitted
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
INNER JOIN decision
    ON
        decision.calibration_id = :calibration_id
        AND wanted.exemplar_id = decision.exemplar_id
        AND decision.weighted = :weighted
        AND NOT decision.require_full_match
ORDER BY wanted.position;
