-- Make the role that commands and workers need, as prepare_service_v2 does, and let it only add tombstones.
CREATE FUNCTION venn_admit.prepare_service_v3()
RETURNS void
LANGUAGE plpgsql
AS $routine$
BEGIN
    PERFORM venn_admit.prepare_service_v2();
    REVOKE UPDATE, DELETE ON venn_admit.forgotten_exemplar FROM venn_admit_service;
END
$routine$;
