-- name: of_contents
-- For each digest of vector and logits, packed into one value of 16 bytes each: an exemplar that is held out and one
-- that trains with the same.
SELECT
    wanted.position,
    stored.external_id,
    stored.document_key,
    stored.split
FROM (
    SELECT
        given.position,
        substring(CAST(:digests AS bytea) FROM 16 * given.position + 1 FOR 16) AS digest
    FROM generate_series(0, octet_length(CAST(:digests AS bytea)) / 16 - 1) AS given (position)
) AS wanted
CROSS JOIN
    LATERAL (
        (
            SELECT
                held_out.external_id,
                coalesce(held_out.document_id, held_out.external_id) AS document_key,
                held_out.split
            FROM exemplar AS held_out
            WHERE
                coalesce(held_out.point_digest, held_out.content_digest) = wanted.digest
                AND held_out.split IN ('knn', 'mc', 'vp')
                -- Before a table has statistics, an index that begins with the classifier would be taken otherwise.
                AND held_out.classifier_id + 0 = :classifier_id
            ORDER BY wanted.digest
            LIMIT 1
        )
        UNION ALL
        (
            SELECT
                training.external_id,
                coalesce(training.document_id, training.external_id) AS document_key,
                training.split
            FROM exemplar AS training
            WHERE
                coalesce(training.point_digest, training.content_digest) = wanted.digest
                AND training.split = 'train'
                AND training.classifier_id + 0 = :classifier_id
            ORDER BY wanted.digest
            LIMIT 1
        )
    ) AS stored;

-- name: splits_of_documents
-- The split in which each of some documents has points that are held out.
SELECT
    wanted.document_id,
    stored.split
FROM json_array_elements_text(CAST(:document_ids AS json)) AS wanted (document_id)
CROSS JOIN
    LATERAL (
        SELECT held_out.split
        FROM exemplar AS held_out
        WHERE
            held_out.classifier_id = :classifier_id
            AND held_out.document_id = wanted.document_id
            AND held_out.split NOT IN ('train', 'scored')
        -- All have the same.
        ORDER BY wanted.document_id
        LIMIT 1
    ) AS stored;

-- name: of_documents
-- For each of some documents, an exemplar that is in one of some splits.
SELECT
    wanted.document_id,
    stored.external_id,
    stored.split
FROM json_array_elements_text(CAST(:document_ids AS json)) AS wanted (document_id)
CROSS JOIN
    LATERAL (
        SELECT
            exemplar.external_id,
            exemplar.split
        FROM exemplar
        WHERE
            exemplar.classifier_id = :classifier_id
            AND exemplar.document_id = wanted.document_id
            AND exemplar.split = ANY(:splits ::text[])
        -- Any of them will do.
        ORDER BY wanted.document_id
        LIMIT 1
    ) AS stored;

-- name: equal_documents
-- The documents, points without one among them, that hold the same points as another, each as often, if one of some is
-- among them. All are held out.
WITH member AS NOT MATERIALIZED (
    SELECT
        document_id AS document_key,
        split,
        coalesce(point_digest, content_digest) AS digest
    FROM exemplar
    WHERE
        classifier_id = :classifier_id
        AND document_id IS NOT NULL
        AND split IN ('knn', 'mc', 'vp')
    UNION ALL
    SELECT
        external_id AS document_key,
        split,
        coalesce(point_digest, content_digest) AS digest
    FROM exemplar
    WHERE
        classifier_id = :classifier_id
        AND document_id IS NULL
        AND split IN ('knn', 'mc', 'vp')
),

asked AS MATERIALIZED (
    SELECT
        given.document_key,
        (
            SELECT min(member.digest)
            FROM member
            WHERE member.document_key = given.document_key
        ) AS lowest
    FROM unnest(:document_keys ::text[]) AS given (document_key)
),

-- What is equal holds the lowest digest too.
candidate AS MATERIALIZED (
    SELECT DISTINCT found.document_key
    FROM (SELECT DISTINCT asked.lowest FROM asked) AS wanted
    CROSS JOIN
        -- The order keeps this a look-up for each digest; a join takes a table without statistics for nearly empty.
        LATERAL (
            SELECT coalesce(copy.document_id, copy.external_id) AS document_key
            FROM exemplar AS copy
            WHERE
                copy.classifier_id + 0 = :classifier_id
                AND coalesce(copy.point_digest, copy.content_digest) = wanted.lowest
                AND copy.split IN ('knn', 'mc', 'vp')
            ORDER BY copy.id
        ) AS found
),

document AS MATERIALIZED (
    SELECT
        candidate.document_key,
        held.split,
        held.points,
        held.content
    FROM candidate
    CROSS JOIN
        LATERAL (
            SELECT
                min(member.split) AS split,
                count(*) AS points,
                string_agg(member.digest, '' ORDER BY member.digest) AS content
            FROM member
            WHERE member.document_key = candidate.document_key
        ) AS held
)

SELECT
    unit.document_key,
    unit.split,
    unit.points,
    unit.number
FROM (
    SELECT
        document.document_key,
        document.split,
        document.points,
        dense_rank() OVER (ORDER BY document.content) AS number,
        count(*) OVER equal AS equal_count,
        count(asked.document_key) OVER equal AS asked_count
    FROM document
    LEFT JOIN asked ON document.document_key = asked.document_key
    WINDOW equal AS (PARTITION BY document.content)
) AS unit
WHERE unit.equal_count > 1 AND unit.asked_count > 0
ORDER BY unit.number, unit.document_key;

-- name: move
-- Put the points of documents that are held out into other splits; how many left which split for which, and how many of
-- these are of documents that are new, or newer than an exemplar.
WITH moving AS MATERIALIZED (
    SELECT
        stored.id,
        stored.split AS split_before,
        given.split,
        given.is_new
    FROM unnest(:document_keys ::text[], :splits ::text[], :are_new ::boolean[]) AS given (document_key, split, is_new)
    CROSS JOIN
        LATERAL (
            SELECT
                of_document.id,
                of_document.split
            FROM exemplar AS of_document
            WHERE
                of_document.classifier_id = :classifier_id
                AND of_document.document_id = given.document_key
            UNION ALL
            SELECT
                alone.id,
                alone.split
            FROM exemplar AS alone
            WHERE
                alone.classifier_id = :classifier_id
                AND alone.external_id = given.document_key
                AND alone.document_id IS NULL
        ) AS stored
    WHERE
        stored.split IN ('knn', 'mc', 'vp')
        AND stored.split <> given.split
),

moved AS (
    UPDATE exemplar
    SET split = moving.split
    FROM moving
    WHERE exemplar.id = moving.id
    RETURNING
        exemplar.id,
        moving.split_before,
        moving.split,
        moving.is_new
)

SELECT
    split_before,
    split,
    count(*) AS exemplars,
    count(*) FILTER (WHERE is_new OR id >= :first_new_id) AS new_exemplars
FROM moved
GROUP BY split_before, split;

-- name: without_digest
-- The next exemplars of documents whose vector and logits no digest was made of: programs from before that stored them.
SELECT id
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND document_id IS NOT NULL
    AND point_digest IS NULL
ORDER BY id
LIMIT :row_limit;

-- name: set_digests
-- Store the digests of the vectors and logits of some exemplars.
UPDATE exemplar
SET point_digest = made.digest
FROM unnest(:exemplar_ids ::bigint[], :digests ::bytea[]) AS made (id, digest)
WHERE exemplar.id = made.id;
