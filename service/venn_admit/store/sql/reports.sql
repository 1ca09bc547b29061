-- name: copies
-- How many exemplars that are held out are of documents, or points without one, that are copies of another, and of
-- another in another split; and how many have the vector and logits of one that trains.
SELECT
    of_documents.copies,
    of_documents.copies_apart,
    of_points.training_copies
FROM (
    SELECT
        CAST(coalesce(sum(unit.points) FILTER (WHERE unit.documents > 1), 0) AS bigint) AS copies,
        CAST(coalesce(sum(unit.points) FILTER (WHERE unit.first_split <> unit.last_split), 0) AS bigint) AS copies_apart
    FROM (
        SELECT
            count(*) AS documents,
            sum(document.points) AS points,
            min(document.split) AS first_split,
            max(document.split) AS last_split
        FROM (
            SELECT
                min(split) AS split,
                count(*) AS points,
                string_agg(
                    coalesce(point_digest, content_digest), '' ORDER BY coalesce(point_digest, content_digest)
                ) AS content
            FROM exemplar
            WHERE
                classifier_id = :classifier_id
                AND split IN ('knn', 'mc', 'vp')
                -- Equal logits alone make no copy.
                AND :has_vectors
            GROUP BY coalesce(document_id, external_id)
        ) AS document
        GROUP BY document.content
    ) AS unit
) AS of_documents
CROSS JOIN (
    SELECT CAST(coalesce(sum(shared.held_out) FILTER (WHERE shared.trains), 0) AS bigint) AS training_copies
    FROM (
        SELECT
            count(*) FILTER (WHERE split <> 'train') AS held_out,
            bool_or(split = 'train') AS trains
        FROM exemplar
        WHERE
            classifier_id = :classifier_id
            AND split <> 'scored'
            AND :has_vectors
        GROUP BY coalesce(point_digest, content_digest)
    ) AS shared
) AS of_points;

-- name: unlikely_logits
-- How many exemplars that are held out have logits that lie in [0, 1] and sum to 1, as probabilities do.
SELECT count(*) AS exemplars
FROM exemplar
CROSS JOIN
    LATERAL (
        SELECT sum(given.logit::double precision) AS logit_sum
        FROM unnest(exemplar.network_logits) AS given (logit)
        -- Most logits are ruled out by the first two.
        WHERE
            exemplar.network_logits[1] BETWEEN 0 AND 1
            AND exemplar.network_logits[2] BETWEEN 0 AND 1
        HAVING min(given.logit) >= 0
    ) AS of_exemplar
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split IN ('knn', 'mc', 'vp')
    AND abs(of_exemplar.logit_sum - 1) <= :tolerance;

-- name: label_selections
-- How the current labels were chosen, by the latest event of each exemplar that is no selected correction, since its
-- label was last taken back, and those of a review by the rule that drew the point. Training labels are not chosen.
SELECT
    latest.selection,
    draw.audit_rule_id AS rule,
    min(draw.probability) AS least_probability,
    max(draw.probability) AS largest_probability,
    count(*) AS exemplars,
    count(*) FILTER (WHERE exemplar.split <> 'scored') AS calibrating,
    min(latest.created_at) AS first,
    max(latest.created_at) AS newest
FROM exemplar
CROSS JOIN
    LATERAL (
        SELECT
            event.selection,
            event.created_at
        FROM label_events_since_retraction_v1(exemplar.id) AS event
        ORDER BY event.selection = 'selected' ASC, event.id DESC
        LIMIT 1
    ) AS latest
LEFT JOIN audit_draw AS draw
    ON
        exemplar.id = draw.exemplar_id
        AND latest.selection = 'review'
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split <> 'train'
    AND exemplar.label IS NOT NULL
GROUP BY
    latest.selection,
    draw.audit_rule_id
ORDER BY
    latest.selection,
    draw.audit_rule_id;

-- name: snapshot_origin
-- When and why a snapshot was made, and the parameters that it rests on, of which there are none with logits only.
SELECT
    calibration.created_at,
    calibration.reason,
    calibration.state,
    knn_parameters.dev_count,
    knn_parameters.dev_discrepancies,
    knn_parameters.is_current AS parameters_are_current
FROM calibration
LEFT JOIN knn_parameters ON calibration.knn_parameters_id = knn_parameters.id
WHERE calibration.id = :calibration_id;

-- name: snapshot_quartiles
-- The quartiles of d over all points of a snapshot.
SELECT quartiles
FROM snapshot_quartiles
WHERE calibration_id = :calibration_id;

