-- Let a role read schema report, and nothing else of ours.
CREATE FUNCTION venn_admit.grant_reader_v1(member text)
RETURNS void
LANGUAGE plpgsql
AS $routine$
BEGIN
    PERFORM venn_admit.prepare_reader_v1();
    EXECUTE format('GRANT venn_admit_reader TO %I', member);
END
$routine$;
