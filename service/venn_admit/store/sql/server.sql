-- name: versions
-- The server's major version, the version of pgvector that it offers, and the one that this database uses.
SELECT
    current_setting('server_version_num')::int / 10000 AS server,
    max(default_version) AS available,
    max(installed_version) AS installed
FROM pg_available_extensions
WHERE name = 'vector';

-- name: is_migrated
-- Whether migrations have noted a revision here.
SELECT to_regclass('venn_admit.alembic_version') IS NOT NULL AS is_migrated;

-- name: revision
-- The revision of the schema; none between a downgrade of everything and an upgrade.
SELECT version_num
FROM venn_admit.alembic_version;

-- name: oldest_program
-- The head revision of the oldest program that works on this schema.
SELECT venn_admit.oldest_program() AS revision;

-- name: role_exists
-- Whether the server has a role of this name.
SELECT count(*) > 0 AS role_exists
FROM pg_roles
WHERE rolname = :role;

-- name: grant_reader
-- Let a role read schema report.
SELECT grant_reader_v1(:role);

-- name: grant_service
-- Let a role run commands and workers.
SELECT grant_service_v3(:role);

-- name: unlimited
-- Lift the timeouts of this session, however long its statements take and whatever they wait for.
SELECT
    set_config('statement_timeout', '0', FALSE),
    set_config('lock_timeout', '0', FALSE);

-- name: limited
-- Restore the timeouts with which the session began.
RESET ALL;

-- name: database_identity
-- Identify this database among all databases of all servers; a copy has another identity.
SELECT format('%s-%s', control.system_identifier, pg_database.oid) AS identity
FROM pg_control_system() AS control, pg_database
WHERE pg_database.datname = current_database();
