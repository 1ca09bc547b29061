-- Drop the partitions of exemplar_vector that hold the vectors of a classifier that is being deleted; false if others
-- used the table all the while, so that it has to be tried again.
--
-- A partition is taken off under a lock that everybody who reads or writes vectors has to wait for. So it is waited for
-- but briefly, and then given up.
CREATE FUNCTION venn_admit.drop_vector_partitions_v1(classifier_id integer)
RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '200ms'
-- With the owner's rights; names without a schema would be looked up where the caller says.
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $routine$
BEGIN
    IF NOT EXISTS (
        SELECT
        FROM venn_admit.classifier AS classifier
        WHERE
            classifier.id = drop_vector_partitions_v1.classifier_id
            AND classifier.deleting_since IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'classifier % is not being deleted', classifier_id;
    END IF;
    EXECUTE format('DROP TABLE IF EXISTS venn_admit.%I', format('exemplar_vector_%s', classifier_id));
    RETURN TRUE;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN FALSE;
END
$routine$;

REVOKE EXECUTE ON FUNCTION venn_admit.drop_vector_partitions_v1(integer) FROM public;
