-- name: begin_push
-- Wait until nobody else sends points of a queue of any generation of a classifier to a tool; held until `end_push`.
SELECT pg_advisory_lock(8, :first_id);

-- name: end_push
-- Let others send.
SELECT pg_advisory_unlock(8, :first_id);

-- name: begin_fill
-- Note that the queue of a classifier is filled now; no row if that was done within the last seconds. Others wait until
-- it is done.
INSERT INTO review_queue (classifier_id, filled_at)
VALUES (:classifier_id, now())
ON CONFLICT (classifier_id) DO UPDATE
    SET filled_at = now()
    WHERE review_queue.filled_at < now() - make_interval(secs => :seconds)
RETURNING classifier_id;

-- name: take_out
-- Take out the points that nobody has claimed and that were decided on again: the newest decision counts. Those that
-- somebody claims at this moment stay; to wait for a claim that waits for this to end would be a deadlock.
WITH free AS (
    SELECT exemplar_id
    FROM review_point
    WHERE
        classifier_id = :classifier_id
        AND (done_at IS NULL) = TRUE
        AND (lease_until IS NULL OR lease_until < now())
        AND EXISTS (
            SELECT
            FROM decision
            WHERE
                decision.exemplar_id = review_point.exemplar_id
                AND decision.id > review_point.decision_id
        )
    FOR UPDATE OF review_point SKIP LOCKED
)

DELETE FROM review_point
USING free
WHERE review_point.exemplar_id = free.exemplar_id;

-- name: fill
-- Put in the points without a label that the newest decision on them rejects, and those that were drawn to be audited
-- and have no label that counts for it.
WITH wanted AS (
    SELECT
        exemplar.id AS exemplar_id,
        decision.id AS decision_id,
        decision.reason,
        decision.lower
    FROM calibrator
    INNER JOIN calibration ON calibrator.id = calibration.calibrator_id
    INNER JOIN decision ON calibration.id = decision.calibration_id
    INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
    WHERE
        calibrator.classifier_id = :classifier_id
        -- As the index has it.
        AND (decision.decision IS NOT NULL) = FALSE
        AND exemplar.split = 'scored'
        AND exemplar.label IS NULL
        AND NOT EXISTS (
            SELECT
            FROM review_point
            WHERE review_point.exemplar_id = decision.exemplar_id
        )
        AND NOT EXISTS (
            SELECT
            FROM decision AS later
            WHERE
                later.exemplar_id = decision.exemplar_id
                AND later.id > decision.id
        )
    UNION DISTINCT
    SELECT
        exemplar.id AS exemplar_id,
        newest.decision_id,
        newest.reason,
        newest.lower
    FROM audit_rule AS rule
    INNER JOIN audit_draw AS draw ON rule.id = draw.audit_rule_id
    INNER JOIN exemplar ON draw.exemplar_id = exemplar.id
    CROSS JOIN
        LATERAL (
            SELECT
                decision.id AS decision_id,
                decision.reason,
                decision.lower
            FROM decision
            WHERE decision.exemplar_id = exemplar.id
            ORDER BY decision.id + 0 DESC
            LIMIT 1
        ) AS newest
    WHERE
        rule.classifier_id = :classifier_id
        AND draw.is_drawn
        AND exemplar.split = 'scored'
        -- A label of another kind, such as that of a complaint, does not count for the draw.
        AND (
            exemplar.label IS NULL
            OR NOT EXISTS (
                SELECT
                FROM standing_label_v2 AS event
                WHERE
                    event.exemplar_id = exemplar.id
                    AND event.label IS NOT NULL
            )
        )
        AND NOT EXISTS (
            SELECT
            FROM review_point
            WHERE review_point.exemplar_id = exemplar.id
        )
)

INSERT INTO review_point (exemplar_id, classifier_id, decision_id, reason, due, lower, near_id, is_drawn)
SELECT
    wanted.exemplar_id,
    exemplar.classifier_id,
    wanted.decision_id,
    wanted.reason,
    substring(exemplar.attributes ->> 'due' FROM '^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))') AS due,
    wanted.lower,
    neighbours.neighbour_ids[1] AS near_id,
    coalesce(draw.is_drawn, FALSE) AS is_drawn