-- name: history
-- What the newest snapshots of a classifier changed, up to a given one, and what share of its points each would admit.
SELECT
    change.calibration,
    change.created_at,
    change.reason,
    change.method,
    change.state,
    change.mc_count,
    change.vp_count,
    change.previous,
    change.arrived + greatest(-forgotten.fewer, 0) AS arrived,
    change.relabelled,
    change.gone,
    greatest(forgotten.fewer, 0) AS forgotten,
    change.moved,
    change.other_parameters,
    change.other_training,
    change.other_settings,
    judged.admitted
FROM snapshot_change_v1 AS change
LEFT JOIN
    LATERAL (
        SELECT avg(point.is_admitted::integer)::double precision AS admitted
        FROM judged_point_v1 AS point
        WHERE
            point.calibration = change.calibration
            AND point.split = CASE change.method WHEN 'venn-admit' THEN 'vp' ELSE 'mc' END
    ) AS judged
    ON change.mc_count + change.vp_count <= :countable
CROSS JOIN
    LATERAL (
        -- What is forgotten has no id, so that points that both snapshots counted cancel out. If there are more of the
        -- newer one's, they had arrived with it.
        SELECT coalesce(sum(CASE counting.id WHEN change.previous THEN 1 ELSE -1 END), 0) AS fewer
        FROM calibration AS counting
        INNER JOIN forgotten_point AS point
            ON
                counting.calibrator_id = point.calibrator_id
                AND is_in_snapshot_v1(counting.number, point.valid_from, point.valid_until)
        INNER JOIN calibration AS other
            ON other.id = CASE counting.id WHEN change.previous THEN change.calibration ELSE change.previous END
        WHERE
            counting.id IN (change.previous, change.calibration)
            AND (point.split = 'mc' OR other.vp_count > 0)
    ) AS forgotten
WHERE
    change.classifier_id = :classifier_id
    AND change.calibration <= :calibration_id
ORDER BY change.calibration DESC
LIMIT :most;

-- name: snapshot_changes
-- How the splits that a snapshot is made of, as they are now, differ from those of the snapshot. A point that moved
-- between them counts as changed, unless they are undivided.
SELECT
    count(*) FILTER (WHERE point.exemplar_id IS NULL) AS arrived,
    count(*) FILTER (WHERE point.label <> held.label OR (point.split <> held.split AND NOT :undivided)) AS changed,
    count(*) FILTER (WHERE held.id IS NULL) AS gone
FROM (
    SELECT
        id,
        split,
        label
    FROM exemplar
    WHERE
        classifier_id = :classifier_id
        AND split = any(:splits ::text[])
) AS held
FULL JOIN (
    SELECT
        exemplar_id,
        split,
        label
    FROM calibration_point
    WHERE
        calibrator_id = :calibrator_id
        AND is_in_snapshot_v1(:number, valid_from, valid_until)
) AS point
    ON held.id = point.exemplar_id;

-- name: discrepancies
-- For documents of mc and vp, or of scored exemplars: the number of documents that have a given number of points with
-- an approximation, and a given number of points on which KNN and network differ.
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

-- name: recent_rows
-- The newest decision on each exemplar of a classifier's recent traffic, whichever snapshot made it. Recent traffic is
-- the rows of the newest requests, at most row_limit in all, taken evenly from a request that has more. A reason is the
-- code beside it among the given ones, or -1. Without vectors, the KNN's logits and d are NaN here, and q is -1.
WITH request AS (
    SELECT
        newest.id,
        newest.calibration_id,
        newest.weighted,
        newest.require_full_match,
        newest.row_count,
        sum(newest.row_count) OVER (ORDER BY newest.id DESC) - newest.row_count AS rows_after
    FROM (
        SELECT job.*
        FROM job
        WHERE
            job.classifier_id = :classifier_id
            AND job.kind = 'score'
            AND job.row_count > 0
            AND job.removed_at IS NULL
        ORDER BY job.id DESC
        -- Each request has a row, so no more requests are needed.
        LIMIT :row_limit
    ) AS newest
),

wanted AS (
    SELECT DISTINCT ON (job_row.exemplar_id)
        job_row.exemplar_id,
        request.calibration_id,
        request.weighted,
        request.require_full_match
    FROM request
    CROSS JOIN
        LATERAL (
            SELECT ceil(request.row_count::numeric / (:row_limit - request.rows_after))::integer AS row_count
        ) AS stretch
    CROSS JOIN LATERAL generate_series(0, request.row_count - 1, stretch.row_count) AS sampled (row_number)
    CROSS JOIN
        LATERAL (
            SELECT row_of_job.exemplar_id
            FROM job_row AS row_of_job
            WHERE
                row_of_job.job_id = request.id
                AND row_of_job.row_number = row_of_stretch_v1(
                    sampled.row_number, stretch.row_count, request.row_count
                )
            -- There is one row. The limit keeps this from becoming a join that reads every row of a large request.
            ORDER BY row_of_job.row_number
            LIMIT 1
        ) AS job_row
    WHERE request.rows_after < :row_limit
    ORDER BY job_row.exemplar_id ASC, request.id DESC
)

