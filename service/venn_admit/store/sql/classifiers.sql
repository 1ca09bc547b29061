-- All columns are asked for by `*` of a view alone: those of a versioned view do not change.
-- noqa: disable=AM04

-- name: create_classifier
-- Insert a classifier; no row if the name is taken.
INSERT INTO classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed, extractor)
VALUES (:name, :class_names, :dimension, :neighbour_count, :knn_share, :mc_share, :seed, :extractor)
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- name: create_vector_partitions
-- Create the partitions for the vectors of a new classifier.
SELECT create_vector_partitions_v2(:classifier_id, :dimension);

-- name: classifier_by_name
-- A classifier, by its name; or a generation of it, by NAME@NUMBER, also if it is the one that the name stands for.
SELECT *
FROM classifier_row_v1
WHERE
    name = :name
    OR (
        is_current
        AND name = :shared_name
        AND generation = :generation
    )
-- Names of this form may be older than generations.
ORDER BY (name = :name) DESC
LIMIT 1;

-- name: classifier_by_id
-- A classifier, by its key.
SELECT *
FROM classifier_row_v1
WHERE id = :classifier_id;

-- name: classifiers
-- Classifiers and their generations, by name: all, or those of one classifier, from a name on, and up to a limit.
SELECT *
FROM classifier_row_v1
WHERE
    (
        CAST(:shared_name AS text) IS NULL
        OR name = CASE WHEN is_current THEN :shared_name ELSE :shared_name || '@' || generation END
    )
    AND (CAST(:after AS text) IS NULL OR name > :after)
ORDER BY name
LIMIT CAST(:row_limit AS bigint);

-- name: classifier_names
-- The name of every classifier, for a message that lists them.
SELECT name
FROM classifier
ORDER BY name;

-- name: lock_classifier
-- Keep others from changing the generations of a classifier; what refers to them can be written all the same.
SELECT id
FROM classifier
WHERE coalesce(original_id, id) = :first_id
ORDER BY id
FOR NO KEY UPDATE;

-- name: rename_classifier
-- Rename a classifier with all its generations; everything stored refers to their keys.
UPDATE classifier
SET name = CASE WHEN is_current THEN :name ELSE :name || '@' || generation END
WHERE coalesce(original_id, id) = :first_id;

-- name: generations
-- The generations of a classifier, in the order of their numbers.
SELECT *
FROM classifier_row_v1
WHERE first_id = :first_id
ORDER BY generation;

-- name: names_of_others
-- The given names that other classifiers have.
SELECT name
FROM classifier
WHERE
    name = ANY(:names)
    AND coalesce(original_id, id) <> :first_id
ORDER BY name;

-- name: add_generation
-- Insert a generation of a classifier, which is not current; it divides held-out data as the others do.
INSERT INTO classifier (
    name,
    class_names,
    dimension,
    neighbour_count,
    knn_share,
    mc_share,
    seed,
    extractor,
    generation,
    is_current,
    original_id,
    salt
)
SELECT
    :name,
    class_names,
    :dimension,
    neighbour_count,
    knn_share,
    mc_share,
    seed,
    :extractor,
    :generation,
    FALSE,
    id,
    salt
FROM classifier
WHERE id = :first_id
RETURNING id;

-- name: take_name
-- Have the name of a classifier no longer stand for its current generation, which is then addressed by its number.
UPDATE classifier
SET
    name = name || '@' || generation,
    is_current = FALSE
WHERE
    id = :classifier_id
    AND is_current;

-- name: give_name
-- Have the name of a classifier stand for one of its generations.
UPDATE classifier
SET
    name = :name,
    is_current = TRUE
WHERE id = :classifier_id;

-- name: set_extractor
-- State which extractor the vectors of a generation come from.
UPDATE classifier
SET extractor = :extractor
WHERE id = :classifier_id;

-- name: has_results
-- Whether parameters were fitted, or work is under way, that what is stored has K neighbours for.
SELECT
    EXISTS (
        SELECT
        FROM knn_parameters
        WHERE classifier_id = :classifier_id
    )
    OR EXISTS (
        SELECT
        FROM job
        WHERE
            classifier_id = :classifier_id
            AND state = 'running'
    );

-- name: set_neighbour_count
-- Change K, and delete the lists of neighbours of a fit that came to nothing.
WITH deleted AS (
    DELETE FROM neighbours
    USING exemplar
    WHERE
        neighbours.exemplar_id = exemplar.id
        AND exemplar.classifier_id = :classifier_id
)

UPDATE classifier
SET neighbour_count = :neighbour_count
WHERE id = :classifier_id;

-- name: lock_ingestion
-- Allow one ingestion per classifier at a time, so that ids ascend in the order in which exemplars become visible.
SELECT pg_advisory_xact_lock(1, :classifier_id);