FROM wanted
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
LEFT JOIN neighbours ON wanted.exemplar_id = neighbours.exemplar_id
LEFT JOIN audit_draw AS draw ON wanted.exemplar_id = draw.exemplar_id
ON CONFLICT (exemplar_id) DO NOTHING;

-- name: arrange
-- Give the points without a place theirs, and move their near duplicates there. Places ascend by the day on which a
-- point is due; drawn points come before others. Drawn points go by a hash, since an order that follows from their
-- scores would mislead what counts labels as they come. The others go by the highest lower probability that one of
-- their near duplicates had while they waited together, so that these follow it. What others change meanwhile is left
-- as it is.
WITH fresh AS MATERIALIZED (
    SELECT DISTINCT
        due,
        is_drawn,
        coalesce(near_id, -exemplar_id) AS near_id
    FROM review_point
    WHERE
        classifier_id = :classifier_id
        AND (done_at IS NULL) = TRUE
        AND place IS NULL
),

groups AS (
    SELECT
        point.exemplar_id,
        point.due,
        point.is_drawn,
        point.lower,
        fresh.near_id,
        max(greatest(point.lower, -point.place[3]))
            OVER (PARTITION BY fresh.due, fresh.is_drawn, fresh.near_id)
            AS highest
    FROM fresh
    CROSS JOIN
        LATERAL (
            SELECT one.*
            FROM review_point AS one
            WHERE
                one.classifier_id = :classifier_id
                AND coalesce(one.near_id, -one.exemplar_id) = fresh.near_id
            ORDER BY one.exemplar_id
            -- It keeps the other conditions, and with them the whole queue, out of the look-up.
            OFFSET 0
        ) AS point
    WHERE
        fresh.is_drawn = point.is_drawn
        AND fresh.due IS NOT DISTINCT FROM point.due
        AND point.done_at IS NULL
),

placed AS (
    SELECT
        exemplar_id,
        array_prepend(
            coalesce(replace(due, '-', '')::double precision, 'Infinity'),
            CASE
                WHEN is_drawn THEN ARRAY[0, ('x' || left(md5(exemplar_id::text), 12))::bit(48)::bigint]
                ELSE ARRAY[1, -coalesce(highest, '-Infinity'), near_id, -coalesce(lower, '-Infinity')]
            END
        ) AS place
    FROM groups
),

free AS (
    SELECT
        point.exemplar_id,
        point.classifier_id,
        point.decision_id,
        placed.place
    FROM placed
    CROSS JOIN
        LATERAL (
            SELECT one.*
            FROM review_point AS one
            WHERE
                one.exemplar_id = placed.exemplar_id
                AND one.place IS DISTINCT FROM placed.place
            ORDER BY one.exemplar_id
            LIMIT 1
            FOR UPDATE SKIP LOCKED
        ) AS point
)

-- All are there. An update would be a join, which without statistics compares each of them with all.
INSERT INTO review_point (exemplar_id, classifier_id, decision_id, place)
SELECT
    exemplar_id,
    classifier_id,
    decision_id,
    place
FROM free
ON CONFLICT (exemplar_id) DO UPDATE
    SET place = excluded.place;

-- name: lock_points
-- Keep others from changing the points of some exemplars, in whichever generation. All that waits for several points
-- does so in the order of their keys: in another one, each of two could wait for what the other has.
SELECT review_point.exemplar_id
FROM classifier
INNER JOIN exemplar ON classifier.id = exemplar.classifier_id
INNER JOIN review_point ON exemplar.id = review_point.exemplar_id
WHERE
    coalesce(classifier.original_id, classifier.id) = :first_id
    AND exemplar.external_id = ANY(:external_ids)
ORDER BY review_point.exemplar_id
FOR UPDATE OF review_point;

-- name: lock_held
-- The same of the points that a reviewer holds, all or some; their keys.
SELECT review_point.exemplar_id
FROM review_point
INNER JOIN exemplar ON review_point.exemplar_id = exemplar.id
WHERE
    review_point.classifier_id = :classifier_id
    AND review_point.reviewer = :reviewer
    AND review_point.lease_until >= now()
    AND (CAST(:external_ids AS text[]) IS NULL OR exemplar.external_id = ANY(:external_ids))
