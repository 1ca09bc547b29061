-- name: lock_monitors
-- Wait until no other transaction updates the monitors of a calibrator.
SELECT pg_advisory_xact_lock(4, :calibrator_id);

-- name: newest_event
-- The newest label event of all; 0 before the first.
SELECT coalesce(max(id), 0) AS event
FROM label_event;

-- name: has_labels_since
-- Whether a label of the classifier of a calibrator came after an event.
SELECT count(*) > 0
FROM (
    SELECT 1
    FROM label_event AS event
    INNER JOIN exemplar ON event.exemplar_id = exemplar.id
    INNER JOIN calibrator ON exemplar.classifier_id = calibrator.classifier_id
    WHERE
        event.id > :event
        AND calibrator.id = :calibrator_id
    ORDER BY event.id
    LIMIT 1
) AS later;

-- name: under_way
-- The virtual ids of the other transactions under way in this database. Everybody may see these, where times are shown
-- of one's own sessions alone.
SELECT held.virtualtransaction
FROM pg_locks AS held
INNER JOIN pg_stat_activity AS activity ON held.pid = activity.pid
WHERE
    held.locktype = 'virtualxid'
    AND held.granted
    AND held.virtualxid = held.virtualtransaction
    AND activity.datname = current_database()
    AND activity.backend_type IS DISTINCT FROM 'autovacuum worker'
    AND held.pid <> pg_backend_pid();

-- name: newest_monitor
-- The monitor of a calibrator that counts.
SELECT
    id,
    knn_parameters_id,
    calibration_number,
    after_event,
    settled_event,
    seen_event,
    awaited,
    plan,
    created_at,
    label_deadline,
    after_decision,
    passed_decision,
    decided,
    coalesce(
        (
            SELECT next_decision.created_at <= now() - monitor.label_deadline
            FROM decision AS next_decision
            WHERE
                monitor.label_deadline IS NOT NULL
                AND next_decision.id > monitor.passed_decision
            ORDER BY next_decision.id
            LIMIT 1
        ),
        FALSE
    ) AS is_due
FROM monitor
WHERE calibrator_id = :calibrator_id
ORDER BY id DESC
LIMIT 1;

-- name: first_snapshot
-- The oldest snapshot of a calibrator that rests on given KNN parameters, and the last label event before it.
SELECT
    calibration.id,
    calibration.number,
    (
        SELECT coalesce(max(event.id), 0)
        FROM label_event AS event
        WHERE event.created_at <= calibration.created_at
    ) AS event
FROM calibration
WHERE
    calibration.calibrator_id = :calibrator_id
    AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
ORDER BY calibration.number
LIMIT 1;

-- name: snapshot
-- The snapshot of a calibrator that has a number.
SELECT id
FROM calibration
WHERE
    calibrator_id = :calibrator_id
    AND number = :number;

-- name: calibration_documents
-- The points of a snapshot with what their draws are hashed from.
SELECT
    point.exemplar_id,
    exemplar.external_id,
    coalesce(exemplar.document_id, exemplar.external_id) AS document_key,
    point.predicted,
    point.label,
    point.match_count
FROM calibration_point AS point
INNER JOIN exemplar ON point.exemplar_id = exemplar.id
WHERE
    point.calibrator_id = :calibrator_id
    AND is_in_snapshot_v1(:number, point.valid_from, point.valid_until)
ORDER BY document_key, point.exemplar_id;

-- name: end_earlier_alarms
-- End the alarms of a calibrator, before another monitor of it is started.
UPDATE monitor_alarm AS alarm
SET ended_at = clock_timestamp()
FROM monitor
WHERE
    alarm.monitor_id = monitor.id
    AND monitor.calibrator_id = :calibrator_id
    AND alarm.ended_at IS NULL;

-- name: start_monitor
-- Start a monitor, which counts from now on.
INSERT INTO monitor (
    calibrator_id,
    knn_parameters_id,
    calibration_number,
    after_event,
    seen_event,
    settled_event,
    plan,
    label_deadline,
    after_decision,
    passed_decision
)
VALUES (
    :calibrator_id,
    :knn_parameters_id,
    :calibration_number,
    :after_event,
    :after_event,
    :after_event,
    CAST(:plan AS json),
    :label_deadline,
    :after_decision,
    :after_decision
);

-- name: replace_plan
-- Replace the plan of a monitor by one that is fixed by the same data and watches more.
UPDATE monitor
SET plan = CAST(:plan AS json)
WHERE id = :monitor_id;

