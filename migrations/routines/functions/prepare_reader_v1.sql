-- Make the role that may read schema report, unless it exists, and let it read what is there and what is added later.
--
-- A role belongs to the server and not to one database, so another database may have made it.
CREATE FUNCTION venn_admit.prepare_reader_v1()
RETURNS void
LANGUAGE plpgsql
AS $routine$
DECLARE
    -- Whoever owns the schema migrates it, and adds to it later.
    owner text := (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'report');
BEGIN
    IF to_regrole('venn_admit_reader') IS NULL THEN
        BEGIN
            CREATE ROLE venn_admit_reader NOLOGIN;
        EXCEPTION
            -- The migration of another database was faster.
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    GRANT USAGE ON SCHEMA report TO venn_admit_reader;
    GRANT SELECT ON ALL TABLES IN SCHEMA report TO venn_admit_reader;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA report TO venn_admit_reader;
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA report GRANT SELECT ON TABLES TO venn_admit_reader', owner
    );
    EXECUTE format(
        'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA report GRANT EXECUTE ON FUNCTIONS TO venn_admit_reader', owner
    );
END
$routine$;
