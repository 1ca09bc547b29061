-- The drawn points with a label that counts for the draw, whether it came for that or at random. Once one was taken
-- back, none counts any more.
CREATE VIEW venn_admit.reviewed_draw_v1 AS
SELECT draw.exemplar_id
FROM venn_admit.audit_draw AS draw
WHERE
    draw.is_drawn
    AND EXISTS (
        SELECT
        FROM venn_admit.standing_label_v1 AS event
        WHERE
            event.exemplar_id = draw.exemplar_id
            AND event.label IS NOT NULL
    )
    AND NOT EXISTS (
        SELECT
        FROM venn_admit.standing_label_v1 AS given
        INNER JOIN venn_admit.label_event AS retraction ON given.exemplar_id = retraction.exemplar_id
        WHERE
            given.exemplar_id = draw.exemplar_id
            AND given.label IS NOT NULL
            AND retraction.label IS NULL
            AND retraction.id > given.id
    );
