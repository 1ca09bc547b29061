-- name: lock
-- Wait until no other transaction begins a chain for a generation of a classifier, or makes a certificate of a family.
SELECT pg_advisory_xact_lock(6, :first_id);

-- name: begun
-- The largest number of a chain of any generation of a classifier, deleted ones too, and whether one of them has any.
SELECT
    greatest(max(chain.number), max(classifier.earlier_chains)) AS newest,
    coalesce(bool_or(chain.id IS NOT NULL AND classifier.id = :classifier_id), FALSE) AS is_begun
FROM classifier
LEFT JOIN calibrator ON classifier.id = calibrator.classifier_id
LEFT JOIN standing_chain AS chain ON calibrator.id = chain.calibrator_id
WHERE coalesce(classifier.original_id, classifier.id) = :first_id;

-- name: add_chain
-- Begin a chain.
INSERT INTO standing_chain (
    calibrator_id,
    number,
    knn_parameters_id,
    support_version,
    score,
    proposing,
    chain
)
VALUES (
    :calibrator_id,
    :number,
    :knn_parameters_id,
    :support_version,
    :score,
    :proposing,
    CAST(:chain AS json)
)
RETURNING id;

-- name: chain
-- The newest chain of a calibrator, or that of a snapshot.
SELECT
    id,
    calibrator_id,
    number,
    knn_parameters_id,
    support_version,
    score,
    proposing,
    chain,
    restarts
FROM standing_chain
WHERE
    calibrator_id = :calibrator_id
    AND (
        CAST(:calibration_id AS bigint) IS NULL
        OR id = (
            SELECT certificate.chain_id
            FROM certificate
            WHERE certificate.calibration_id = :calibration_id
        )
    )
ORDER BY id DESC
LIMIT 1;

-- name: newest_calibration
-- The newest snapshot that a chain certified.
SELECT max(calibration_id) AS calibration_id
FROM certificate
WHERE chain_id = :chain_id;

-- name: later
-- The newest chain of a calibrator if it was begun after another, with its snapshot that is in use, or else its newest.
SELECT
    chain.number AS chain,
    coalesce(max(certificate.calibration_id) FILTER (WHERE is_in_use), max(certificate.calibration_id)) AS calibration,
    bool_or(is_in_use) AS is_in_use
FROM standing_chain AS chain
INNER JOIN certificate ON chain.id = certificate.chain_id
CROSS JOIN
    LATERAL (
        SELECT coalesce(certificate.calibration_id = CAST(:in_use_id AS bigint), FALSE) AS is_in_use
    ) AS used
WHERE
    chain.calibrator_id = :calibrator_id
    AND chain.id > :chain_id
GROUP BY chain.id
ORDER BY chain.id DESC
LIMIT 1;

-- name: waits
-- Whether the current snapshot of a calibrator is that of another chain than the newest.
SELECT coalesce(bool_or(certificate.chain_id < newest.id), FALSE) AS waits
FROM calibration
INNER JOIN certificate ON calibration.id = certificate.calibration_id
CROSS JOIN (
    SELECT max(chain.id) AS id
    FROM standing_chain AS chain
    WHERE chain.calibrator_id = :calibrator_id
) AS newest
WHERE
    calibration.calibrator_id = :calibrator_id
    AND calibration.state = 'current';

-- name: is_begun_since
-- Whether the newest chain of a calibrator, if it has any, was begun since the setting of a snapshot was chosen.
SELECT coalesce(max(chain.created_at) > max(chosen.chosen_at), FALSE) AS is_begun_since
FROM standing_chain AS chain
CROSS JOIN calibration
INNER JOIN calibrator AS chosen ON calibration.calibrator_id = chosen.id
WHERE
    chain.calibrator_id = :calibrator_id
    AND calibration.id = :in_use_id;

-- name: are_same
-- Whether one chain certified two snapshots.
SELECT
    count(chain_id) = 2
    AND count(DISTINCT chain_id) = 1 AS are_same
FROM certificate
WHERE calibration_id = ANY(:ids ::bigint[]);

