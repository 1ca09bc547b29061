-- What the label of each drawn point weighs: the smallest probability with which any point of its predicted class could
-- have been drawn, or any point at all, divided by its own.
CREATE VIEW venn_admit.audit_weight_v1 AS
SELECT
    draw.exemplar_id,
    draw.created_at AS drawn_at,
    draw.least_probability / draw.probability AS weight,
    least(
        rule.rejected_rate,
        (SELECT min(of_class.rate) FROM unnest(rule.admitted_rates) AS of_class (rate))
    ) / draw.probability AS weight_of_all
FROM venn_admit.audit_draw AS draw
INNER JOIN venn_admit.audit_rule AS rule ON draw.audit_rule_id = rule.id
WHERE draw.is_drawn;
