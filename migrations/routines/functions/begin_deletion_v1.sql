-- Let generations of a classifier count as being deleted from now on, and say in the audit ledger who asked.
--
-- Only this function marks them, so that no classifier is taken away without an event. A generation that is being
-- deleted already is left out.
CREATE FUNCTION venn_admit.begin_deletion_v1(classifier_ids integer[], origin text, key_id bigint, subject text)
RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $routine$
WITH marked AS (
    UPDATE venn_admit.classifier AS classifier
    SET deleting_since = clock_timestamp()
    WHERE
        classifier.id = ANY(classifier_ids)
        AND classifier.deleting_since IS NULL
    RETURNING
        coalesce(classifier.original_id, classifier.id) AS first_id,
        classifier.name,
        classifier.is_current
)

INSERT INTO venn_admit.audit_event (origin, key_id, subject, action, target, is_replay)
SELECT
    origin,
    key_id,
    subject,
    CASE WHEN bool_or(marked.is_current) THEN 'delete_classifier' ELSE 'delete_generation' END AS action,
    -- The name of the classifier stands for all its generations.
    coalesce(
        max(marked.name) FILTER (WHERE marked.is_current), string_agg(marked.name, ', ' ORDER BY marked.name)
    ) AS target,
    FALSE AS is_replay
FROM marked
GROUP BY marked.first_id
$routine$;

REVOKE EXECUTE ON FUNCTION venn_admit.begin_deletion_v1(integer[], text, bigint, text) FROM public;