-- name: newest_event
-- The newest label event of a classifier, or a given one if there is none after it.
SELECT coalesce(max(event.id), :event) AS event
FROM label_event AS event
CROSS JOIN
    LATERAL (
        SELECT exemplar.classifier_id
        FROM exemplar
        WHERE exemplar.id = event.exemplar_id
        ORDER BY exemplar.id
        -- It keeps this from becoming a join, which would read the whole classifier as long as it has no statistics.
        LIMIT 1
    ) AS labelled
WHERE
    event.id > :event
    AND labelled.classifier_id = :classifier_id;

-- name: new_labels
-- The exemplars that calibrate, or were drawn, by a label that can count and whose first one came after an event, in
-- the order of these. A label that was taken back does not count again: it is null, and its document has come all the
-- same. If :at_start, those that calibrate alone, which are a sample at one rate: the smallest by which points were
-- drawn has chosen among the drawn ones already, so that none weighs less. If :of_all, points weigh the same on average
-- among all of them, and not within their predicted class alone.
WITH touched AS (
    SELECT DISTINCT event.exemplar_id
    FROM label_event AS event
    CROSS JOIN
        LATERAL (
            SELECT exemplar.classifier_id
            FROM exemplar
            WHERE exemplar.id = event.exemplar_id
            ORDER BY exemplar.id
            LIMIT 1
        ) AS labelled
    WHERE
        event.id > :event
        AND labelled.classifier_id = :classifier_id
)

SELECT
    exemplar.id AS exemplar_id,
    CASE WHEN NOT later.is_retracted THEN exemplar.label END AS label,
    exemplar.document_id,
    coalesce(exemplar.document_id, exemplar.external_id) AS document_key,
    -- Equal logits alone make no copy.
    CASE
        WHEN classifier.dimension IS NOT NULL THEN coalesce(exemplar.point_digest, exemplar.content_digest)
    END AS point_digest,
    CASE
        WHEN :of_all AND first_label.weight IS NOT NULL
            THEN (
                SELECT drawn.weight_of_all
                FROM audit_weight_v2 AS drawn
                WHERE drawn.exemplar_id = exemplar.id
            )
        ELSE first_label.weight
    END AS weight,
    first_label.id AS event,
    -- Those of one transaction have one time.
    first_label.created_at AS arrived_at
FROM touched
CROSS JOIN
    LATERAL (
        SELECT one.*
        FROM exemplar AS one
        WHERE one.id = touched.exemplar_id
        ORDER BY one.id
        LIMIT 1
    ) AS exemplar
INNER JOIN classifier ON exemplar.classifier_id = classifier.id
CROSS JOIN
    LATERAL (
        SELECT
            event.id,
            event.weight,
            event.created_at
        FROM standing_label_v2 AS event
        WHERE
            NOT :at_start
            AND event.exemplar_id = exemplar.id
            AND event.label IS NOT NULL
        UNION ALL
        SELECT
            event.id,
            NULL AS weight,
            event.created_at
        FROM label_event AS event
        WHERE
            :at_start
            AND event.exemplar_id = exemplar.id
            AND event.label IS NOT NULL
            AND event.selection <> 'selected'
        ORDER BY id
        LIMIT 1
    ) AS first_label
CROSS JOIN
    LATERAL (
        SELECT count(*) > 0 AS is_retracted
        FROM label_event AS retraction
        WHERE
            retraction.exemplar_id = exemplar.id
            AND retraction.id > first_label.id
            AND retraction.label IS NULL
    ) AS later
WHERE
    first_label.id > :event
    AND (
        exemplar.split IN ('knn', 'mc', 'vp')
        OR (
            exemplar.split = 'scored'
            AND first_label.weight IS NOT NULL
        )
        OR later.is_retracted
    )
ORDER BY first_label.id;

-- name: known_documents
-- Those of some documents of which a part counts for a chain, or was labelled up to an event.
SELECT DISTINCT exemplar.document_id
FROM exemplar
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.document_id = ANY(:document_ids ::text[])
    AND coalesce(
        (
            SELECT evidence.exemplar_id
            FROM standing_evidence AS evidence
            WHERE
                evidence.exemplar_id = exemplar.id
                AND evidence.chain_id = :chain_id
            ORDER BY evidence.exemplar_id
            LIMIT 1
        ),
        (
            SELECT event.id
            FROM standing_label_v2 AS event
            WHERE
                event.exemplar_id = exemplar.id
                AND event.id <= :event
            ORDER BY event.id
            LIMIT 1
        )
    ) IS NOT NULL;

