-- The label events by which a point can count for a chain, and its weight: the random ones of points that had no draw,
-- and those of drawn points, whether they came at random or for the draw. Points that were not drawn had their chance,
-- and a random label gives them no other.
CREATE VIEW venn_admit.standing_label_v1 AS
SELECT
    event.id,
    event.exemplar_id,
    event.label,
    event.created_at,
    draw.least_probability / draw.probability AS weight
FROM venn_admit.label_event AS event
LEFT JOIN venn_admit.audit_draw AS draw ON event.exemplar_id = draw.exemplar_id
WHERE
    event.selection <> 'selected'
    AND coalesce(draw.is_drawn, event.selection = 'random');
