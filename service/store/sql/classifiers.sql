-- name: create_classifier
-- Insert a classifier; no row if the name is taken.
INSERT INTO classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)
VALUES (:name, :class_names, :dimension, :neighbour_count, :knn_share, :mc_share, :seed)
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- name: create_vector_partitions
-- Create the partitions for the vectors of a new classifier.
SELECT create_vector_partitions_v2(:classifier_id, :dimension);

-- name: classifier_by_name
-- A classifier, by its name.
SELECT
    id,
    name,
    class_names,
    dimension,
    neighbour_count,
    knn_share,
    mc_share,
    seed,
    support_revision,
    support_version,
    neighbours_support_version,
    created_at
FROM classifier
WHERE name = :name;

-- name: classifier_by_id
-- A classifier, by its key.
SELECT
    id,
    name,
    class_names,
    dimension,
    neighbour_count,
    knn_share,
    mc_share,
    seed,
    support_revision,
    support_version,
    neighbours_support_version,
    created_at
FROM classifier
WHERE id = :classifier_id;

-- name: classifiers
-- Every classifier.
SELECT
    id,
    name,
    class_names,
    dimension,
    neighbour_count,
    knn_share,
    mc_share,
    seed,
    support_revision,
    support_version,
    neighbours_support_version,
    created_at
FROM classifier
ORDER BY name;

-- name: classifier_names
-- The name of every classifier, for a message that lists them.
SELECT name
FROM classifier
ORDER BY name;

-- name: lock_classifier
-- Keep others from changing the row; what refers to it can be written all the same.
SELECT id
FROM classifier
WHERE id = :classifier_id
FOR NO KEY UPDATE;

-- name: rename_classifier
-- Rename a classifier; everything stored refers to its key.
UPDATE classifier
SET name = :name
WHERE id = :classifier_id;

-- name: lock_ingestion
-- Allow one ingestion per classifier at a time, so that ids ascend in the order in which exemplars become visible.
SELECT pg_advisory_xact_lock(1, :classifier_id);
