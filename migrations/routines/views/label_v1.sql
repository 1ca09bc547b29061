-- The ledger of labels: every label that arrived, was corrected or was taken back, in the order of arrival by `event`.
CREATE VIEW report.label_v1 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- Key of the event; ascends in order of arrival.
    event.id AS event,
    -- When the label arrived.
    event.created_at,
    -- Day on which it arrived, in UTC.
    (event.created_at AT TIME ZONE 'UTC')::date AS day,
    -- The user's id of the exemplar.
    exemplar.external_id,
    -- Document that the exemplar is part of; null if it stands alone.
    exemplar.document_id,
    -- Split that the exemplar is in now: train, knn, mc, vp or scored.
    exemplar.split,
    -- Number of the class given; null if the label was taken back.
    event.label,
    -- Name of the class given; null if the label was taken back.
    classifier.class_names[event.label + 1] AS class_name,
    -- random; review if it was drawn with a known probability; or selected by a person or by a rule, which never
    -- calibrates.
    event.selection,
    -- Origin of the label, such as the name of a file.
    event.source,
    -- Whether no later event changed it.
    NOT EXISTS (
        SELECT 1
        FROM venn_admit.label_event AS later
        WHERE
            later.exemplar_id = event.exemplar_id
            AND later.id > event.id
    ) AS is_current,
    -- When it arrived for another generation of the classifier, from which it was carried over; null if it was not.
    event.first_arrived_at
FROM venn_admit.label_event AS event
INNER JOIN venn_admit.exemplar AS exemplar ON event.exemplar_id = exemplar.id
INNER JOIN venn_admit.classifier AS classifier ON exemplar.classifier_id = classifier.id;
