-- The label events by which a point can count for monitors: the random ones of points that had no draw; those of drawn
-- points, whether they came at random or for the draw; and the random ones of points that were not drawn and stand
-- alone. If a document counted by a point that was not drawn, its drawn ones would come too late.
CREATE VIEW venn_admit.monitored_label_v1 AS
SELECT
    event.id,
    event.exemplar_id,
    event.label,
    event.created_at
FROM venn_admit.label_event AS event
LEFT JOIN venn_admit.audit_draw AS draw ON event.exemplar_id = draw.exemplar_id
WHERE
    event.selection <> 'selected'
    AND (draw.is_drawn IS TRUE OR event.selection = 'random')
    AND (
        draw.is_drawn IS NOT FALSE
        -- Not a join, which might read every exemplar.
        OR (
            SELECT exemplar.document_id
            FROM venn_admit.exemplar
            WHERE exemplar.id = event.exemplar_id
        ) IS NULL
    );