-- name: known_contents
-- What each document holds that has one of some points, of which a part counts for a chain or was labelled up to an
-- event.
WITH holding AS (
    SELECT exemplar.id
    FROM exemplar
    WHERE
        coalesce(exemplar.point_digest, exemplar.content_digest) = ANY(:digests ::bytea[])
        AND exemplar.split <> 'scored'
    UNION ALL
    SELECT draw.exemplar_id AS id
    FROM unnest(:digests ::bytea[]) AS given (digest)
    INNER JOIN audit_draw AS draw
        ON
            -- No byte of an id, which may follow, is 255.
            given.digest <= draw.content
            AND draw.content < given.digest || decode('ff', 'hex')
    WHERE draw.is_drawn
    UNION ALL
    -- Those that count no longer have left the held-out data.
    SELECT taken_back.exemplar_id AS id
    FROM standing_evidence AS taken_back
    INNER JOIN exemplar ON taken_back.exemplar_id = exemplar.id
    WHERE
        taken_back.chain_id = :chain_id
        AND taken_back.label IS NULL
        AND coalesce(exemplar.point_digest, exemplar.content_digest) = ANY(:digests ::bytea[])
),

holder AS (
    SELECT DISTINCT
        exemplar.classifier_id,
        exemplar.document_id,
        CASE WHEN exemplar.document_id IS NULL THEN exemplar.id END AS exemplar_id
    FROM holding
    CROSS JOIN
        LATERAL (
            SELECT one.*
            FROM exemplar AS one
            WHERE one.id = holding.id
            ORDER BY one.id
            LIMIT 1
        ) AS exemplar
    WHERE
        exemplar.classifier_id = :classifier_id
        AND coalesce(
            (
                SELECT evidence.exemplar_id
                FROM standing_evidence AS evidence
                WHERE
                    evidence.exemplar_id = exemplar.id
                    AND evidence.chain_id = :chain_id
                ORDER BY evidence.exemplar_id
                LIMIT 1
            ),
            (
                SELECT event.id
                FROM standing_label_v2 AS event
                WHERE
                    event.exemplar_id = exemplar.id
                    AND event.id <= :event
                ORDER BY event.id
                LIMIT 1
            )
        ) IS NOT NULL
)

SELECT array_agg(coalesce(member.point_digest, member.content_digest)) AS digests
FROM holder
CROSS JOIN
    LATERAL (
        SELECT one.*
        FROM exemplar AS one
        WHERE
            one.classifier_id = holder.classifier_id
            AND one.document_id = holder.document_id
        UNION ALL
        SELECT one.*
        FROM exemplar AS one
        WHERE one.id = holder.exemplar_id
    ) AS member
LEFT JOIN audit_draw AS member_draw ON member.id = member_draw.exemplar_id
LEFT JOIN standing_evidence AS member_evidence
    ON
        member.id = member_evidence.exemplar_id
        AND member_evidence.chain_id = :chain_id
WHERE
    member.split <> 'scored'
    OR member_draw.is_drawn
    OR member_evidence.exemplar_id IS NOT NULL
GROUP BY
    holder.document_id,
    holder.exemplar_id;

-- name: changed_labels
-- The labels that count for a chain and were corrected, or taken back, after an event.
SELECT
    evidence.document,
    evidence.exemplar_id,
    CASE WHEN NOT changed.is_retracted THEN exemplar.label END AS label
FROM (
    SELECT
        event.exemplar_id,
        bool_or(event.label IS NULL) AS is_retracted
    FROM label_event AS event
    WHERE event.id > :event
    GROUP BY event.exemplar_id
) AS changed
CROSS JOIN
    LATERAL (
        SELECT one.*
        FROM standing_evidence AS one
        WHERE
            one.exemplar_id = changed.exemplar_id
            AND one.chain_id = :chain_id
        ORDER BY one.exemplar_id
        LIMIT 1
    ) AS evidence
CROSS JOIN
    LATERAL (
        SELECT one.label
        FROM exemplar AS one
        WHERE one.id = changed.exemplar_id
        ORDER BY one.id
        LIMIT 1
    ) AS exemplar
