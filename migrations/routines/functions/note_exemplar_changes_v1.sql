-- Write into the ledger which held-out exemplars a statement gave another label or split.
--
-- The rows before and after are compared as sets, because a join of them would be planned for the number of rows that
-- the first call of a session came with.
CREATE FUNCTION venn_admit.note_exemplar_changes_v1()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO venn_admit.point_change (classifier_id, transaction_id, exemplar_id)
    SELECT DISTINCT
        classifier_id,
        CAST(CAST(pg_current_xact_id() AS text) AS bigint),
        CASE WHEN (SELECT count(*) FROM after) <= 1000 THEN id END
    FROM (
        (
            SELECT id, classifier_id, split, label FROM after
            EXCEPT
            SELECT id, classifier_id, split, label FROM before
        )
        UNION ALL
        (
            SELECT id, classifier_id, split, label FROM before
            EXCEPT
            SELECT id, classifier_id, split, label FROM after
        )
    ) AS changed
    WHERE split IN ('knn', 'mc', 'vp');
    RETURN NULL;
END
$$;
