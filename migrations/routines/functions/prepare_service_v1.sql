-- Make the role that commands and workers need, unless it exists, and let it use what is there and what is added later.
--
-- It changes rows, never tables, and neither corrects nor removes an event of the ledger of labels.
-- A role belongs to the server and not to one database, so another database may have made it.
CREATE FUNCTION venn_admit.prepare_service_v1()
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
    REVOKE UPDATE, DELETE ON venn_admit.label_event FROM venn_admit_service;
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
