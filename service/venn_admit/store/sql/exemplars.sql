-- name: allocate_exemplar_ids
-- Keys for new exemplars, ascending, packed into one value; null for none.
WITH counter AS MATERIALIZED (
    -- The sequence is looked up once; for each row that would take twenty times as long as the key itself.
    SELECT pg_get_serial_sequence('exemplar', 'id')::regclass AS name
)

SELECT string_agg(int8send(nextval(counter.name)), '')
FROM counter
CROSS JOIN generate_series(1, :count);

-- name: known_exemplars
-- The stored content of some of the user's ids.
SELECT
    id,
    external_id,
    content_digest,
    label,
    split
FROM exemplar
WHERE
    classifier_id = :classifier_id
    -- As JSON, thousands of ids are written and read in a tenth of the time that an array of them takes.
    AND external_id = ANY(
        array(
            SELECT given.external_id
            FROM json_array_elements_text(CAST(:external_ids AS json)) AS given (external_id)
        )
    );

-- name: split_counts
-- The number of exemplars in each split of some classifiers, and how many of them have a label.
SELECT
    classifier_id,
    split,
    count(*) AS exemplars,
    count(label) AS labelled
FROM exemplar
WHERE classifier_id = ANY(:classifier_ids ::integer[])
GROUP BY classifier_id, split;

-- name: split_classes
-- Two of the classes that occur in a split, or all if there are fewer, without those of training exemplars that wait.
-- Mostly a few rows are read, where all classes would take the whole split.
WITH oldest AS (
    SELECT label
    FROM exemplar
    WHERE
        classifier_id = :classifier_id
        AND split = :split
        AND (split <> 'train' OR id <= :support_version)
    ORDER BY id
    LIMIT 1
)

SELECT label
FROM oldest
UNION ALL
(
    SELECT exemplar.label
    FROM exemplar
    INNER JOIN oldest ON exemplar.label <> oldest.label
    WHERE
        exemplar.classifier_id = :classifier_id
        AND exemplar.split = :split
        AND (exemplar.split <> 'train' OR exemplar.id <= :support_version)
    ORDER BY exemplar.id
    LIMIT 1
);

-- name: in_split
-- Those of some exemplars that are in a split.
SELECT id
FROM exemplar
WHERE
    id = any(:exemplar_ids ::bigint[])
    AND split = :split
ORDER BY id;

-- name: support_ids
-- The training exemplars of a support version after an id in order of ingestion, packed into one value; null if there
-- are none.
SELECT string_agg(int8send(id), '' ORDER BY id)
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND split = 'train'
    AND id > :after
    AND id <= :support_version;

-- name: support_fingerprint
-- A digest of the training exemplars up to an id, their labels and their contents.
SELECT sha256(coalesce(string_agg(int8send(id) || int4send(label) || content_digest, '' ORDER BY id), ''))
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND split = 'train'
    AND id <= :up_to;

-- name: support
-- The training exemplars between each two ids, both inclusive, without their vectors, packed in order of ingestion.
SELECT packed.block
FROM unnest(:first_ids ::bigint[], :last_ids ::bigint[]) WITH ORDINALITY AS part (first_id, last_id, position)
CROSS JOIN
    LATERAL (
        SELECT string_agg(record_send(training), '' ORDER BY training.id) AS block
        FROM (
            SELECT
                exemplar.id,
                exemplar.label,
                exemplar.network_logits
            FROM exemplar
            WHERE
                exemplar.classifier_id = :classifier_id
                AND exemplar.split = 'train'
                AND exemplar.id BETWEEN part.first_id AND part.last_id
        ) AS training
    ) AS packed
ORDER BY part.position;

-- name: support_vectors
-- The vectors of the training exemplars between each two ids, both inclusive, packed in order of ingestion.
SELECT packed.block
FROM unnest(:first_ids ::bigint[], :last_ids ::bigint[]) WITH ORDINALITY AS part (first_id, last_id, position)
CROSS JOIN
    LATERAL (
        SELECT string_agg(record_send(training), '' ORDER BY training.exemplar_id) AS block
        FROM (
            SELECT
                exemplar_vector.exemplar_id,
                exemplar_vector.vector
            FROM exemplar_vector
            WHERE
                exemplar_vector.classifier_id = :classifier_id
                AND exemplar_vector.support
                AND exemplar_vector.exemplar_id BETWEEN part.first_id AND part.last_id
        ) AS training
    ) AS packed
ORDER BY part.position;

-- name: vectors
-- The vectors of the given exemplars, in the given order, with one look-up per id. A plain join would read whole
-- partitions as long as they have no statistics.
SELECT
    wanted.exemplar_id,
    stored.vector
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
CROSS JOIN
    LATERAL (
        -- Each side names the complete key.
        SELECT held_out.vector
        FROM exemplar_vector AS held_out
        WHERE
            held_out.classifier_id = :classifier_id
            AND NOT held_out.support
            AND held_out.exemplar_id = wanted.exemplar_id
        UNION ALL
        SELECT training.vector
        FROM exemplar_vector AS training
        WHERE
            training.classifier_id = :classifier_id
            AND training.support
            AND training.exemplar_id = wanted.exemplar_id
        -- The vector is on one of the two sides. The limit also keeps this from becoming a join.
        LIMIT 1
    ) AS stored
ORDER BY wanted.position;

-- name: split_keys
-- The exemplars of a split and the keys by which training halves them, the document or else the exemplar itself. The
-- order is neither that of arrival nor one that depends on the server's locale, because rounding of sums depends on it.
SELECT
    id,
    external_id,
    coalesce(document_id, external_id) AS document_key,
    coalesce(point_digest, content_digest) AS point_digest
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND split = :split
ORDER BY external_id COLLATE "C";

-- name: keys
-- External ids and split keys of the given exemplars, in the given order.
SELECT
    exemplar.external_id,
    coalesce(exemplar.document_id, exemplar.external_id) AS document_key,
    -- Equal logits alone make no copy.
    CASE
        WHEN classifier.dimension IS NOT NULL THEN coalesce(exemplar.point_digest, exemplar.content_digest)
    END AS point_digest
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
INNER JOIN classifier ON exemplar.classifier_id = classifier.id
ORDER BY wanted.position;

-- name: count_stored
-- How many of the given exemplars are stored.
SELECT count(*)
FROM exemplar
WHERE id = ANY(:exemplar_ids);

-- name: network_logits
-- The network's logits of the given exemplars, in the given order.
SELECT exemplar.network_logits
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
ORDER BY wanted.position;

-- name: split_logits
-- A labelled split in order of ingestion, with the network's logits.
SELECT
    id,
    label,
    network_logits
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND split = :split
ORDER BY id;

-- name: labels
-- The labels of the given exemplars, in the given order.
SELECT exemplar.label
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
ORDER BY wanted.position;

-- name: export_exemplars
-- The rows that `export --what exemplars` writes.
SELECT
    external_id,
    split,
    label,
    network_predicted
FROM exemplar
WHERE classifier_id = :classifier_id
ORDER BY id;

-- name: group_values
-- The group of each of the given exemplars by an attribute, in the given order; null for one in none.
SELECT venn_admit.group_value_v1(exemplar.attributes -> :attribute) AS value
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
ORDER BY wanted.position;

-- name: described
-- Exemplars as their users know them, in the given order.
SELECT
    exemplar.external_id,
    exemplar.network_predicted,
    exemplar.attributes
FROM unnest(:exemplar_ids ::bigint[]) WITH ORDINALITY AS wanted (exemplar_id, position)
INNER JOIN exemplar ON wanted.exemplar_id = exemplar.id
ORDER BY wanted.position;
