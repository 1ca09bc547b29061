-- What the label of each point that had a draw weighs: for a drawn one the smallest probability with which such a point
-- could have been drawn, divided by its own; for one that was not drawn, and has a random label, the smallest with
-- which such a point could have been left, divided by its own. Then what a point weighs is on average the same whatever
-- its probability, and however many labels are random. Weights are among the points of the predicted class, among all
-- points, and among those that were admitted when they were drawn, null for the others.
CREATE VIEW venn_admit.audit_weight_v2 AS
SELECT
    draw.exemplar_id,
    draw.created_at AS drawn_at,
    draw.is_drawn,
    -- The rates of a rule are by predicted class, and that of a point need not be the network's.
    CASE WHEN draw.is_drawn THEN draw.least_probability / draw.probability ELSE of_all.weight END AS weight,
    of_all.weight AS weight_of_all,
    CASE
        WHEN NOT draw.is_admitted THEN NULL
        WHEN draw.is_drawn THEN of_admitted.least / draw.probability
        ELSE (1 - of_admitted.most) / (1 - draw.probability)
    END AS weight_of_admitted
FROM venn_admit.audit_draw AS draw
INNER JOIN venn_admit.audit_rule AS rule ON draw.audit_rule_id = rule.id
CROSS JOIN
    LATERAL (
        SELECT
            min(of_class.rate) AS least,
            max(of_class.rate) AS most
        FROM unnest(rule.admitted_rates) AS of_class (rate)
    ) AS of_admitted
CROSS JOIN
    LATERAL (
        SELECT
            CASE
                WHEN draw.is_drawn THEN least(rule.rejected_rate, of_admitted.least) / draw.probability
                ELSE (1 - greatest(rule.rejected_rate, of_admitted.most)) / (1 - draw.probability)
            END AS weight
    ) AS of_all;