WHERE
    evidence.label IS NOT NULL
    AND (
        changed.is_retracted
        OR evidence.label <> exemplar.label
    )
ORDER BY
    evidence.document,
    evidence.exemplar_id;

-- name: change_labels
-- Let other labels count for a chain; null for those that were taken back.
UPDATE standing_evidence AS evidence
SET label = changed.label
FROM unnest(:exemplar_ids ::bigint[], :labels ::integer[]) AS changed (exemplar_id, label)
WHERE
    evidence.chain_id = :chain_id
    AND evidence.exemplar_id = changed.exemplar_id;

-- name: evidence
-- The labelled points that count for a chain, from a document on, also those that were forgotten.
SELECT
    document,
    predicted,
    label,
    score,
    coalesce(weight, 1) AS weight
FROM (
    SELECT
        exemplar_id,
        document,
        predicted,
        label,
        score,
        weight
    FROM standing_evidence
    WHERE
        chain_id = :chain_id
        AND document >= :document
        AND label IS NOT NULL
    UNION ALL
    SELECT
        NULL AS exemplar_id,
        document,
        predicted,
        label,
        score,
        weight
    FROM forgotten_evidence
    WHERE
        chain_id = :chain_id
        AND document >= :document
) AS counting
ORDER BY
    document,
    exemplar_id;

-- name: add_position
-- Store how far a chain was advanced.
INSERT INTO standing_position (chain_id, documents, event, counted, points)
VALUES (:chain_id, :documents, :event, :counted, :points)
ON CONFLICT (chain_id, documents) DO UPDATE
    SET
        event = excluded.event,
        counted = excluded.counted,
        points = excluded.points;

-- name: newest_position
-- How far a chain was advanced.
SELECT
    documents,
    event,
    counted,
    points
FROM standing_position
WHERE chain_id = :chain_id
ORDER BY documents DESC
LIMIT 1;

-- name: position_before
-- The last position whose state is kept of those at which a document did not count yet: in every thousand documents,
-- the last is kept.
SELECT
    documents,
    event,
    counted,
    points
FROM (
    SELECT DISTINCT ON (documents / 1000)
        documents,
        event,
        counted,
        points
    FROM standing_position
    WHERE chain_id = :chain_id
    ORDER BY
        documents / 1000 ASC,
        documents DESC
) AS kept
WHERE documents <= :document
ORDER BY documents DESC
LIMIT 1;

-- name: delete_positions
-- Delete what was found after a position, with its states.
DELETE FROM standing_position
WHERE
    chain_id = :chain_id
    AND documents > :documents;

-- name: states
-- The state of each class after a number of documents.
SELECT DISTINCT ON (predicted)
    predicted AS place,
    documents,
    wealth,
    most,
    admitted,
    correct,
    capped,
    against
FROM standing_state
WHERE
    chain_id = :chain_id
    AND documents <= :documents
ORDER BY
    predicted ASC,
    documents DESC;

-- name: add_state
-- Store the state of a class.
INSERT INTO standing_state (
    chain_id,
    documents,
    predicted,
    wealth,
    most,
    admitted,
    correct,
    capped,
    against
)
VALUES (
    :chain_id,
    :documents,
    :place,
    :wealth ::double precision[],
    :most ::double precision[],
    :admitted ::bigint[],
    :correct ::bigint[],
    :capped ::bigint[],
    CAST(:against AS json)
);

-- name: restart
-- Start the games against what is certified again, with the documents that have not counted yet, for each chain of a
-- calibrator.
UPDATE standing_chain AS chain
SET restarts = chain.restarts || newest.documents
FROM (
    SELECT
        chain_id,
        max(documents) AS documents
    FROM standing_position
    GROUP BY chain_id
) AS newest
WHERE
    chain.calibrator_id = :calibrator_id
    AND chain.id = newest.chain_id
    AND newest.documents <> ALL(chain.restarts);

-- name: delete_older_states
-- Delete the states of a class that newer ones in the same thousand documents follow.
DELETE FROM standing_state
WHERE
    chain_id = :chain_id
    AND predicted = :place
    AND documents < :documents
    AND documents / 1000 = :documents ::integer / 1000;

