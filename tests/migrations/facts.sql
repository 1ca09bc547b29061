-- What a database holds of ours, each row one fact: of what, and what. Left out are the partitions that are
-- made with each classifier, and Alembic's own table.
WITH relation AS (
    SELECT
        pg_class.oid,
        format('%s.%s', pg_namespace.nspname, pg_class.relname) AS name,
        pg_class.relkind,
        pg_class.relpersistence,
        pg_class.relowner,
        pg_class.relacl,
        pg_class.reloptions
    FROM pg_class
    INNER JOIN pg_namespace ON pg_class.relnamespace = pg_namespace.oid
    WHERE
        pg_namespace.nspname IN ('venn_admit', 'report')
        AND NOT pg_class.relispartition
        AND pg_class.relname NOT LIKE 'alembic_version%'
),

rights AS (
    SELECT
        name,
        aclexplode(coalesce(relacl, acldefault('r', relowner))) AS held
    FROM relation
    WHERE relkind IN ('r', 'p', 'v')
    UNION ALL
    SELECT
        name,
        aclexplode(coalesce(relacl, acldefault('s', relowner)))
    FROM relation
    WHERE relkind = 'S'
    UNION ALL
    SELECT
        format('%s.%s', relation.name, pg_attribute.attname),
        aclexplode(pg_attribute.attacl)
    FROM relation
    INNER JOIN pg_attribute ON relation.oid = pg_attribute.attrelid
    UNION ALL
    SELECT
        oid::regprocedure::text,
        aclexplode(coalesce(proacl, acldefault('f', proowner)))
    FROM pg_proc
    WHERE pronamespace IN (to_regnamespace('venn_admit'), to_regnamespace('report'))
    UNION ALL
    SELECT
        nspname,
        aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
    FROM pg_namespace
    WHERE nspname IN ('venn_admit', 'report')
    UNION ALL
    SELECT
        format('%s, later %s', nspname, defaclobjtype),
        aclexplode(defaclacl)
    FROM pg_default_acl
    INNER JOIN pg_namespace ON pg_default_acl.defaclnamespace = pg_namespace.oid
    WHERE nspname IN ('venn_admit', 'report')
)

SELECT
    name,
    format('relation %s %s %s', relkind, relpersistence, pg_get_partkeydef(oid)) AS fact
FROM relation
UNION ALL
SELECT
    format('%s.%s', relation.name, pg_attribute.attname),
    format(
        'column %s, not null %s, identity %s, generated %s, %s',
        format_type(pg_attribute.atttypid, pg_attribute.atttypmod),
        pg_attribute.attnotnull,
        pg_attribute.attidentity,
        pg_attribute.attgenerated,
        pg_get_expr(pg_attrdef.adbin, pg_attrdef.adrelid)
    )
FROM relation
INNER JOIN pg_attribute ON relation.oid = pg_attribute.attrelid
LEFT JOIN pg_attrdef ON relation.oid = pg_attrdef.adrelid AND pg_attribute.attnum = pg_attrdef.adnum
WHERE
    relation.relkind IN ('r', 'p', 'v')
    AND pg_attribute.attnum > 0
    AND NOT pg_attribute.attisdropped
UNION ALL
SELECT
    format('%s.%s', relation.name, pg_constraint.conname),
    pg_get_constraintdef(pg_constraint.oid)
FROM relation
INNER JOIN pg_constraint ON relation.oid = pg_constraint.conrelid
-- Since Postgres 18, NOT NULL has a name too, which stays when a column is renamed. The facts of columns tell it.
WHERE pg_constraint.contype <> 'n'
UNION ALL
SELECT
    name,
    pg_get_indexdef(oid)
FROM relation
WHERE relkind IN ('i', 'I')
UNION ALL
SELECT
    name,
    pg_get_viewdef(oid)
FROM relation
WHERE relkind = 'v'
UNION ALL
SELECT
    format('%s.%s', relation.name, pg_attribute.attname),
    format('comment %s', pg_description.description)
FROM relation
INNER JOIN pg_description ON relation.oid = pg_description.objoid
LEFT JOIN pg_attribute ON relation.oid = pg_attribute.attrelid AND pg_description.objsubid = pg_attribute.attnum
WHERE
    pg_description.classoid = 'pg_class'::regclass
UNION ALL
SELECT
    oid::regprocedure::text,
    pg_get_functiondef(oid)
FROM pg_proc
WHERE pronamespace IN (to_regnamespace('venn_admit'), to_regnamespace('report'))
UNION ALL
SELECT
    pg_description.objoid::regprocedure::text,
    format('comment %s', pg_description.description)
FROM pg_description
INNER JOIN pg_proc ON pg_description.objoid = pg_proc.oid
WHERE
    pg_description.classoid = 'pg_proc'::regclass
    AND pg_proc.pronamespace IN (to_regnamespace('venn_admit'), to_regnamespace('report'))
UNION ALL
SELECT
    name,
    format('stored with %s', unnest(reloptions))
FROM relation
UNION ALL
SELECT
    format('%s.%s', relation.name, pg_attribute.attname),
    format('stored as %s%s', pg_attribute.attstorage, pg_attribute.attcompression)
FROM relation
INNER JOIN pg_attribute ON relation.oid = pg_attribute.attrelid
WHERE
    relation.relkind IN ('r', 'p')
    AND pg_attribute.attnum > 0
    AND NOT pg_attribute.attisdropped
UNION ALL
SELECT
    name,
    format(
        'right of %s to %s%s',
        CASE (held).grantee WHEN 0 THEN 'everybody' ELSE (held).grantee::regrole::text END,
        (held).privilege_type,
        CASE WHEN (held).is_grantable THEN ', and to grant it' END
    )
FROM rights
UNION ALL
SELECT
    nspname,
    'schema'
FROM pg_namespace
WHERE nspname IN ('venn_admit', 'report');
