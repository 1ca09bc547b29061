-- Delete the label events of exemplars that are being removed, and return how many there were.
--
-- The ledger is only added to, except for this: an exemplar goes with its events if it has a tombstone, which nobody
-- but the owner can remove, or if its classifier is being deleted. Events of any other exemplar stay.
CREATE FUNCTION venn_admit.forget_label_events_v1(exemplar_ids bigint[])
RETURNS bigint
LANGUAGE sql
-- With the owner's rights; names without a schema would be looked up where the caller says.
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $routine$
WITH deleted AS (
    DELETE FROM venn_admit.label_event AS event
    USING venn_admit.exemplar AS exemplar, venn_admit.classifier AS classifier
    WHERE
        event.exemplar_id = ANY(exemplar_ids)
        AND exemplar.id = event.exemplar_id
        AND classifier.id = exemplar.classifier_id
        AND (
            classifier.deleting_since IS NOT NULL
            OR EXISTS (
                SELECT
                FROM venn_admit.forgotten_exemplar AS forgotten
                WHERE forgotten.digest = sha256(classifier.salt || convert_to(exemplar.external_id, 'UTF8'))
            )
        )
    RETURNING event.id
)

SELECT count(*)
FROM deleted
$routine$;

REVOKE EXECUTE ON FUNCTION venn_admit.forget_label_events_v1(bigint[]) FROM public;