SELECT
    wanted.exemplar_id,
    wanted.calibration_id,
    wanted.weighted,
    wanted.require_full_match,
    stored.predicted,
    coalesce(stored.match_count, -1) AS match_count,
    coalesce(stored.distance, 'NaN') AS distance,
    coalesce(stored.logits, array_fill('NaN'::double precision, ARRAY[:class_count])) AS logits,
    coalesce((:codes ::integer[])[array_position(:reasons ::text[], stored.reason)], -1) AS reason,
    coalesce(exemplar.label, -1) AS label,
    coalesce(
        latest.selection = 'random'
        OR (
            latest.selection = 'review'
            AND exemplar.split IN ('knn', 'mc', 'vp')
        ),
        FALSE
    ) AS is_random,
    coalesce(wanted.calibration_id = :calibration_id, FALSE)
    OR (
        calibration.knn_parameters_id IS NOT DISTINCT FROM :knn_parameters_id
        AND stored.support_version >= :support_version
    ) AS is_comparable,
    -- An exemplar that was scored first and labelled later was traffic when it was decided on.
    (
        exemplar.split IN ('train', 'knn')
        AND EXISTS (
            SELECT 1
            FROM label_event AS event
            WHERE
                event.exemplar_id = wanted.exemplar_id
                AND event.created_at < stored.created_at
        )
    )
    OR EXISTS (
        SELECT 1
        FROM calibration_point AS point
        WHERE
            point.calibrator_id = calibration.calibrator_id
            AND point.exemplar_id = wanted.exemplar_id
            AND is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)
    ) AS is_seen
FROM wanted
INNER JOIN calibration ON wanted.calibration_id = calibration.id
CROSS JOIN
    LATERAL (
        SELECT decision.*
        FROM decision
        WHERE
            decision.calibration_id = wanted.calibration_id
            AND decision.exemplar_id = wanted.exemplar_id
            AND decision.weighted = wanted.weighted
            AND decision.require_full_match = wanted.require_full_match
        ORDER BY decision.exemplar_id
        LIMIT 1
    ) AS stored
CROSS JOIN
    LATERAL (
        SELECT
            scored.label,
            scored.split
        FROM exemplar AS scored
        WHERE scored.id = wanted.exemplar_id
        ORDER BY scored.id
        LIMIT 1
    ) AS exemplar
LEFT JOIN
    LATERAL (
        SELECT event.selection
        FROM label_events_since_retraction_v1(wanted.exemplar_id) AS event
        -- A correction by anybody changes the label, and not how the point was chosen.
        ORDER BY event.selection = 'selected' ASC, event.id DESC
        LIMIT 1
    ) AS latest
    ON TRUE
ORDER BY wanted.exemplar_id;

-- name: daily_decisions
-- For each day since a given one on which requests were done: how many rows they had, and how many of some rows, taken
-- evenly from them, were decided on and admitted. At most about `sampled` rows of a day are looked up.
WITH request AS (
    SELECT
        job.id,
        job.calibration_id,
        job.weighted,
        job.require_full_match,
        job.row_count,
        job.removed_at IS NULL AS is_kept,
        (job.finished_at AT TIME ZONE 'UTC')::date AS day
    FROM job
    WHERE
        job.classifier_id = :classifier_id
        AND (job.kind = 'score') = TRUE
        AND job.finished_at >= :since
        AND job.state = 'done'
),

placed AS (
    SELECT
        request.*,
        -- The rows of a day are numbered through its requests, and one in every n of them is taken.
        sum(request.row_count) OVER (PARTITION BY request.day ORDER BY request.id) - request.row_count AS rows_before,
        ceil(sum(request.row_count) OVER (PARTITION BY request.day)::numeric / :sampled)::bigint AS every
    FROM request
    WHERE
        request.is_kept
        AND request.row_count > 0
),

looked_up AS MATERIALIZED (
    SELECT
        placed.day,
        (
            SELECT decision.decision IS NOT NULL
            FROM decision
            WHERE
                decision.calibration_id = placed.calibration_id
                -- Not a join, which might read every decision of the snapshot.
                AND decision.exemplar_id = (
                    SELECT job_row.exemplar_id
                    FROM job_row
                    WHERE
                        job_row.job_id = placed.id
                        AND job_row.row_number = row_of_stretch_v1(taken.row_number, placed.every, placed.row_count)
                )
                AND decision.weighted = placed.weighted
                AND decision.require_full_match = placed.require_full_match
            ORDER BY decision.exemplar_id
            LIMIT 1
        ) AS is_admitted
    FROM placed
    CROSS JOIN
        LATERAL generate_series(
            mod(placed.every - mod(placed.rows_before, placed.every), placed.every),
            placed.row_count - 1,
            placed.every
        ) AS taken (row_number)
)

