-- name: labelled_exemplars
-- The stored exemplars that labels came for, with one look-up per id. A plain join would read the whole classifier as
-- long as it has no statistics. is_reviewed: whether a label counts for the draw.
SELECT
    stored.*,
    coalesce(draw.is_drawn, FALSE) AS is_drawn,
    draw.key,
    draw.content,
    draw.admitted_rates,
    draw.rejected_rate,
    counting.id IS NOT NULL AS is_reviewed
FROM (SELECT DISTINCT unnest(:external_ids ::text[]) AS external_id) AS labelled
CROSS JOIN
    LATERAL (
        SELECT
            exemplar.id,
            exemplar.external_id,
            exemplar.split,
            exemplar.label,
            exemplar.document_id,
            coalesce(exemplar.point_digest, exemplar.content_digest) AS point_digest
        FROM exemplar
        WHERE
            exemplar.classifier_id = :classifier_id
            AND exemplar.external_id = labelled.external_id
        ORDER BY exemplar.id
        -- There is one at most. The limit keeps this from becoming a join.
        LIMIT 1
    ) AS stored
LEFT JOIN
    LATERAL (
        SELECT
            audit_draw.is_drawn,
            audit_draw.content,
            rule.key,
            rule.admitted_rates,
            rule.rejected_rate
        FROM audit_draw
        INNER JOIN audit_rule AS rule ON audit_draw.audit_rule_id = rule.id
        WHERE audit_draw.exemplar_id = stored.id
        ORDER BY audit_draw.exemplar_id
        LIMIT 1
    ) AS draw
    ON TRUE
LEFT JOIN
    LATERAL (
        SELECT event.id
        FROM standing_label_v2 AS event
        WHERE
            event.exemplar_id = stored.id
            AND event.label IS NOT NULL
            AND draw.is_drawn
        ORDER BY event.id
        LIMIT 1
    ) AS counting
    ON TRUE;

-- name: drawn_beside
-- A drawn point of one of some documents that is neither among some points nor has a label that counts.
SELECT
    exemplar.external_id,
    exemplar.document_id
FROM exemplar
INNER JOIN audit_draw AS draw ON exemplar.id = draw.exemplar_id
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.document_id = ANY(:document_ids ::text[])
    AND exemplar.id <> all(:exemplar_ids ::bigint[])
    AND draw.is_drawn
    AND NOT EXISTS (
        SELECT
        FROM standing_label_v2 AS event
        WHERE
            event.exemplar_id = exemplar.id
            AND event.label IS NOT NULL
    )
ORDER BY
    exemplar.document_id,
    exemplar.external_id
LIMIT 1;

-- name: set_labels
-- Set the current labels, null if retracted, and the split that they put the exemplar in.
UPDATE exemplar
SET
    label = changed.label,
    split = changed.split
FROM unnest(:exemplar_ids ::bigint[], :labels ::integer[], :splits ::text[]) AS changed (id, label, split)
WHERE exemplar.id = changed.id;

-- name: labelled_later
-- The exemplars in some splits, from one on, that came without a label, such as by being scored.
SELECT
    exemplar.id,
    exemplar.external_id
FROM exemplar
CROSS JOIN
    LATERAL (
        SELECT min(event.created_at) AS labelled_at
        FROM label_event AS event
        WHERE event.exemplar_id = exemplar.id
    ) AS first_label
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split = ANY(:splits)
    AND exemplar.id >= :first_id
    AND first_label.labelled_at > exemplar.created_at;

-- name: settle_reviews
-- Let exemplars wait for reviewers no longer, or again if their label was taken back. Drawn ones wait for a label that
-- counts for the draw. Others wait for several of them in the same order.
WITH changed AS (
    SELECT
        review_point.exemplar_id,
        given.label
    FROM unnest(:exemplar_ids ::bigint[], :labels ::integer[]) AS given (id, label)
    INNER JOIN review_point ON given.id = review_point.exemplar_id
    ORDER BY review_point.exemplar_id
    FOR UPDATE OF review_point
)

UPDATE review_point
SET
    done_at = CASE
        WHEN
            changed.label IS NOT NULL
            AND (
                NOT review_point.is_drawn
                OR EXISTS (
                    SELECT
                    FROM standing_label_v2 AS event
                    WHERE
                        event.exemplar_id = review_point.exemplar_id
                        AND event.label IS NOT NULL
                )
            )
            THEN now()
    END,
    reviewer = NULL,
    claimed_at = NULL,
    lease_until = NULL
