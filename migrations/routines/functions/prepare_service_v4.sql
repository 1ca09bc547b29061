-- Make the role that commands and workers need, as prepare_service_v3 does, and keep some columns from it.
--
-- Of the ledgers, the database alone gives numbers and times. The mark of a deletion and the salt of tombstones are set
-- by functions. A column of these tables that is added later has to be granted.
CREATE FUNCTION venn_admit.prepare_service_v4()
RETURNS void
LANGUAGE plpgsql
AS $routine$
BEGIN
    PERFORM venn_admit.prepare_service_v3();
    REVOKE INSERT ON venn_admit.audit_event, venn_admit.label_event, venn_admit.forgotten_exemplar
        FROM venn_admit_service;
    GRANT INSERT (
        origin, key_id, subject, action, route, target, status, is_replay, request_id, client_address
    ) ON venn_admit.audit_event TO venn_admit_service;
    GRANT INSERT (exemplar_id, label, selection, source, first_arrived_at)
        ON venn_admit.label_event TO venn_admit_service;
    GRANT INSERT (digest) ON venn_admit.forgotten_exemplar TO venn_admit_service;
    REVOKE INSERT, UPDATE ON venn_admit.classifier FROM venn_admit_service;
    GRANT INSERT (
        name, class_names, dimension, neighbour_count, knn_share, mc_share, seed, extractor, generation, is_current,
        original_id, salt
    ) ON venn_admit.classifier TO venn_admit_service;
    GRANT UPDATE (
        name, support_revision, support_version, neighbours_support_version, extractor, is_current, original_id
    ) ON venn_admit.classifier TO venn_admit_service;
    -- Labels belong to an exemplar by its key, and are forgotten by its id.
    REVOKE UPDATE ON venn_admit.exemplar FROM venn_admit_service;
    GRANT UPDATE (split, label) ON venn_admit.exemplar TO venn_admit_service;
    -- The ledger says by its name which key asked.
    REVOKE UPDATE ON venn_admit.api_key FROM venn_admit_service;
    GRANT UPDATE (classifier_id, revoked_at, last_used_at) ON venn_admit.api_key TO venn_admit_service;
END
$routine$;
