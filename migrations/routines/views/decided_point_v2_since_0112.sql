-- Every decision as decided_point_v1 has it, and whether its label, which says something about the snapshot, is one of
-- those that advance the chain by which the snapshot is certified: however late it came, later snapshots rest on it.
CREATE VIEW venn_admit.decided_point_v2 AS
SELECT
    decided.*,
    -- First, because it costs less to tell.
    evidence.exemplar_id IS NOT NULL
    AND decided.is_evaluable AS is_certifying
FROM venn_admit.decided_point_v1 AS decided
LEFT JOIN venn_admit.certificate AS certificate ON decided.calibration = certificate.calibration_id
-- It holds an exemplar once a chain.
LEFT JOIN venn_admit.standing_evidence AS evidence
    ON
        certificate.chain_id = evidence.chain_id
        AND decided.exemplar_id = evidence.exemplar_id;
