-- The group of an attribute's value: a text, true or false, or a number in decimals without zeros at the end; null for
-- what is in none.
CREATE FUNCTION venn_admit.group_value_v1(value jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE jsonb_typeof(value)
    WHEN 'string' THEN value #>> '{}'
    WHEN 'boolean' THEN value #>> '{}'
    WHEN 'number' THEN trim_scale((value #>> '{}')::numeric)::text
END;