ORDER BY review_point.exemplar_id
FOR UPDATE OF review_point;

-- name: renew
-- Extend claims that are locked; whether each is for a second opinion. One that holds longer already, as those of a
-- sheet do, stays as it is.
UPDATE review_point
SET lease_until = greatest(review_point.lease_until, now() + make_interval(secs => :lease_seconds))
WHERE review_point.exemplar_id = ANY(:exemplar_ids)
RETURNING review_point.done_at IS NOT NULL AS is_second;

-- name: claim
-- Lease points that nobody holds to a reviewer, in the order of their places. If :again, points that one other reviewer
-- has labelled. What others take at the same moment is passed over, and so is what the reviewer left to others.
WITH free AS (
    SELECT exemplar_id
    FROM review_point
    WHERE
        classifier_id = :classifier_id
        AND (done_at IS NULL) = NOT :again
        AND (lease_until IS NULL OR lease_until < now())
        AND (reviewer = :reviewer AND lease_until = to_timestamp(0)) IS NOT TRUE
        AND (
            NOT :again
            OR (
                SELECT
                    bool_and(review_label.reviewer <> :reviewer)
                    AND count(DISTINCT review_label.reviewer) = 1
                FROM review_label
                WHERE review_label.exemplar_id = review_point.exemplar_id
            )
        )
    ORDER BY
        place ASC,
        exemplar_id ASC
    LIMIT :count
    FOR UPDATE SKIP LOCKED
)

UPDATE review_point
SET
    reviewer = :reviewer,
    claimed_at = clock_timestamp(),
    lease_until = now() + make_interval(secs => :lease_seconds)
FROM free
WHERE review_point.exemplar_id = free.exemplar_id
RETURNING review_point.exemplar_id;

-- name: held
-- The points that a reviewer holds, in the order of the queue. What was predicted is not among what is known of them.
SELECT
    review_point.exemplar_id,
    review_point.decision_id,
    review_point.reason,
    review_point.due,
    review_point.lease_until,
    exemplar.external_id,
    exemplar.document_id,
    exemplar.attributes
FROM review_point
INNER JOIN exemplar ON review_point.exemplar_id = exemplar.id
WHERE
    review_point.classifier_id = :classifier_id
    AND review_point.reviewer = :reviewer
    AND review_point.lease_until >= now()
ORDER BY
    review_point.place ASC,
    review_point.exemplar_id ASC;

-- name: admit_sets
-- The ADMIT sets of some decisions; of those that were removed, and of those of another method, there are none.
SELECT
    decision_id,
    admit_set
FROM admit_evidence
WHERE decision_id = ANY(:decision_ids);

-- name: precedents
-- Among the nearest training exemplars of some points, the nearest one of each class, in the order of the classes.
SELECT DISTINCT ON (neighbours.exemplar_id, exemplar.label)
    neighbours.exemplar_id,
    exemplar.external_id,
    exemplar.label,
    exemplar.attributes
FROM neighbours
CROSS JOIN LATERAL unnest(neighbours.neighbour_ids) WITH ORDINALITY AS near (exemplar_id, place)
INNER JOIN exemplar ON near.exemplar_id = exemplar.id
WHERE neighbours.exemplar_id = ANY(:exemplar_ids)
ORDER BY neighbours.exemplar_id, exemplar.label, near.place;

-- name: release
-- Give back claims that are locked. If :to_others, these go to others first, and are known by a lease that ended when
-- time began.
UPDATE review_point
SET
    reviewer = CASE WHEN :to_others THEN review_point.reviewer END,
    claimed_at = CASE WHEN :to_others THEN clock_timestamp() END,
    lease_until = CASE WHEN :to_others THEN to_timestamp(0) END
WHERE review_point.exemplar_id = ANY(:exemplar_ids);

-- name: offer_left
-- Let a reviewer claim points that this reviewer left to others, those that were left first.
WITH left_first AS (
    SELECT exemplar_id
    FROM review_point
    WHERE
        classifier_id = :classifier_id
        AND (done_at IS NULL) = NOT :again
        AND reviewer = :reviewer
        AND lease_until = to_timestamp(0)
    ORDER BY claimed_at
    LIMIT :count
    FOR UPDATE SKIP LOCKED
)

