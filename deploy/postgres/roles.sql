-- The roles that api, worker and beat, and Grafana, log in as. The image of Postgres runs this once, on an empty data
-- folder.
--
-- They own nothing: the service migrate lets them change rows, or read reports, by `venn-admit db grant-...`.
\set service_password `cat "$SERVICE_PASSWORD_FILE"`
\set reader_password `cat "$READER_PASSWORD_FILE"`
SELECT '' IN (:'service_password', :'reader_password') AS is_missing \gset
\if :is_missing
    DO $$ BEGIN
        RAISE EXCEPTION 'expected a password in each of the files SERVICE_PASSWORD_FILE and READER_PASSWORD_FILE';
    END $$;
\endif
BEGIN;
CREATE ROLE venn_admit_worker LOGIN PASSWORD :'service_password';
CREATE ROLE venn_admit_grafana LOGIN PASSWORD :'reader_password';
-- A panel that takes longer is not worth the load.
ALTER ROLE venn_admit_grafana SET statement_timeout = '30s';
COMMIT;
