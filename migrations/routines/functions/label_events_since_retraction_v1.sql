-- The label events of an exemplar since its label was last taken back: earlier ones say nothing of the next label.
--
-- The planner puts the query in the place of the call.
CREATE FUNCTION venn_admit.label_events_since_retraction_v1(exemplar_id bigint)
RETURNS SETOF venn_admit.label_event
LANGUAGE sql
STABLE
PARALLEL SAFE
AS $routine$
SELECT event.*
FROM venn_admit.label_event AS event
WHERE
    event.exemplar_id = label_events_since_retraction_v1.exemplar_id
    AND event.id > (
        SELECT coalesce(max(retraction.id), 0)
        FROM venn_admit.label_event AS retraction
        WHERE
            retraction.exemplar_id = label_events_since_retraction_v1.exemplar_id
            AND retraction.label IS NULL
    )
$routine$;
