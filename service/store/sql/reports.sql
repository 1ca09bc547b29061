-- name: labelled_counts
-- How many exemplars each split holds, and how many of them have a label.
SELECT
    split,
    count(*) AS exemplars,
    count(label) AS labelled
FROM exemplar
WHERE classifier_id = :classifier_id
GROUP BY split;

-- name: label_selections
-- How the current labels were chosen, as the latest event of each exemplar says; training labels are not chosen.
SELECT
    latest.selection,
    count(*) AS exemplars,
    min(latest.created_at) AS first,
    max(latest.created_at) AS newest
FROM exemplar
CROSS JOIN
    LATERAL (
        SELECT
            event.selection,
            event.created_at
        FROM label_event AS event
        WHERE event.exemplar_id = exemplar.id
        ORDER BY event.id DESC
        LIMIT 1
    ) AS latest
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split <> 'train'
    AND exemplar.label IS NOT NULL
GROUP BY latest.selection
ORDER BY latest.selection;

-- name: snapshot_origin
-- When and why a snapshot was made, and what is known of the parameters it rests on.
SELECT
    calibration.created_at,
    calibration.reason,
    calibration.state,
    knn_parameters.origin,
    knn_parameters.dev_count,
    knn_parameters.dev_discrepancies,
    knn_parameters.is_current AS parameters_are_current
FROM calibration
INNER JOIN knn_parameters ON calibration.knn_parameters_id = knn_parameters.id
WHERE calibration.id = :calibration_id;

-- name: snapshot_changes
-- How mc and vp as they are now differ from those of a snapshot; a point that moved between them has changed.
SELECT
    count(*) FILTER (WHERE point.exemplar_id IS NULL) AS arrived,
    count(*) FILTER (WHERE point.label <> held.label OR point.split <> held.split) AS changed,
    count(*) FILTER (WHERE held.id IS NULL) AS gone
FROM (
    SELECT
        id,
        split,
        label
    FROM exemplar
    WHERE
        classifier_id = :classifier_id
        AND split IN ('mc', 'vp')
) AS held
FULL JOIN (
    SELECT
        exemplar_id,
        split,
        label
    FROM calibration_point
    WHERE
        calibrator_id = :calibrator_id
        AND valid_from <= :number
        AND (valid_until IS NULL OR valid_until > :number)
) AS point
    ON held.id = point.exemplar_id;

-- name: discrepancies
-- Of how many documents of mc and vp, or else of scored exemplars, so many points have an approximation, on so many
-- of which KNN and network differ.
SELECT
    document.is_scored,
    document.points,
    document.differing,
    count(*) AS documents
FROM (
    SELECT
        exemplar.split = 'scored' AS is_scored,
        count(*) AS points,
        count(*) FILTER (WHERE approximation.predicted <> exemplar.network_predicted) AS differing
    FROM exemplar
    INNER JOIN approximation ON exemplar.id = approximation.exemplar_id
    WHERE
        exemplar.classifier_id = :classifier_id
        AND exemplar.split IN ('mc', 'vp', 'scored')
        AND approximation.knn_parameters_id = :knn_parameters_id
    GROUP BY exemplar.split = 'scored', coalesce(exemplar.document_id, exemplar.external_id)
) AS document
GROUP BY document.is_scored, document.points, document.differing
ORDER BY document.is_scored, document.points, document.differing;

-- name: decided_rows
-- What a snapshot decided, and whether on an exemplar it was made with; the reason's place among those given, or 0.
SELECT
    decision.exemplar_id,
    decision.weighted,
    decision.require_full_match,
    decision.match_count,
    decision.distance,
    decision.band_size,
    coalesce(array_position(:reasons ::text[], decision.reason), 0) AS reason,
    exemplar.split IN ('train', 'knn')
    OR EXISTS (
        SELECT 1
        FROM calibration_point AS point
        WHERE
            point.calibrator_id = :calibrator_id
            AND point.exemplar_id = decision.exemplar_id
            AND point.valid_from <= :number
            AND (point.valid_until IS NULL OR point.valid_until > :number)
    ) AS is_seen
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
WHERE decision.calibration_id = :calibration_id
ORDER BY decision.exemplar_id, decision.weighted, decision.require_full_match;
