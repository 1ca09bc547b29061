-- name: resting_on
-- The points that have one of the given exemplars among their neighbours: those that are held out, and those on which a
-- snapshot has decided.
SELECT neighbours.exemplar_id
FROM neighbours
INNER JOIN exemplar ON neighbours.exemplar_id = exemplar.id
WHERE
    neighbours.neighbour_ids && :neighbour_ids ::bigint[]
    AND (
        exemplar.split IN ('knn', 'mc', 'vp')
        OR EXISTS (
            SELECT 1
            FROM decision
            WHERE
                decision.calibration_id = :calibration_id
                AND decision.exemplar_id = exemplar.id
        )
    )
ORDER BY neighbours.exemplar_id;

-- name: newest_decisions
-- The newest decision of a snapshot on each exemplar.
SELECT max(id) AS id
FROM decision
WHERE calibration_id = :calibration_id
GROUP BY exemplar_id
ORDER BY exemplar_id;

-- name: decided
-- The given decisions, in the given order, with one look-up per id, whatever the statistics say.
SELECT
    stored.exemplar_id,
    stored.weighted,
    stored.require_full_match,
    coalesce(stored.decision, -1) AS decision,
    stored.match_count,
    stored.distance,
    stored.logits
FROM unnest(:decision_ids ::bigint[]) WITH ORDINALITY AS wanted (id, position)
CROSS JOIN
    LATERAL (
        SELECT decision.*
        FROM decision
        WHERE decision.id = wanted.id
        -- There is one. The limit keeps this from becoming a join, and ordering a single row costs nothing.
        ORDER BY decision.id
        LIMIT 1
    ) AS stored
ORDER BY wanted.position;
