-- Every decision as decided_point_v1 has it, and whether its label, which says something about the snapshot, is one of
-- those that advance the chain by which the snapshot is certified: however late it came, later snapshots rest on it.
CREATE VIEW venn_admit.decided_point_v2 AS
SELECT
    decided.*,
    decided.is_evaluable
    AND EXISTS (
        SELECT 1
        FROM venn_admit.certificate AS certificate
        INNER JOIN venn_admit.standing_evidence AS evidence ON certificate.chain_id = evidence.chain_id
        WHERE
            certificate.calibration_id = decided.calibration
            AND evidence.exemplar_id = decided.exemplar_id
    ) AS is_certifying
FROM venn_admit.decided_point_v1 AS decided;
