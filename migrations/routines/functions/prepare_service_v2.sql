-- Make the role that commands and workers need, as prepare_service_v1 does, and let it only add to the audit ledger.
CREATE FUNCTION venn_admit.prepare_service_v2()
RETURNS void
LANGUAGE plpgsql
AS $routine$
BEGIN
    PERFORM venn_admit.prepare_service_v1();
    REVOKE UPDATE, DELETE ON venn_admit.audit_event FROM venn_admit_service;
END
$routine$;