FROM changed
WHERE review_point.exemplar_id = changed.exemplar_id;

-- name: labels_of_other_generations
-- The ledgers that exemplars of other generations of a classifier have, of those that it does not have itself.
SELECT DISTINCT ON (exemplar.external_id)
    exemplar.external_id,
    exemplar.id AS exemplar_id,
    exemplar.label,
    generation.name AS generation,
    ledger.labels,
    ledger.is_random
FROM classifier AS generation
INNER JOIN exemplar
    ON
        generation.id = exemplar.classifier_id
        AND exemplar.external_id = ANY(:external_ids)
CROSS JOIN
    LATERAL (
        SELECT coalesce(max(event.id), 0) AS event_id
        FROM label_event AS event
        WHERE
            event.exemplar_id = exemplar.id
            AND event.label IS NULL
    ) AS retraction
CROSS JOIN
    LATERAL (
        SELECT
            array_agg(DISTINCT event.label) FILTER (WHERE event.label IS NOT NULL) AS labels,
            -- Whether a label by which it calibrates came since the last retraction.
            bool_or(
                (
                    event.selection = 'random'
                    OR (
                        event.selection = 'review'
                        AND exemplar.split IN ('knn', 'mc', 'vp')
                    )
                )
                AND event.id > retraction.event_id
            ) AS is_random,
            max(coalesce(event.first_arrived_at, event.created_at)) AS newest
        FROM label_event AS event
        WHERE event.exemplar_id = exemplar.id
    ) AS ledger
WHERE
    coalesce(generation.original_id, generation.id) = :first_id
    AND generation.id <> :classifier_id
    AND ledger.newest IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM exemplar AS own
        WHERE
            own.classifier_id = :classifier_id
            AND own.external_id = exemplar.external_id
    )
-- All generations that have an exemplar have its newest label, unless that came with a file of one of them.
ORDER BY exemplar.external_id ASC, ledger.newest DESC, generation.generation DESC;

-- name: carry_events
-- Append the ledgers of some exemplars to those of others, with the times at which the labels arrived.
INSERT INTO label_event (exemplar_id, label, selection, source, first_arrived_at)
SELECT
    carried.exemplar_id,
    event.label,
    -- It was drawn by what another generation decided, and only those that calibrate are a random sample all the same.
    CASE
        WHEN event.selection <> 'review' THEN event.selection
        WHEN exemplar.split IN ('knn', 'mc', 'vp') THEN 'random'
        ELSE 'selected'
    END AS selection,
    event.source,
    coalesce(event.first_arrived_at, event.created_at)
FROM unnest(:exemplar_ids ::bigint[], :of_ids ::bigint[]) AS carried (exemplar_id, of_id)
INNER JOIN exemplar ON carried.of_id = exemplar.id
INNER JOIN label_event AS event ON carried.of_id = event.exemplar_id
ORDER BY event.id;

-- name: newest_labels
-- The newest labels of a classifier that still hold, the last first, among the newest events of all
-- classifiers.
SELECT
    labelled.external_id,
    labelled.label,
    labelled.split,
    event.selection,
    event.source,
    event.created_at
FROM (
    SELECT newest.*
    FROM label_event AS newest
    ORDER BY newest.id DESC
    LIMIT :looked_at
) AS event
CROSS JOIN
    LATERAL (
        SELECT exemplar.*
        FROM exemplar
        WHERE exemplar.id = event.exemplar_id
        ORDER BY exemplar.id
        -- As in `labelled_exemplars`.
        LIMIT 1
    ) AS labelled
WHERE
    labelled.classifier_id = :classifier_id
    AND labelled.label IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM label_event AS later
        WHERE
            later.exemplar_id = event.exemplar_id
            AND later.id > event.id
    )
ORDER BY event.id DESC
LIMIT :row_limit;

-- name: newest_event_of_exemplar
-- The event that gave an exemplar its label.
SELECT
    selection,
    source,
    created_at
FROM label_event
WHERE exemplar_id = :exemplar_id
ORDER BY id DESC
LIMIT 1;
