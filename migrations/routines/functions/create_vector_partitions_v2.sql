-- Make the two partitions of exemplar_vector that hold one classifier's vectors: support and held out. The
-- classifier must exist, with that dimension: other partitions would be in the way of a classifier that is made later.
--
-- A vector of up to 2,000 dimensions fits a page, and is scanned fastest when it is never moved out of
-- it (PLAIN); a longer one cannot, and is kept out of line without an attempt to compress it (EXTERNAL).
-- The partitions are made apart and then attached, which does not block work on other classifiers.
CREATE FUNCTION venn_admit.create_vector_partitions_v2(classifier_id integer, dimension integer)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $routine$
DECLARE
    parent text := format('exemplar_vector_%s', classifier_id);
    storage text := CASE WHEN dimension <= 2000 THEN 'PLAIN' ELSE 'EXTERNAL' END;
    side record;
BEGIN
    IF NOT EXISTS (
        SELECT
        FROM venn_admit.classifier AS classifier
        WHERE
            classifier.id = create_vector_partitions_v2.classifier_id
            AND classifier.dimension = create_vector_partitions_v2.dimension
    ) THEN
        RAISE EXCEPTION 'there is no classifier % with dimension %', classifier_id, dimension;
    END IF;
    EXECUTE format(
        'CREATE TABLE venn_admit.%I (LIKE venn_admit.exemplar_vector INCLUDING DEFAULTS INCLUDING COMMENTS,'
        ' CHECK (classifier_id = %s)) PARTITION BY LIST (support)',
        parent, classifier_id
    );
    FOR side IN SELECT * FROM (VALUES ('support', 'true'), ('held_out', 'false')) AS sides (name, value) LOOP
        EXECUTE format(
            'CREATE TABLE venn_admit.%I PARTITION OF venn_admit.%I'
            ' (CHECK (public.vector_dims(vector) = %s)) FOR VALUES IN (%s)',
            parent || '_' || side.name, parent, dimension, side.value
        );
        EXECUTE format(
            'ALTER TABLE venn_admit.%I ALTER COLUMN vector SET STORAGE %s', parent || '_' || side.name, storage
        );
    END LOOP;
    EXECUTE format(
        'ALTER TABLE venn_admit.exemplar_vector ATTACH PARTITION venn_admit.%I FOR VALUES IN (%s)',
        parent, classifier_id
    );
END
$routine$;

REVOKE EXECUTE ON FUNCTION venn_admit.create_vector_partitions_v2(integer, integer) FROM public;
