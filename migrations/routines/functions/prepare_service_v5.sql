-- Do what prepare_service_v4 does, and let the role store the digests of exemplars that programs from before left out.
CREATE FUNCTION venn_admit.prepare_service_v5()
RETURNS void
LANGUAGE plpgsql
AS $routine$
BEGIN
    PERFORM venn_admit.prepare_service_v4();
    GRANT UPDATE (point_digest) ON venn_admit.exemplar TO venn_admit_service;
END
$routine$;
