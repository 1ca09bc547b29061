-- How much rests on each training exemplar that is a neighbour of any point, and whether its label agrees with theirs.
-- Relabelling pays where many runs of matches end because of a label alone, and where few of the points around it share
-- its label.
CREATE VIEW report.exemplar_influence_v1 AS
WITH listed AS (
    SELECT
        classifier.name AS classifier,
        classifier.class_names,
        point.split,
        point.label,
        approximation.predicted,
        near.id,
        near.position,
        near.position = approximation.match_count + 1 AS is_at_end
    FROM venn_admit.classifier AS classifier
    INNER JOIN venn_admit.exemplar AS point ON classifier.id = point.classifier_id
    INNER JOIN venn_admit.neighbours AS stored ON point.id = stored.exemplar_id
    LEFT JOIN venn_admit.knn_parameters AS parameters
        ON
            classifier.id = parameters.classifier_id
            AND parameters.is_current
    LEFT JOIN venn_admit.approximation AS approximation
        ON
            parameters.id = approximation.knn_parameters_id
            AND point.id = approximation.exemplar_id
    CROSS JOIN LATERAL unnest(stored.neighbour_ids) WITH ORDINALITY AS near (id, position)
)

SELECT
    -- Name of the classifier.
    listed.classifier,
    -- The user's id of the training exemplar.
    training.external_id,
    -- Document that it is part of; null if it stands alone.
    training.document_id,
    -- Number of its class.
    training.label,
    -- Name of its class.
    listed.class_names[training.label + 1] AS label_class,
    -- Number of the class that the network predicts for it.
    training.network_predicted AS predicted,
    -- Name of that class.
    listed.class_names[training.network_predicted + 1] AS predicted_class,
    -- Other values that the user supplied with it.
    training.attributes,
    -- Points that it is one of the K nearest of, calibration data and scored ones.
    count(*) AS points,
    -- Those of them that were scored and do not calibrate.
    count(*) FILTER (WHERE listed.split = 'scored') AS scored,
    -- Points that it is the nearest of.
    count(*) FILTER (WHERE listed.position = 1) AS nearest_of,
    -- Points whose run of matches ends at it because of its label alone: the network predicts the same class for both.
    count(*) FILTER (
        WHERE
        listed.is_at_end
        AND training.label <> listed.predicted
        AND training.network_predicted = listed.predicted
    ) AS runs_ended,
    -- Points whose label is known.
    count(listed.label) AS labelled,
    -- Those of them with its label.
    count(*) FILTER (WHERE listed.label = training.label) AS agreeing,
    -- Share of them with its label; null without any.
    count(*) FILTER (WHERE listed.label = training.label) / nullif(count(listed.label), 0)::double precision
        AS share_agreeing,
    -- Whether fewer than half of them have its label; null without any.
    count(*) FILTER (WHERE listed.label = training.label) < 0.5 * nullif(count(listed.label), 0) AS disagrees
FROM listed
INNER JOIN venn_admit.exemplar AS training ON listed.id = training.id
GROUP BY listed.classifier, listed.class_names, training.id;
