-- The classifiers, a row for each generation: which extractor its vectors come from, and whether it is the current one.
CREATE VIEW report.classifier_v1 AS
SELECT
    -- Name by which all views refer to the generation: the classifier's own if it is current, otherwise NAME@NUMBER.
    classifier.name AS classifier,
    -- Number among the generations of the same classifier.
    classifier.generation,
    -- Whether the classifier's name stands for it.
    classifier.is_current,
    -- Name by which all views refer to the current generation of the same classifier.
    present.name AS current_generation,
    -- Version of the extractor that its vectors come from; null if it was not stated.
    classifier.extractor,
    -- Name of each class; the position, counted from 0, is the class number.
    classifier.class_names,
    -- D, length of an exemplar vector; null if it has logits only.
    classifier.dimension,
    -- K, neighbours of the KNN approximation; null if it has logits only.
    classifier.neighbour_count,
    -- When it was created.
    classifier.created_at
FROM venn_admit.classifier AS classifier
INNER JOIN venn_admit.classifier AS present
    ON
        coalesce(present.original_id, present.id) = coalesce(classifier.original_id, classifier.id)
        AND present.is_current;