-- name: delete_older_positions
-- Delete the positions without a state that a newer one in the same thousand documents follows.
DELETE FROM standing_position AS older
WHERE
    older.chain_id = :chain_id
    AND older.documents >= :documents ::integer / 1000 * 1000
    AND older.documents < :documents
    AND NOT EXISTS (
        SELECT
        FROM standing_state AS state
        WHERE
            state.chain_id = older.chain_id
            AND state.documents = older.documents
    );

-- name: alarmed
-- The classes for which an alarm of some lamps of a calibrator stands.
SELECT
    alarm.lamp,
    alarm.number
FROM monitor_alarm AS alarm
WHERE
    alarm.monitor_id = (
        SELECT max(monitor.id)
        FROM monitor
        WHERE monitor.calibrator_id = :calibrator_id
    )
    AND alarm.lamp = ANY(:lamps ::text[])
    AND alarm.ended_at IS NULL;

-- name: event_of_alarm
-- The label event by which the first of the alarms of the promise was raised that stand, by the newest monitor of a
-- classifier, and by the newest of each setting whose certificate stands, which need not be in use; null if none does.
WITH newest AS (
    SELECT
        max(monitor.id) AS id,
        calibrator.standing,
        calibrator.certify
    FROM monitor
    INNER JOIN calibrator ON monitor.calibrator_id = calibrator.id
    WHERE calibrator.classifier_id = :classifier_id
    GROUP BY calibrator.id
)

SELECT min(alarm.label_event_id) AS event
FROM newest
INNER JOIN monitor_alarm AS alarm ON newest.id = alarm.monitor_id
WHERE
    (
        newest.standing
        OR newest.id = (
            SELECT max(every.id)
            FROM newest AS every
        )
    )
    AND (
        alarm.lamp = 'promise'
        OR (
            alarm.lamp = 'true_classes'
            AND newest.standing
            AND 'true' = ANY(newest.certify)
        )
    )
    AND alarm.ended_at IS NULL;

-- name: advances
-- The newest snapshots that chains of a classifier certified, up to a given one, the newest first. The last threshold
-- of each predicted class that was looked at, or the last policy for all of them, says how far the next one is: its
-- level by its p-value, which may be 0.
SELECT
    calibration.id AS calibration,
    calibration.created_at,
    chain.number AS chain,
    certificate.documents,
    CAST(certificate.document ->> 'points' AS integer) AS labels,
    coalesce(certificate.share, 0) AS admitted,
    coalesce(
        jsonb_object_agg(
            CASE
                WHEN jsonb_array_length(of_class.tested -> 'predicted') > 1 THEN 'all'
                ELSE of_class.tested -> 'predicted' ->> 0
            END,
            CASE WHEN step.p_value > step.level THEN step.level / step.p_value ELSE 1 END
        ) FILTER (WHERE of_class.tested IS NOT NULL),
        '{}'
    ) AS evidence
FROM calibrator
INNER JOIN calibration ON calibrator.id = calibration.calibrator_id
INNER JOIN certificate ON calibration.id = certificate.calibration_id
INNER JOIN standing_chain AS chain ON certificate.chain_id = chain.id
LEFT JOIN LATERAL jsonb_array_elements(certificate.document -> 'chains') AS of_class (tested) ON TRUE
CROSS JOIN
    LATERAL (
        SELECT
            CAST(of_class.tested ->> 'level' AS double precision) AS level,
            (
                SELECT max(CAST(result.found ->> 'p_value' AS double precision))
                FROM jsonb_array_elements(of_class.tested -> 'steps' -> -1 -> 'classes') AS result (found)
            ) AS p_value
    ) AS step
WHERE
    calibrator.classifier_id = :classifier_id
    AND calibration.id <= :calibration_id
GROUP BY
    calibration.id,
    chain.id,
    certificate.calibration_id
ORDER BY calibration.id DESC
LIMIT :most;

-- name: promise_alarms
-- The alarms of classes of a classifier for which something is promised, the oldest first.
SELECT
    kind,
    class_number,
    created_at,
    ended_at
FROM alarm_row_v2
WHERE
    classifier_id = :classifier_id
    AND lamp IN ('promise', 'true_classes')
    AND is_harmful
ORDER BY id;
