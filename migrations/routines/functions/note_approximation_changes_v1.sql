-- Write into the ledger of which held-out exemplars a statement wrote or deleted approximations.
--
-- Exemplars are looked up one by one, because a join would be planned for the number of rows that the first call of a
-- session came with. Scored ones are no points of a snapshot; one that becomes a point is noted then.
CREATE FUNCTION venn_admit.note_approximation_changes_v1()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO venn_admit.point_change (classifier_id, transaction_id, exemplar_id)
    SELECT DISTINCT
        classifier_id,
        CAST(CAST(pg_current_xact_id() AS text) AS bigint),
        CASE WHEN points <= 1000 THEN exemplar_id END
    FROM (
        SELECT
            point.classifier_id,
            changed.exemplar_id,
            count(*) OVER () AS points
        FROM changed
        CROSS JOIN LATERAL (
            SELECT exemplar.classifier_id, exemplar.split
            FROM venn_admit.exemplar
            WHERE exemplar.id = changed.exemplar_id
            LIMIT 1
        ) AS point
        WHERE point.split IN ('knn', 'mc', 'vp')
    ) AS held_out;
    RETURN NULL;
END
$$;