UPDATE review_point
SET
    reviewer = NULL,
    claimed_at = NULL,
    lease_until = NULL
FROM left_first
WHERE review_point.exemplar_id = left_first.exemplar_id;

-- name: add_labels
-- Keep the labels that a reviewer gave of exemplars of these ids, in every generation, as they stand by now.
INSERT INTO review_label (exemplar_id, reviewer, label, resolves)
SELECT
    exemplar.id,
    :reviewer,
    exemplar.label,
    :resolves
FROM classifier
INNER JOIN exemplar ON classifier.id = exemplar.classifier_id
WHERE
    coalesce(classifier.original_id, classifier.id) = :first_id
    AND exemplar.external_id = ANY(:external_ids)
    AND exemplar.label IS NOT NULL;

-- name: end_claims
-- End the claims on exemplars that were labelled, those of other reviewers too.
UPDATE review_point
SET
    done_at = coalesce(review_point.done_at, now()),
    reviewer = NULL,
    claimed_at = NULL,
    lease_until = NULL
FROM exemplar
WHERE
    review_point.exemplar_id = exemplar.id
    AND review_point.classifier_id = :classifier_id
    AND exemplar.external_id = ANY(:external_ids);

-- name: labelled
-- What is known of exemplars that a reviewer has labelled, and of no others: the label by now, what the network says,
-- and the newest decision, if one is stored. If several generations have it, that of the classifier counts, or else
-- that of the newest.
SELECT DISTINCT ON (exemplar.external_id)
    exemplar.external_id,
    exemplar.classifier_id,
    exemplar.label,
    exemplar.network_predicted,
    newest.decision_id,
    newest.predicted
FROM classifier
INNER JOIN exemplar ON classifier.id = exemplar.classifier_id
LEFT JOIN
    LATERAL (
        SELECT
            decision.id AS decision_id,
            decision.predicted
        FROM decision
        WHERE decision.exemplar_id = exemplar.id
        ORDER BY decision.id + 0 DESC
        LIMIT 1
    ) AS newest
    ON TRUE
WHERE
    coalesce(classifier.original_id, classifier.id) = :first_id
    AND classifier.deleting_since IS NULL
    AND exemplar.external_id = ANY(:external_ids)
    AND exemplar.label IS NOT NULL
    AND EXISTS (
        SELECT
        FROM review_label
        WHERE
            review_label.exemplar_id = exemplar.id
            AND review_label.reviewer = :reviewer
    )
ORDER BY
    exemplar.external_id ASC,
    (classifier.id = :classifier_id) DESC,
    classifier.generation DESC;

-- name: drawn_of_documents
-- The drawn points of the documents that some exemplars are of, with their labels, and whether these count already.
SELECT DISTINCT
    beside.external_id,
    beside.document_id,
    beside.label,
    draw.is_drawn
    AND EXISTS (
        SELECT
        FROM standing_label_v2 AS event
        WHERE
            event.exemplar_id = beside.id
            AND event.label IS NOT NULL
    ) AS is_reviewed
FROM exemplar AS given
INNER JOIN exemplar AS beside
    ON
        given.classifier_id = beside.classifier_id
        AND given.document_id = beside.document_id
INNER JOIN audit_draw AS draw ON beside.id = draw.exemplar_id
WHERE
    given.classifier_id = :classifier_id
    AND given.external_id = ANY(:external_ids)
    AND draw.is_drawn;

-- name: newest_of_reviewer
-- The newest label that a reviewer gave of each of some exemplars that any generation of a classifier has; null if
-- there is none, or if that of any reviewer was corrected or taken back in another way since. If several
-- generations have it, that of the classifier counts, or else that of the newest.
WITH stored AS (
    SELECT DISTINCT ON (exemplar.external_id)
        exemplar.id,
        exemplar.external_id,
        exemplar.label
    FROM classifier
    INNER JOIN exemplar ON classifier.id = exemplar.classifier_id
    WHERE
        coalesce(classifier.original_id, classifier.id) = :first_id
        AND classifier.deleting_since IS NULL
        AND exemplar.external_id = ANY(:external_ids)
    ORDER BY
        exemplar.external_id ASC,
        (classifier.id = :classifier_id) DESC,
        classifier.generation DESC
)