-- name: first_change
-- The first label event that can count of the documents that label events after the settled one are about or, if
-- :by_decision, the first decision on them; null for none. What counts before it is as it was.
WITH touched AS (
    SELECT DISTINCT
        labelled.id,
        labelled.classifier_id,
        coalesce(labelled.document_id, labelled.external_id) AS document_key
    FROM label_event AS event
    CROSS JOIN
        LATERAL (
            SELECT exemplar.*
            FROM exemplar
            WHERE exemplar.id = event.exemplar_id
            ORDER BY exemplar.id
            -- It keeps this from becoming a join that reads every exemplar, as long as there are no statistics.
            LIMIT 1
        ) AS labelled
    WHERE
        event.id > :settled_event
        AND labelled.classifier_id = :classifier_id
),

-- The exemplars of their documents.
member AS (
    SELECT touched.id
    FROM touched
    UNION
    SELECT exemplar.id
    FROM touched
    INNER JOIN exemplar
        ON
            touched.classifier_id = exemplar.classifier_id
            AND touched.document_key = exemplar.document_id
    UNION
    SELECT exemplar.id
    FROM touched
    INNER JOIN exemplar
        ON
            touched.classifier_id = exemplar.classifier_id
            AND touched.document_key = exemplar.external_id
    WHERE exemplar.document_id IS NULL
)

SELECT
    CASE
        WHEN :by_decision
            THEN (
                SELECT min(decision.id)
                FROM member
                INNER JOIN decision ON member.id = decision.exemplar_id
                INNER JOIN calibration ON decision.calibration_id = calibration.id
                WHERE
                    calibration.calibrator_id = :calibrator_id
                    AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
            )
        ELSE (
            SELECT min(event.id)
            FROM member
            INNER JOIN monitored_label_v1 AS event ON member.id = event.exemplar_id
            WHERE event.id > :after_event
        )
    END AS place;

-- name: labelled_decisions
-- The labelled points that count, by document, in the order in which the documents count, from those on that count by
-- an event after a given one.
WITH named AS (
    SELECT DISTINCT
        labelled.classifier_id,
        coalesce(labelled.document_id, labelled.external_id) AS document_key
    FROM label_event AS event
    CROSS JOIN
        LATERAL (
            SELECT exemplar.*
            FROM exemplar
            WHERE exemplar.id = event.exemplar_id
            ORDER BY exemplar.id
            -- It keeps this from becoming a join that reads every exemplar, as long as there are no statistics.
            LIMIT 1
        ) AS labelled
    WHERE
        event.id > :from_event
        AND event.selection <> 'selected'
        AND labelled.classifier_id = :classifier_id
),

-- All of these documents: a label that came before may say that a document counts already.
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

labelled AS (
    SELECT
        member.id AS exemplar_id,
        member.external_id,
        member.document_key,
        member.document_id,
        member.label,
        first_label.id AS event_id,
        first_label.created_at AS labelled_at
    FROM member
    CROSS JOIN
        LATERAL (
            SELECT coalesce(max(event.id), 0) AS event_id
            FROM label_event AS event
            WHERE
                event.exemplar_id = member.id
                AND event.label IS NULL
        ) AS retraction
    CROSS JOIN
        LATERAL (
            -- A label that was selected first counts from when it was drawn at random.
            SELECT
                event.id,
                event.created_at
            FROM monitored_label_v1 AS event
            WHERE
                event.exemplar_id = member.id
                AND event.id > retraction.event_id
            ORDER BY event.id
            LIMIT 1
        ) AS first_label
    WHERE
        member.label IS NOT NULL
        AND first_label.id > :after_event
),

-- A document of which a part was labelled before, for calibration data mostly, would not be a new one. What was decided
-- on before the monitor was started again is of the time that an alarm was about, however late its label is.
earlier_document AS (
    SELECT member.document_key
    FROM member
    INNER JOIN label_event AS event ON member.id = event.exemplar_id
    WHERE
        member.document_id IS NOT NULL
        AND event.id <= :after_event
        AND event.selection <> 'selected'
    UNION
    SELECT member.document_key
    FROM member
    INNER JOIN decision ON member.id = decision.exemplar_id
    INNER JOIN calibration ON decision.calibration_id = calibration.id
    WHERE
        decision.id <= :after_decision
        AND calibration.calibrator_id = :calibrator_id
        AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
),

