-- Let a role run commands and workers, and change no table.
CREATE FUNCTION venn_admit.grant_service_v3(member text)
RETURNS void
LANGUAGE plpgsql
AS $routine$
BEGIN
    PERFORM venn_admit.prepare_service_v6();
    EXECUTE format('GRANT venn_admit_service TO %I', member);
END
$routine$;
