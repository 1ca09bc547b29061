-- How often the predictions of KNN and network differ, under each KNN parameters, on the exemplars that calibrate and
-- on scored ones.
CREATE VIEW report.discrepancy_v1 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- Key of the KNN parameters.
    approximation.knn_parameters_id AS knn_parameters,
    -- Whether the exemplars are scored ones, and not those of mc and vp.
    exemplar.split = 'scored' AS is_scored,
    -- Exemplars with an approximation.
    count(*) AS points,
    -- Exemplars on which KNN and network differ.
    count(*) FILTER (WHERE approximation.predicted <> exemplar.network_predicted) AS differing
FROM venn_admit.exemplar AS exemplar
INNER JOIN venn_admit.approximation AS approximation ON exemplar.id = approximation.exemplar_id
INNER JOIN venn_admit.classifier AS classifier ON exemplar.classifier_id = classifier.id
WHERE exemplar.split IN ('mc', 'vp', 'scored')
GROUP BY classifier.name, approximation.knn_parameters_id, is_scored;
