-- name: of_contents
-- For each digest of vector and logits, packed into one value of 16 bytes each: an exemplar that is held out and one
-- that trains with the same.
SELECT
    wanted.position,
    stored.id,
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
                held_out.id,
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
                training.id,
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

-- name: connected
-- The documents, points without one among them, that copies connect with some, and these.
WITH RECURSIVE connected (document_key) AS (
    SELECT given.document_key
    FROM unnest(:document_keys ::text[]) AS given (document_key)
    UNION
    SELECT coalesce(copy.document_id, copy.external_id)
    FROM connected
    CROSS JOIN
        LATERAL (
            SELECT coalesce(of_document.point_digest, of_document.content_digest) AS digest
            FROM exemplar AS of_document
            WHERE
                of_document.classifier_id = :classifier_id
                AND of_document.document_id = connected.document_key
                AND of_document.split IN ('knn', 'mc', 'vp')
            UNION
            SELECT coalesce(alone.point_digest, alone.content_digest) AS digest
            FROM exemplar AS alone
            WHERE
                alone.classifier_id = :classifier_id
                AND alone.external_id = connected.document_key
                AND alone.document_id IS NULL
                AND alone.split IN ('knn', 'mc', 'vp')
        ) AS member
    INNER JOIN exemplar AS copy
        ON
            copy.classifier_id + 0 = :classifier_id
            AND coalesce(copy.point_digest, copy.content_digest) = member.digest
            AND copy.split IN ('knn', 'mc', 'vp')
)

SELECT document_key
FROM connected;

-- name: move
-- Put the points of documents that are held out into other splits; how many left which split for which, and how many of
-- these are newer than an exemplar.
WITH moving AS MATERIALIZED (
    SELECT
        stored.id,
        stored.split AS split_before,
        given.split
    FROM unnest(:document_keys ::text[], :splits ::text[]) AS given (document_key, split)
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
        moving.split
)

SELECT
    split_before,
    split,
    count(*) AS exemplars,
    count(*) FILTER (WHERE id >= :first_new_id) AS new_exemplars
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
