-- Make the role that commands and workers need, unless it exists, and let it use what is there and what is added later.
--
-- It changes rows, never tables, and only adds to the ledgers of labels and of requests, and to the tombstones, whose
-- numbers and times the database alone gives. The mark of a deletion and the salt of tombstones are set by functions. A
-- column of these tables that is added later has to be granted.
--
-- A role belongs to the server and not to one database, so another database may have made it.
CREATE FUNCTION venn_admit.prepare_service_v6()
RETURNS void
LANGUAGE plpgsql
AS $routine$
DECLARE
    -- Whoever owns the schema migrates it, and adds to it later.
    owner text := (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'venn_admit');
BEGIN
    IF to_regrole('venn_admit_service') IS NULL THEN
        BEGIN
            CREATE ROLE venn_admit_service NOLOGIN;
        EXCEPTION
            -- The migration of another database was faster.
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    GRANT USAGE ON SCHEMA venn_admit, report TO venn_admit_service;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA venn_admit TO venn_admit_service;
    REVOKE INSERT, UPDATE, DELETE ON venn_admit.audit_event, venn_admit.label_event, venn_admit.forgotten_exemplar
        FROM venn_admit_service;
    GRANT INSERT (
        origin, key_id, subject, action, route, target, status, is_replay, request_id, client_address
    ) ON venn_admit.audit_event TO venn_admit_service;
    GRANT INSERT (exemplar_id, label, selection, source, first_arrived_at)
        ON venn_admit.label_event TO venn_admit_service;
    GRANT INSERT (digest) ON venn_admit.forgotten_exemplar TO venn_admit_service;
    -- What was in use and which certificates there were is only added to. Rows go with their classifier.
    REVOKE INSERT, UPDATE ON venn_admit.calibration_use, venn_admit.certificate_look FROM venn_admit_service;
    GRANT INSERT (classifier_id, calibrator_id, calibration_id, origin, key_id, subject, reason)
        ON venn_admit.calibration_use TO venn_admit_service;
    GRANT INSERT (classifier_id, calibrator_id, calibration_id, digest, confidence)
        ON venn_admit.certificate_look TO venn_admit_service;
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
    GRANT UPDATE (split, label, point_digest) ON venn_admit.exemplar TO venn_admit_service;
    -- The ledger says by its name which key asked.
    REVOKE UPDATE ON venn_admit.api_key FROM venn_admit_service;
    GRANT UPDATE (classifier_id, revoked_at, last_used_at) ON venn_admit.api_key TO venn_admit_service;
    REVOKE INSERT, UPDATE, DELETE ON venn_admit.alembic_version FROM venn_admit_service;
    -- Recalibration vacuums what it wrote. Before Postgres 17 only owners may, so autovacuum does it, later.
    IF current_setting('server_version_num')::int >= 170000 THEN
        EXECUTE 'GRANT MAINTAIN ON venn_admit.calibration_point TO venn_admit_service';
    END IF;
    GRANT SELECT ON ALL TABLES IN SCHEMA report TO venn_admit_service;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA venn_admit TO venn_admit_service;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA venn_admit, report TO venn_admit_service;
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA venn_admit'
        ' GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO venn_admit_service', owner
    );
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA venn_admit GRANT USAGE ON SEQUENCES TO venn_admit_service', owner
    );
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA venn_admit GRANT EXECUTE ON FUNCTIONS TO venn_admit_service',
        owner
    );
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA report GRANT SELECT ON TABLES TO venn_admit_service', owner
    );
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA report GRANT EXECUTE ON FUNCTIONS TO venn_admit_service', owner
    );
END
$routine$;
