-- Refuse to delete the row of a classifier whose deletion has not begun: beginning it adds an event to the ledger.
--
-- A trigger does it, since a role that may delete the other rows of a classifier may delete its own.
CREATE FUNCTION venn_admit.refuse_unmarked_deletion_v1()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'classifier % is not being deleted', old.id;
END
$$;
