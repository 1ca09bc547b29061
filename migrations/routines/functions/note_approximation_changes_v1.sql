-- Write into the ledger of which exemplars a statement wrote or deleted approximations.
CREATE FUNCTION venn_admit.note_approximation_changes_v1()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO venn_admit.point_change (classifier_id, transaction_id, exemplar_id)
    SELECT DISTINCT
        parameters.classifier_id,
        CAST(CAST(pg_current_xact_id() AS text) AS bigint),
        CASE WHEN (SELECT count(*) FROM changed) <= 1000 THEN changed.exemplar_id END
    FROM changed
    INNER JOIN venn_admit.knn_parameters AS parameters ON changed.knn_parameters_id = parameters.id;
    RETURN NULL;
END
$$;
