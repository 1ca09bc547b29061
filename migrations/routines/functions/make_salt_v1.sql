-- Give the generations of a classifier the same salt, unless they have one.
--
-- Only this function sets it: with another salt, no tombstone would be found again.
CREATE FUNCTION venn_admit.make_salt_v1(classifier_ids integer[])
RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $routine$
WITH made AS MATERIALIZED (
    SELECT
        coalesce(
            (
                SELECT known.salt
                FROM venn_admit.classifier AS known
                WHERE
                    known.id = ANY(classifier_ids)
                    AND known.salt IS NOT NULL
                ORDER BY known.id
                LIMIT 1
            ),
            uuid_send(gen_random_uuid())
        ) AS salt
)

UPDATE venn_admit.classifier AS classifier
SET salt = made.salt
FROM made
WHERE
    classifier.id = ANY(classifier_ids)
    AND classifier.salt IS NULL
$routine$;

REVOKE EXECUTE ON FUNCTION venn_admit.make_salt_v1(integer[]) FROM public;
