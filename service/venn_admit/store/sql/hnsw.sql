-- name: index
-- An HNSW index by its name, if there is one: how it was made, whether it is complete, and its size.
SELECT
    pg_index.indisvalid AS valid,
    pg_class.reloptions AS options,
    pg_relation_size(pg_class.oid) AS bytes
FROM pg_class
INNER JOIN pg_index ON pg_class.oid = pg_index.indexrelid
WHERE pg_class.oid = to_regclass(:index);

-- name: build_memory
-- How many vectors an index would hold, and how many bytes building it may take.
SELECT
    count(*) AS vectors,
    pg_size_bytes(current_setting('maintenance_work_mem')) AS allowed_bytes
FROM exemplar_vector
WHERE
    classifier_id = :classifier_id
    AND support;

-- name: allow_memory
-- Let what this session builds take so much memory.
SELECT set_config('maintenance_work_mem', :memory, FALSE);

-- name: prefer
-- Until the transaction ends, the planner sorts only if nothing else gives the order, and a search keeps the given
-- number of candidates. The result tells whether there is an index to search.
SELECT
    set_config('enable_sort', 'off', TRUE),
    set_config('hnsw.ef_search', :ef_search ::text, TRUE),
    (
        SELECT indisvalid
        FROM pg_index
        WHERE indexrelid = to_regclass(:index)
    ) AS indexed;

-- name: sample
-- Some stored points that are not training exemplars, the same ones as long as none is added.
SELECT id
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND split <> 'train'
ORDER BY md5(id::text)
LIMIT :count;
