-- What the row of a lamp with a number is about, by the plan of its monitor: a class, a group, or a partition, which is
-- a predicted class and a group of q, counted from 0; without vectors there is none. An early warning is about what its
-- lamp is about. The rule is that of `MonitorPlan.watched`.
CREATE FUNCTION venn_admit.watched_v2(plan json, lamp text, number integer)
RETURNS TABLE (kind text, class_number integer, "group" text, match_group integer)
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $routine$
    SELECT
        CASE given.lamp
            WHEN 'groups' THEN given.written ->> 'kind'
            WHEN 'true_classes' THEN 'true'
            ELSE 'predicted'
        END AS kind,
        CASE
            WHEN given.lamp = 'groups' THEN (given.written ->> 'class')::integer
            ELSE given.number % given.classes
        END AS class_number,
        given.written ->> 'group' AS "group",
        CASE
            WHEN given.lamp IN ('partitions', 'mix') AND given.partitions > given.classes
                THEN given.number / given.classes
        END AS match_group
    FROM (
        VALUES (
            regexp_replace($2, '^early_', ''),
            $3,
            ($1 ->> 'class_count')::integer,
            json_array_length($1 -> 'documents'),
            CASE WHEN $2 IN ('groups', 'early_groups') THEN $1 -> 'groups' -> 'classes' -> $3 END
        )
    ) AS given (lamp, number, classes, partitions, written)
$routine$;