document AS (
    SELECT
        labelled.exemplar_id,
        labelled.external_id,
        labelled.document_id,
        labelled.label,
        first_value(labelled.event_id) OVER first_label AS event_id,
        -- A document counts once, with the labels that came together: those of one transaction have one time.
        labelled.labelled_at = first_value(labelled.labelled_at) OVER first_label AS came_together
    FROM labelled
    LEFT JOIN earlier_document ON labelled.document_key = earlier_document.document_key
    WHERE earlier_document.document_key IS NULL
    WINDOW first_label AS (PARTITION BY labelled.document_key ORDER BY labelled.event_id)
)

SELECT DISTINCT ON (document.event_id, document.exemplar_id)
    document.event_id AS place,
    document.event_id,
    document.exemplar_id,
    document.external_id,
    document.label,
    -- The caller leaves the others out: the planner would think that they are nearly all.
    document.came_together,
    decision.predicted,
    decision.match_count,
    decision.decision IS NOT NULL AS is_admitted,
    document.document_id,
    drawn.weight_of_all,
    drawn.weight_of_admitted,
    drawn.drawn_at = decision.created_at AS is_drawn_here
FROM document
INNER JOIN decision ON document.exemplar_id = decision.exemplar_id
INNER JOIN calibration ON decision.calibration_id = calibration.id
LEFT JOIN audit_weight_v2 AS drawn ON document.exemplar_id = drawn.exemplar_id
WHERE
    document.event_id > :from_event
    AND calibration.calibrator_id = :calibrator_id
    AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
    -- What was labelled before it was decided on may have been calibrated with.
    AND NOT EXISTS (
        SELECT 1
        FROM label_event AS earlier
        WHERE
            earlier.exemplar_id = decision.exemplar_id
            AND earlier.selection <> 'selected'
            AND earlier.created_at <= decision.created_at
    )
-- The first decision on a point counts.
ORDER BY document.event_id, document.exemplar_id, decision.id;

-- name: points_beside
-- The point with which each of some labelled points is compared: of sixteen decisions that were made together, those on
-- points that stand alone and are as likely to be labelled make pairs, and the one that is labelled first counts. None
-- if both labels came together.
WITH labelled AS (
    SELECT
        given.exemplar_id,
        given.event_id,
        of_event.created_at AS labelled_at,
        counted.id AS decision_id,
        draw.is_drawn
    FROM unnest(:exemplar_ids ::bigint[], :event_ids ::bigint[]) AS given (exemplar_id, event_id)
    CROSS JOIN
        LATERAL (
            SELECT event.created_at
            FROM label_event AS event
            WHERE event.id = given.event_id
            ORDER BY event.id
            LIMIT 1
        ) AS of_event
    CROSS JOIN
        LATERAL (
            SELECT decision.id
            FROM decision
            INNER JOIN calibration ON decision.calibration_id = calibration.id
            WHERE
                decision.exemplar_id = given.exemplar_id
                AND calibration.calibrator_id = :calibrator_id
                AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
            ORDER BY decision.id + 0
            LIMIT 1
        ) AS counted
    LEFT JOIN audit_draw AS draw ON given.exemplar_id = draw.exemplar_id
),

block AS (
    SELECT DISTINCT
        decision_id / 16 AS number,
        is_drawn
    FROM labelled
)

SELECT
    labelled.exemplar_id,
    pair.predicted_beside,
    sign(pair.score - pair.score_beside)::integer AS surer