SELECT
    request.day,
    sum(request.row_count)::bigint AS decisions,
    coalesce(seen.decided, 0) AS decided,
    coalesce(seen.admitted, 0) AS admitted
FROM request
LEFT JOIN
    (
        SELECT
            looked_up.day,
            count(looked_up.is_admitted) AS decided,
            count(*) FILTER (WHERE looked_up.is_admitted) AS admitted
        FROM looked_up
        GROUP BY looked_up.day
    ) AS seen
    ON request.day = seen.day
GROUP BY request.day, seen.decided, seen.admitted
ORDER BY request.day;

-- name: daily_labels
-- For each day since a given one: how many labels of a classifier arrived, training data aside, among the newest labels
-- of all classifiers.
SELECT
    (event.created_at AT TIME ZONE 'UTC')::date AS day,
    count(*) AS labels
FROM (
    SELECT label_event.*
    FROM label_event
    ORDER BY label_event.id DESC
    LIMIT :most
) AS event
CROSS JOIN
    LATERAL (
        SELECT
            exemplar.classifier_id,
            exemplar.split
        FROM exemplar
        WHERE exemplar.id = event.exemplar_id
        ORDER BY exemplar.id
        -- This keeps it from becoming a join that reads every exemplar. The condition on the classifier would read them
        -- too, in here.
        LIMIT 1
    ) AS labelled
WHERE
    event.created_at >= :since
    AND labelled.classifier_id = :classifier_id
    AND event.label IS NOT NULL
    AND labelled.split <> 'train'
GROUP BY day
ORDER BY day;

-- name: unlabelled_rows
-- Those of some exemplars that neither calibrate nor train, in an order that depends on neither their content nor their
-- arrival, so that the first of them are a random sample: those that somebody chose to label are among them.
SELECT
    exemplar.external_id,
    exemplar.document_id,
    classifier.class_names[exemplar.label + 1] AS label
FROM unnest(:exemplar_ids ::bigint[]) AS recent (exemplar_id)
INNER JOIN exemplar ON recent.exemplar_id = exemplar.id
INNER JOIN classifier ON exemplar.classifier_id = classifier.id
WHERE exemplar.split = 'scored'
ORDER BY md5(exemplar.external_id);

-- name: work_rows
-- As many of them, or of those of them without a label, in the same order, each with the number of all.
SELECT
    exemplar.external_id,
    exemplar.document_id,
    exemplar.label,
    exemplar.attributes,
    count(*) OVER () AS waiting
FROM unnest(:exemplar_ids ::bigint[]) AS recent (exemplar_id)
INNER JOIN exemplar ON recent.exemplar_id = exemplar.id
WHERE
    exemplar.split = 'scored'
    AND (:with_labelled OR exemplar.label IS NULL)
ORDER BY md5(exemplar.external_id)
LIMIT :row_limit;

-- name: standing
-- What tells whether a report on a snapshot would be another one now, except for traffic; and the newest request of it.
SELECT
    calibration.id AS calibration,
    calibration.revision,
    calibration.state,
    in_use.calibration_id AS in_use,
    (
        SELECT max(made.id)
        FROM calibration AS made
        INNER JOIN calibrator AS of_made ON made.calibrator_id = of_made.id
        WHERE of_made.classifier_id = classifier.id
    ) AS newest_calibration,
    (
        SELECT max(setting.retired_at)
        FROM calibrator AS setting
        WHERE setting.classifier_id = classifier.id
    ) AS newest_retirement,
    (
        SELECT parameters.id
        FROM knn_parameters AS parameters
        WHERE
            parameters.classifier_id = classifier.id
            AND parameters.is_current
    ) AS knn_parameters,
    classifier.support_version,
    -- This is of all classifiers, because it is the last entry of an index.
    (
        SELECT max(event.id)
        FROM label_event AS event
    ) AS label_event,
    watching.id AS monitor,
    watching.seen_event,
    (
        SELECT max(alarm.id)
        FROM monitor_alarm AS alarm
    ) AS alarm,
    (
        SELECT request.id
        FROM job AS request
        WHERE
            request.classifier_id = classifier.id
            AND request.kind = 'score'
        ORDER BY request.id DESC
        LIMIT 1
    ) AS newest_request
FROM calibration
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN classifier ON calibrator.classifier_id = classifier.id
LEFT JOIN calibration_in_use_v1 AS in_use ON classifier.id = in_use.classifier_id
LEFT JOIN
    LATERAL (
        SELECT
            monitor.id,
            monitor.seen_event
        FROM monitor
        WHERE monitor.calibrator_id = calibrator.id
        ORDER BY monitor.id DESC
        LIMIT 1
    ) AS watching
    ON TRUE
WHERE calibration.id = :calibration_id;
