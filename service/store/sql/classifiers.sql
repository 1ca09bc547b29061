-- name: create_classifier
-- A new classifier; no row where the name is taken.
INSERT INTO classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)
VALUES (:name, :class_names, :dimension, :neighbour_count, :knn_share, :mc_share, :seed)
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- name: create_vector_partitions
-- Where the vectors of a new classifier go.
SELECT create_vector_partitions_v2(:classifier_id, :dimension);

-- name: classifier_by_name
-- What is known of one classifier.
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
-- What is known of one classifier.
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
-- What is known of every classifier.
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
-- Every classifier, for a message that lists them.
SELECT name
FROM classifier
ORDER BY name;

-- name: rename_classifier
-- Another name; whatever is stored refers to the key.
UPDATE classifier
SET name = :name
WHERE id = :classifier_id;

-- name: lock_ingestion
-- One ingestion a classifier at a time: ids then ascend in the order in which exemplars become visible.
SELECT pg_advisory_xact_lock(1, :classifier_id);
