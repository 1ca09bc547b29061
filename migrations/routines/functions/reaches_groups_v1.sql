-- Whether a score reaches the threshold of each group of an exemplar, as a certificate has them by attribute and
-- predicted class; a group without one is never admitted.
CREATE FUNCTION venn_admit.reaches_groups_v1(
    groups jsonb, predicted integer, score double precision, attributes jsonb
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT
        bool_and(
            coalesce(
                given.score >= (
                    asked.found
                    -> 'least'
                    -> given.predicted
                    ->> venn_admit.group_value_v1(given.attributes -> (asked.found ->> 'attribute'))
                )::double precision,
                FALSE
            )
        )
    FROM (VALUES (groups, predicted, score, attributes)) AS given (groups, predicted, score, attributes)
    CROSS JOIN LATERAL jsonb_array_elements(given.groups) AS asked (found)
);
