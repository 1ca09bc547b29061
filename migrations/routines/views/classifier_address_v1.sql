-- The name that stays with each generation of a classifier, whichever becomes current: NAME@NUMBER.
CREATE VIEW venn_admit.classifier_address_v1 AS
SELECT
    classifier.id AS classifier_id,
    CASE
        WHEN NOT classifier.is_current OR other.id IS NOT NULL THEN classifier.name
        ELSE classifier.name || '@' || classifier.generation
    END AS address
FROM venn_admit.classifier AS classifier
LEFT JOIN venn_admit.classifier AS other
    -- A classifier with a name of this form, from before generations; the other one cannot get a second generation.
    ON other.name = classifier.name || '@' || classifier.generation;
