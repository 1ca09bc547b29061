-- name: newest_of_classifier
-- The label deadline of the newest monitor of all generations of a classifier; null if it counts by labels.
SELECT monitor.label_deadline
FROM classifier AS given
INNER JOIN classifier AS generation
    ON coalesce(given.original_id, given.id) = coalesce(generation.original_id, generation.id)
INNER JOIN calibrator ON generation.id = calibrator.classifier_id
INNER JOIN monitor ON calibrator.id = monitor.calibrator_id
WHERE given.id = :classifier_id
ORDER BY monitor.id DESC
LIMIT 1;

-- name: newest_decision
-- The newest decision of all; 0 before the first.
SELECT coalesce(max(id), 0) AS decision
FROM decision;

-- name: passed
-- The last decision before the first one, after a given one, whose label deadline has not passed.
SELECT
    coalesce(
        (
            SELECT waiting.id - 1
            FROM decision AS waiting
            WHERE
                waiting.id > :passed_decision
                AND waiting.created_at > now() - CAST(:label_deadline AS interval)
            ORDER BY waiting.id
            LIMIT 1
        ),
        greatest(:passed_decision, (SELECT max(newest.id) FROM decision AS newest))
    ) AS decision;

-- name: decided
-- How many points a calibrator decided on for the first time in a range of decisions.
WITH ranged AS MATERIALIZED (
    SELECT
        id,
        calibration_id,
        exemplar_id
    FROM decision
    WHERE
        id > :after
        AND id <= :until
)

SELECT count(*) AS points
FROM ranged
INNER JOIN calibration ON ranged.calibration_id = calibration.id
WHERE
    calibration.calibrator_id = :calibrator_id
    AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
    AND NOT EXISTS (
        SELECT 1
        FROM decision AS earlier
        INNER JOIN calibration AS of_earlier ON earlier.calibration_id = of_earlier.id
        WHERE
            earlier.exemplar_id = ranged.exemplar_id
            AND earlier.id < ranged.id
            AND of_earlier.calibrator_id = :calibrator_id
            AND of_earlier.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
    );

-- name: labelled_decisions
-- The points that had a label by the deadline of their document, by document, in the order in which these were first
-- decided on: those between two decisions.
WITH ranged AS MATERIALIZED (
    SELECT
        decision.calibration_id,
        decision.exemplar_id
    FROM decision
    WHERE
        decision.id > :from_decision
        AND decision.id <= :passed_decision
),

named AS (
    SELECT DISTINCT
        decided_on.classifier_id,
        coalesce(decided_on.document_id, decided_on.external_id) AS document_key
    FROM ranged
    INNER JOIN calibration ON ranged.calibration_id = calibration.id
    CROSS JOIN
        LATERAL (
            SELECT exemplar.*
            FROM exemplar
            WHERE exemplar.id = ranged.exemplar_id
            ORDER BY exemplar.id
            LIMIT 1
        ) AS decided_on
    WHERE
        calibration.calibrator_id = :calibrator_id
        AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
        -- A label of another point of the document may count.
        AND (decided_on.label IS NOT NULL OR decided_on.document_id IS NOT NULL)
),

member AS (
    SELECT
        named.document_key,
        exemplar.id,
        exemplar.external_id,
        exemplar.document_id,
        exemplar.label
    FROM named
    INNER JOIN exemplar
        ON
            named.classifier_id = exemplar.classifier_id
            AND named.document_key = exemplar.document_id
    UNION ALL
    SELECT
        named.document_key,
        exemplar.id,
        exemplar.external_id,
        exemplar.document_id,
        exemplar.label
    FROM named
    INNER JOIN exemplar
        ON
            named.classifier_id = exemplar.classifier_id
            AND named.document_key = exemplar.external_id
    WHERE exemplar.document_id IS NULL
),

-- A document is decided on when the first of its points is, labelled or not.
decided AS (
    SELECT
        member.*,
        first_decision.id AS decision_id,
        first_decision.created_at AS decided_at,
        first_decision.predicted,
        first_decision.match_count,
        first_decision.is_admitted,
        first_value(first_decision.id) OVER in_order AS document_decision_id,
        first_value(first_decision.created_at) OVER in_order AS document_decided_at
    FROM member
    CROSS JOIN
        LATERAL (
            SELECT
                decision.id,
                decision.created_at,
                decision.predicted,
                decision.match_count,
                decision.decision IS NOT NULL AS is_admitted
            FROM decision
            INNER JOIN calibration ON decision.calibration_id = calibration.id
            WHERE
                decision.exemplar_id = member.id
                AND calibration.calibrator_id = :calibrator_id
                AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
            ORDER BY decision.id + 0
            LIMIT 1
        ) AS first_decision
    WINDOW in_order AS (PARTITION BY member.document_key ORDER BY first_decision.id)
),

labelled AS (
    SELECT
        decided.*,
        first_label.id AS event_id
    FROM decided
    CROSS JOIN
        LATERAL (
            SELECT coalesce(max(event.id), 0) AS event_id
            FROM label_event AS event
            WHERE
                event.exemplar_id = decided.id
                AND event.label IS NULL
        ) AS retraction
    CROSS JOIN
        LATERAL (
            SELECT
                event.id,
                event.created_at
            FROM monitored_label_v1 AS event
            WHERE
                event.exemplar_id = decided.id
                AND event.id > retraction.event_id
            ORDER BY event.id
            LIMIT 1
        ) AS first_label
    WHERE
        decided.label IS NOT NULL
        AND decided.document_decision_id > :from_decision
        AND decided.document_decision_id <= :passed_decision
        AND first_label.id > :after_event
        AND first_label.created_at <= decided.document_decided_at + CAST(:label_deadline AS interval)
        -- What was labelled before it was decided on may have been calibrated with.
        AND NOT EXISTS (
            SELECT 1
            FROM label_event AS earlier
            WHERE
                earlier.exemplar_id = decided.id
                AND earlier.selection <> 'selected'
                AND earlier.created_at <= decided.decided_at
        )
)

SELECT
    labelled.document_decision_id AS place,
    min(labelled.event_id) OVER (PARTITION BY labelled.document_key) AS event_id,
    labelled.id AS exemplar_id,
    labelled.external_id,
    labelled.label,
    labelled.predicted,
    labelled.match_count,
    labelled.is_admitted,
    labelled.document_id,
    drawn.weight_of_all,
    drawn.weight_of_admitted,
    drawn.drawn_at = labelled.decided_at AS is_drawn_here
FROM labelled
LEFT JOIN audit_weight_v2 AS drawn ON labelled.id = drawn.exemplar_id
WHERE
    -- A document of which a part was labelled before, for calibration data mostly, would not be a new one.
    NOT EXISTS (
        SELECT 1
        FROM member
        INNER JOIN label_event AS event ON member.id = event.exemplar_id
        WHERE
            member.document_id = labelled.document_id
            AND event.id <= :after_event
            AND event.selection <> 'selected'
    )
ORDER BY place, labelled.id;
