-- How many exemplars each classifier has, and how many of them have a label, by split.
CREATE VIEW report.exemplar_count_v1 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- train, knn, mc, vp or scored.
    exemplar.split,
    -- Exemplars.
    count(*) AS exemplars,
    -- Exemplars with a label.
    count(exemplar.label) AS labelled
FROM venn_admit.exemplar AS exemplar
INNER JOIN venn_admit.classifier AS classifier ON exemplar.classifier_id = classifier.id
GROUP BY classifier.name, exemplar.split;