SELECT
    stored.external_id,
    CASE WHEN stored.label = newest.label THEN own.label END AS label
FROM stored
LEFT JOIN
    LATERAL (
        SELECT given.label
        FROM review_label AS given
        WHERE given.exemplar_id = stored.id
        ORDER BY given.id DESC
        LIMIT 1
    ) AS newest
    ON TRUE
LEFT JOIN
    LATERAL (
        SELECT given.label
        FROM review_label AS given
        WHERE
            given.exemplar_id = stored.id
            AND given.reviewer = :reviewer
        ORDER BY given.id DESC
        LIMIT 1
    ) AS own
    ON TRUE
ORDER BY stored.external_id;

-- name: disagreements
-- Exemplars of a classifier about which reviewers disagree, all or some: the newest labels of two of them differ, and
-- none of these ended it. A row for each reviewer and exemplar, the exemplar that was labelled last first.
WITH given AS (
    SELECT
        label.exemplar_id,
        label.id,
        label.reviewer,
        label.label,
        label.created_at,
        max(label.id) FILTER (WHERE label.resolves) OVER (PARTITION BY label.exemplar_id) AS resolved_by
    FROM review_label AS label
    INNER JOIN exemplar ON label.exemplar_id = exemplar.id
    WHERE
        exemplar.classifier_id = :classifier_id
        -- Without a label there is none that counts.
        AND exemplar.label IS NOT NULL
        AND (CAST(:external_ids AS text[]) IS NULL OR exemplar.external_id = ANY(:external_ids))
),

standing AS (
    SELECT DISTINCT ON (exemplar_id, reviewer)
        exemplar_id,
        id,
        reviewer,
        label,
        created_at
    FROM given
    WHERE id >= coalesce(resolved_by, 0)
    ORDER BY exemplar_id ASC, reviewer ASC, id DESC
),

disputed AS (
    SELECT
        exemplar_id,
        max(id) AS newest
    FROM standing
    GROUP BY exemplar_id
    HAVING count(DISTINCT label) > 1
    ORDER BY max(id) DESC
    LIMIT :row_limit
)

SELECT
    exemplar.external_id,
    exemplar.label AS counting,
    exemplar.attributes,
    standing.reviewer,
    standing.label,
    standing.created_at
FROM disputed
INNER JOIN standing ON disputed.exemplar_id = standing.exemplar_id
INNER JOIN exemplar ON disputed.exemplar_id = exemplar.id
ORDER BY disputed.newest DESC, standing.id ASC;

-- name: standing
-- How many points of a queue wait, are claimed, or were due before today.
SELECT
    count(*) FILTER (WHERE lease_until IS NULL OR lease_until < now()) AS waiting,
    count(*) FILTER (WHERE lease_until >= now()) AS claimed,
    count(*) FILTER (WHERE due < to_char(now(), 'YYYY-MM-DD')) AS overdue,
    min(due) AS first_due
FROM review_point
WHERE
    classifier_id = :classifier_id
    AND (done_at IS NULL) = TRUE;

-- name: reviewers
-- How many points each reviewer of a classifier has labelled, and holds.
SELECT
    reviewer,
    sum(labelled)::bigint AS labelled,
    sum(claimed)::bigint AS claimed
FROM (
    SELECT
        label.reviewer,
        count(DISTINCT label.exemplar_id) AS labelled,
        0 AS claimed
    FROM review_label AS label
    INNER JOIN exemplar ON label.exemplar_id = exemplar.id
    WHERE exemplar.classifier_id = :classifier_id
    GROUP BY label.reviewer
    UNION ALL
    SELECT
        point.reviewer,
        0 AS labelled,
        count(*) AS claimed
    FROM review_point AS point
    WHERE
        point.classifier_id = :classifier_id
        AND point.lease_until >= now()
    GROUP BY point.reviewer
) AS counted
GROUP BY reviewer
ORDER BY reviewer;