FROM block
CROSS JOIN
    LATERAL (
        SELECT
            placed.exemplar_id,
            placed.score,
            CASE WHEN placed.place % 2 = 1 THEN placed.next_id ELSE placed.previous_id END AS beside_id,
            CASE
                WHEN placed.place % 2 = 1 THEN placed.next_predicted ELSE placed.previous_predicted
            END AS predicted_beside,
            CASE WHEN placed.place % 2 = 1 THEN placed.next_score ELSE placed.previous_score END AS score_beside
        FROM (
            SELECT
                near.exemplar_id,
                near.score,
                row_number() OVER near_by AS place,
                lead(near.exemplar_id) OVER near_by AS next_id,
                lead(near.predicted) OVER near_by AS next_predicted,
                lead(near.score) OVER near_by AS next_score,
                lag(near.exemplar_id) OVER near_by AS previous_id,
                lag(near.predicted) OVER near_by AS previous_predicted,
                lag(near.score) OVER near_by AS previous_score
            FROM (
                SELECT
                    made.id,
                    made.exemplar_id,
                    made.predicted,
                    made.score
                FROM generate_series(0, 15) AS step (number)
                CROSS JOIN
                    LATERAL (
                        SELECT
                            decision.id,
                            decision.exemplar_id,
                            decision.created_at,
                            decision.predicted,
                            coalesce(decision.lower, (decision.decision IS NOT NULL)::integer) AS score
                        FROM decision
                        WHERE decision.id = block.number * 16 + step.number
                        ORDER BY decision.id
                        LIMIT 1
                    ) AS made
                CROSS JOIN
                    LATERAL (
                        SELECT decision.id
                        FROM decision
                        INNER JOIN calibration ON decision.calibration_id = calibration.id
                        WHERE
                            decision.exemplar_id = made.exemplar_id
                            AND calibration.calibrator_id = :calibrator_id
                            AND calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
                        ORDER BY decision.id + 0
                        LIMIT 1
                    ) AS counted
                CROSS JOIN
                    LATERAL (
                        SELECT exemplar.document_id
                        FROM exemplar
                        WHERE exemplar.id = made.exemplar_id
                        ORDER BY exemplar.id
                        LIMIT 1
                    ) AS decided_on
                LEFT JOIN audit_draw AS draw ON made.exemplar_id = draw.exemplar_id
                WHERE
                    made.id = counted.id
                    AND decided_on.document_id IS NULL
                    AND draw.is_drawn IS NOT DISTINCT FROM block.is_drawn
                    -- What was labelled before does not count, so that it could not be the one.
                    AND NOT EXISTS (
                        SELECT 1
                        FROM label_event AS event
                        WHERE
                            event.exemplar_id = made.exemplar_id
                            AND event.selection <> 'selected'
                            AND event.created_at <= made.created_at
                    )
            ) AS near
            -- Points that are far apart, since rows of a file are often ordered.
            WINDOW near_by AS (ORDER BY near.id * 7 % 16)
        ) AS placed
    ) AS pair
INNER JOIN labelled ON pair.exemplar_id = labelled.exemplar_id
WHERE
    pair.beside_id IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM monitored_label_v1 AS event
        WHERE
            event.exemplar_id = pair.beside_id
            AND event.label IS NOT NULL
            AND (
                event.id < labelled.event_id
                OR event.created_at = labelled.labelled_at
            )
    );

-- name: states
-- After how many documents the states of a monitor are, and the last event and the digest of these.
SELECT
    documents,
    event,
    digest
FROM monitor_state
WHERE monitor_id = :monitor_id
ORDER BY documents;

-- name: state
-- One state of a monitor.
SELECT state
FROM monitor_state
WHERE
    monitor_id = :monitor_id
    AND documents = :documents;

-- name: delete_states
-- Delete the states of a monitor that no longer hold, or are no longer the newest.
DELETE FROM monitor_state
WHERE
    monitor_id = :monitor_id
    AND documents = ANY(:documents ::integer[]);

-- name: add_state
-- Store a state.
INSERT INTO monitor_state (monitor_id, documents, event, digest, state)
VALUES (:monitor_id, :documents, :event, :digest, CAST(:state AS json));

-- name: settle
-- Record which label event is settled, which one is settled next, which label deadlines have passed, and the last label
-- event that the chain in use has seen.
UPDATE monitor
SET
    settled_event = :settled_event,
    seen_event = :seen_event,
    awaited = :awaited ::text[],
    passed_decision = :passed_decision,
    decided = :decided,
    chain_event = :chain_event
WHERE
    id = :monitor_id
    AND (settled_event, seen_event, passed_decision, chain_event)
    IS DISTINCT FROM (:settled_event ::bigint, :seen_event ::bigint, :passed_decision ::bigint, :chain_event ::bigint);

-- name: delete_readings
-- Delete what an older state said.
DELETE FROM monitor_reading
WHERE monitor_id = :monitor_id;

-- name: add_reading
-- Store what a state says of one class, group or partition.
INSERT INTO monitor_reading (
    monitor_id,
    lamp,
    number,
    documents,
    points,
    correct,
    lower_bound,
    e_value,
    largest_e_value,
    needed,
    lit_at
)
VALUES (
    :monitor_id,
    :lamp,
    :number,
    :documents,
    :points,
    :correct,
    :lower_bound,
    :e_value,
    :most,
    :needed,
    :lit_at
);

