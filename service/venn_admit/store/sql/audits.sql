-- name: add_rule
-- State by which rule the points of some generations of a classifier are drawn from now on, each generation under the
-- key that it has had since its first rule. If a generation before it has the same, as they once had, it gets its own.
INSERT INTO audit_rule (classifier_id, key, admitted_rates, rejected_rate)
SELECT
    generation.id,
    coalesce(
        (
            SELECT rule.key
            FROM audit_rule AS rule
            WHERE
                rule.classifier_id = generation.id
                AND NOT EXISTS (
                    SELECT
                    FROM audit_rule AS earlier
                    WHERE
                        earlier.classifier_id = ANY(:classifier_ids ::integer[])
                        AND earlier.classifier_id < rule.classifier_id
                        AND earlier.key = rule.key
                )
            ORDER BY rule.id DESC
            LIMIT 1
        ),
        uuid_send(gen_random_uuid())
    ) AS key,
    :admitted_rates ::double precision[],
    :rejected_rate
FROM unnest(:classifier_ids ::integer[]) AS generation (id);

-- name: carry_rule
-- Let a new generation of a classifier have the rates of another one, under a key of its own: its policy, and which
-- points it decides on, may follow from what that one drew. The key follows from the other one, so that a year can be
-- played again.
INSERT INTO audit_rule (classifier_id, key, admitted_rates, rejected_rate)
SELECT
    :new_id,
    substring(sha256(key || int4send(:new_id ::integer)) FROM 1 FOR 16) AS key,
    admitted_rates,
    rejected_rate
FROM audit_rule
WHERE classifier_id = :classifier_id
ORDER BY id DESC
LIMIT 1;

-- name: rule
-- The newest rule of a generation of a classifier; without rates if it draws nothing.
SELECT
    id,
    key,
    admitted_rates,
    rejected_rate,
    created_at
FROM audit_rule
WHERE classifier_id = :classifier_id
ORDER BY id DESC
LIMIT 1;

-- name: undrawn
-- Those of some points that neither have a draw nor calibrate or train, with what each is called, after what it holds
-- unless equal logits make no copy: copies are found by that, and drawn apart. What somebody chose to label is among
-- them: without it, the others are no random sample.
SELECT
    exemplar.id,
    CASE
        WHEN classifier.dimension IS NULL THEN CAST('' AS bytea)
        ELSE coalesce(exemplar.point_digest, exemplar.content_digest)
    END || convert_to(exemplar.external_id, 'UTF8') AS content
FROM exemplar
INNER JOIN classifier ON exemplar.classifier_id = classifier.id
LEFT JOIN audit_draw AS draw ON exemplar.id = draw.exemplar_id
WHERE
    exemplar.id = ANY(:exemplar_ids)
    AND exemplar.split = 'scored'
    AND draw.exemplar_id IS NULL
ORDER BY exemplar.id;

-- name: add_draws
-- Record the draws of points that had none.
INSERT INTO audit_draw (
    exemplar_id,
    audit_rule_id,
    predicted,
    is_admitted,
    probability,
    least_probability,
    is_drawn,
    content
)
SELECT
    given.exemplar_id,
    :rule_id,
    given.predicted,
    given.is_admitted,
    given.probability,
    given.least_probability,
    given.is_drawn,
    given.content
FROM
    unnest(
        :exemplar_ids ::bigint[],
        :predicted ::integer[],
        :is_admitted ::boolean[],
        :probability ::double precision[],
        :least_probability ::double precision[],
        :is_drawn ::boolean[],
        :contents ::bytea[]
    ) AS given (exemplar_id, predicted, is_admitted, probability, least_probability, is_drawn, content)
ON CONFLICT (exemplar_id) DO NOTHING;

-- name: counts
-- How many points of a generation had a draw, were drawn, and have a label that counts for it.
SELECT
    draw.is_admitted,
    count(*) AS points,
    count(*) FILTER (WHERE draw.is_drawn) AS drawn,
    count(reviewed.exemplar_id) AS labelled
FROM audit_rule AS rule
INNER JOIN audit_draw AS draw ON rule.id = draw.audit_rule_id
LEFT JOIN reviewed_draw_v1 AS reviewed ON draw.exemplar_id = reviewed.exemplar_id
WHERE rule.classifier_id = :classifier_id
GROUP BY draw.is_admitted
ORDER BY draw.is_admitted DESC;

-- name: recent
-- How many points of each predicted class had a draw within some days, admitted or not, and since when.
SELECT
    draw.predicted,
    draw.is_admitted,
    count(*) AS points,
    (extract(EPOCH FROM now() - min(draw.created_at)) / 86400)::double precision AS days
FROM audit_rule AS rule
INNER JOIN audit_draw AS draw ON rule.id = draw.audit_rule_id
WHERE
    rule.classifier_id = :classifier_id
    AND draw.created_at > now() - make_interval(days => :days)
GROUP BY
    draw.predicted,
    draw.is_admitted;
