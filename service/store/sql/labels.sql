-- name: labelled_exemplars
-- The stored exemplars that labels came for.
SELECT
    id,
    external_id,
    split,
    label,
    coalesce(document_id, external_id) AS document_key
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND external_id = ANY(:external_ids);

-- name: set_labels
-- Set the current labels, null if retracted, and the split that they put the exemplar in.
UPDATE exemplar
SET
    label = changed.label,
    split = changed.split
FROM unnest(:exemplar_ids ::bigint[], :labels ::integer[], :splits ::text[]) AS changed (id, label, split)
WHERE exemplar.id = changed.id;
