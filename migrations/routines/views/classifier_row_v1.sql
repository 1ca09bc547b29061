-- A generation of a classifier as the program reads it. first_id: the first generation of the same classifier.
CREATE VIEW venn_admit.classifier_row_v1 AS
SELECT
    classifier.id,
    classifier.name,
    classifier.class_names,
    classifier.dimension,
    classifier.neighbour_count,
    classifier.knn_share,
    classifier.mc_share,
    classifier.seed,
    classifier.support_revision,
    classifier.support_version,
    classifier.neighbours_support_version,
    classifier.created_at,
    classifier.extractor,
    classifier.generation,
    classifier.is_current,
    classifier.deleting_since,
    coalesce(classifier.original_id, classifier.id) AS first_id,
    addressed.address
FROM venn_admit.classifier AS classifier
INNER JOIN venn_admit.classifier_address_v1 AS addressed ON classifier.id = addressed.classifier_id;
