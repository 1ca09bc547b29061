-- As the deletion of a generation begins, have the others remember what its certificates have spent of 1 - confidence.
--
-- A trigger does it, so that no function that begins deletions, and no program from before, leaves it out. A generation
-- that was created since the last deletion has not heard of it, so the largest number of all generations holds.
CREATE FUNCTION venn_admit.note_deleted_generation_v1()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE venn_admit.classifier
    SET
        earlier_chains = greatest(known.chains, chains.newest),
        earlier_looks = known.looks + looks.number,
        earlier_spent = known.spent + looks.spent
    FROM
        (
            SELECT
                max(earlier_chains) AS chains,
                max(earlier_looks) AS looks,
                max(earlier_spent) AS spent
            FROM venn_admit.classifier
            WHERE coalesce(original_id, id) = coalesce(new.original_id, new.id)
        ) AS known,
        (
            SELECT max(chain.number) AS newest
            FROM venn_admit.standing_chain AS chain
            INNER JOIN venn_admit.calibrator ON chain.calibrator_id = calibrator.id
            WHERE calibrator.classifier_id = new.id
        ) AS chains,
        (
            SELECT
                count(*) AS number,
                coalesce(sum(1 - look.confidence), 0) AS spent
            FROM venn_admit.certificate_look AS look
            WHERE look.classifier_id = new.id
        ) AS looks
    WHERE coalesce(classifier.original_id, classifier.id) = coalesce(new.original_id, new.id);
    RETURN NULL;
END
$$;