-- name: end_alarms
-- End the alarms of which labels that were corrected leave too little evidence.
UPDATE monitor_alarm AS alarm
SET ended_at = clock_timestamp()
WHERE
    alarm.monitor_id = :monitor_id
    AND alarm.ended_at IS NULL
    AND NOT alarm.is_kept
    AND NOT EXISTS (
        SELECT 1
        FROM unnest(:lamps ::text[], :numbers ::integer[]) AS lit (lamp, number)
        WHERE
            lit.lamp = alarm.lamp
            AND lit.number = alarm.number
    );

-- name: raise_alarms
-- Store the alarms that do not stand yet, and by which label event those that stand were raised.
INSERT INTO monitor_alarm AS alarm (monitor_id, lamp, number, label_event_id)
SELECT
    :monitor_id ::bigint AS monitor_id,
    lit.lamp,
    lit.number,
    lit.event_id
FROM unnest(:lamps ::text[], :numbers ::integer[], :events ::bigint[]) AS lit (lamp, number, event_id)
ORDER BY lit.event_id, lit.lamp, lit.number
ON CONFLICT (monitor_id, lamp, number) WHERE ended_at IS NULL DO UPDATE
    SET label_event_id = excluded.label_event_id
    WHERE alarm.label_event_id <> excluded.label_event_id;

-- name: standing_alarms
-- The alarms of a monitor that stand.
SELECT
    id,
    lamp,
    number,
    created_at
FROM monitor_alarm
WHERE
    monitor_id = :monitor_id
    AND ended_at IS NULL
ORDER BY id;

-- name: lock_unsent
-- The standing alarms of a monitor that no webhook took, except those that another process is sending.
SELECT id
FROM monitor_alarm
WHERE
    monitor_id = :monitor_id
    AND ended_at IS NULL
    AND notified_at IS NULL
ORDER BY id
FOR UPDATE SKIP LOCKED;

-- name: set_notified
-- Record that a webhook took an alarm.
UPDATE monitor_alarm
SET notified_at = clock_timestamp()
WHERE id = :alarm_id;

-- name: behind
-- The classifiers whose calibrator in use has no monitor, or one whose newest labels are not settled, for which label
-- deadlines have passed or whose chain has seen labels since, or, if asked for, one with alarms that no webhook took.
-- Bets on right and wrong say nothing of a mean loss.
SELECT classifier.name
FROM (
    SELECT DISTINCT ON (calibrator.classifier_id)
        calibrator.classifier_id,
        calibrator.id,
        calibrator.loss,
        calibration.id AS calibration_id
    FROM calibrator
    INNER JOIN calibration ON calibrator.id = calibration.calibrator_id
    WHERE calibration.state = 'current'
    ORDER BY calibrator.classifier_id ASC, calibrator.chosen_at DESC, calibrator.id DESC
) AS used
INNER JOIN classifier ON used.classifier_id = classifier.id
LEFT JOIN
    LATERAL (
        SELECT monitor.*
        FROM monitor
        WHERE monitor.calibrator_id = used.id
        ORDER BY monitor.id DESC
        LIMIT 1
    ) AS newest
    ON TRUE
WHERE
    classifier.deleting_since IS NULL
    AND used.loss IS NULL
    AND (
        newest.settled_event IS NULL
        OR newest.settled_event < (
            SELECT max(event.id)
            FROM label_event AS event
        )
        OR newest.chain_event IS DISTINCT FROM (
            SELECT position.event
            FROM certificate
            INNER JOIN standing_position AS position ON certificate.chain_id = position.chain_id
            WHERE certificate.calibration_id = used.calibration_id
            ORDER BY position.documents DESC
            LIMIT 1
        )
        OR coalesce(
            (
                SELECT next_decision.created_at <= now() - newest.label_deadline
                FROM decision AS next_decision
                WHERE
                    newest.label_deadline IS NOT NULL
                    AND next_decision.id > newest.passed_decision
                ORDER BY next_decision.id
                LIMIT 1
            ),
            FALSE
        )
        OR (
            CAST(:unsent AS boolean)
            AND EXISTS (
                SELECT 1
                FROM monitor_alarm AS alarm
                WHERE
                    alarm.monitor_id = newest.id
                    AND alarm.ended_at IS NULL
                    AND alarm.notified_at IS NULL
            )
        )
    )
ORDER BY classifier.name;
