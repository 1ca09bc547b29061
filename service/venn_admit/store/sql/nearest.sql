-- name: nearest
-- The training exemplars nearest to a vector, with what an approximation needs of them, by a scan of all. Only
-- identifiers are sorted; the vectors of the few that remain are read by key. No index of pgvector can serve this: the
-- column has no fixed dimension, and each index is on an expression that has one. Those that wait are among them if
-- :with_waiting; planned again for each call, the statement then has no condition to check on every row.
WITH nearest AS MATERIALIZED (
    SELECT
        exemplar_id,
        vector <-> :vector ::vector AS float32_distance
    FROM exemplar_vector
    WHERE
        classifier_id = :classifier_id
        AND support
        AND (
            :with_waiting
            -- The sum keeps this from becoming a search by the key, which takes twice as long.
            OR exemplar_id + 0 <= (
                SELECT classifier.support_version
                FROM classifier
                WHERE classifier.id = :classifier_id
            )
        )
    ORDER BY vector <-> :vector ::vector
    LIMIT :count
)

SELECT
    nearest.exemplar_id,
    nearest.float32_distance,
    known.vector,
    known.label,
    known.network_logits,
    nearest.exemplar_id > classifier.support_version AS waits
FROM nearest
INNER JOIN classifier ON classifier.id = :classifier_id
CROSS JOIN
    LATERAL (
        SELECT
            stored.vector,
            exemplar.label,
            exemplar.network_logits
        FROM exemplar_vector AS stored
        INNER JOIN exemplar ON stored.exemplar_id = exemplar.id
        WHERE
            stored.classifier_id = :classifier_id
            AND stored.support
            AND stored.exemplar_id = nearest.exemplar_id
        -- There is one row; without a limit this might become a join that reads whole tables.
        ORDER BY stored.exemplar_id
        LIMIT 1
    ) AS known;

-- name: within
-- All training exemplars that are no farther than a given distance.
SELECT
    stored.exemplar_id,
    stored.vector <-> :vector ::vector AS float32_distance,
    stored.vector,
    exemplar.label,
    exemplar.network_logits
FROM exemplar_vector AS stored
INNER JOIN exemplar ON stored.exemplar_id = exemplar.id
WHERE
    stored.classifier_id = :classifier_id
    AND stored.support
    AND stored.exemplar_id + 0 <= (
        SELECT classifier.support_version
        FROM classifier
        WHERE classifier.id = :classifier_id
    )
    AND stored.vector <-> :vector ::vector <= :reach ::float8;

-- name: nearest_by_hnsw
-- The result of `nearest` by the index, approximate. Nothing is sorted, so vectors are returned as well. The function
-- call is what a cast to vector(D) stands for, which is what the index is on; a cast takes no parameter.
WITH nearest AS MATERIALIZED (
    SELECT
        exemplar_id,
        vector,
        vector <-> :vector ::vector AS float32_distance
    FROM exemplar_vector
    WHERE
        classifier_id = :classifier_id
        AND support
        -- Without those that wait; about the sum, see `nearest`.
        AND exemplar_id + 0 <= (
            SELECT classifier.support_version
            FROM classifier
            WHERE classifier.id = :classifier_id
        )
    ORDER BY vector(vector, :dimension, TRUE) <-> :vector ::vector
    LIMIT :count
)

SELECT
    nearest.exemplar_id,
    nearest.float32_distance,
    nearest.vector,
    known.label,
    known.network_logits
FROM nearest
CROSS JOIN
    LATERAL (
        SELECT
            exemplar.label,
            exemplar.network_logits
        FROM exemplar
        WHERE exemplar.id = nearest.exemplar_id
        ORDER BY exemplar.id
        LIMIT 1
    ) AS known;
