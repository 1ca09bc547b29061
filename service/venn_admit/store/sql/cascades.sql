-- All columns of a classifier are asked for by `*` of a view alone: those of a versioned view do not change.
-- noqa: disable=AM04

-- name: add_cascade
-- Store a cascade without stages.
INSERT INTO classifier_cascade (name)
VALUES (:name)
RETURNING id;

-- name: add_stage
-- Store a stage of a cascade.
INSERT INTO cascade_stage (cascade_id, place, classifier_id, cost)
VALUES (:cascade_id, :place, :classifier_id, :cost);

-- name: stages
-- The stages of a cascade, or of all by name, each with its classifier and with what the certificate says of it that
-- the cascade serves by; no row if there is no cascade of this name.
WITH wanted AS (
    SELECT
        cascade.id,
        cascade.name,
        cascade.created_at,
        (
            SELECT max(certificate.id)
            FROM cascade_calibration AS certificate
            WHERE
                certificate.cascade_id = cascade.id
                AND NOT certificate.is_withheld
        ) AS cascade_calibration_id
    FROM classifier_cascade AS cascade
    WHERE CAST(:name AS text) IS NULL OR cascade.name = :name
)

SELECT
    wanted.id AS cascade_id,
    wanted.name AS cascade,
    wanted.created_at AS cascade_created_at,
    wanted.cascade_calibration_id,
    stage.place,
    stage.cost,
    certified.calibration_id,
    certified.score,
    certified.knn_parameters_id,
    certified.thresholds,
    certified.reached,
    certified.served,
    certified.served_right,
    classifier.*
FROM wanted
INNER JOIN cascade_stage AS stage ON wanted.id = stage.cascade_id
LEFT JOIN classifier_row_v1 AS classifier ON stage.classifier_id = classifier.id
LEFT JOIN cascade_calibration_stage AS certified
    ON
        wanted.cascade_calibration_id = certified.cascade_calibration_id
        AND stage.place = certified.place
ORDER BY wanted.name, stage.place;

-- name: of_classifiers
-- The first cascade that has one of these generations as a stage; no row if none has.
SELECT
    cascade.name,
    stage.classifier_id
FROM cascade_stage AS stage
INNER JOIN classifier_cascade AS cascade ON stage.cascade_id = cascade.id
WHERE stage.classifier_id = ANY(:classifier_ids ::integer[])
ORDER BY cascade.name
LIMIT 1;

-- name: reached
-- How many of some points of a classifier each stage has that follows it in a cascade, and how many of the newest
-- points beside them, up to the last of them, that wait for a label.
WITH following AS (
    SELECT DISTINCT later.classifier_id
    FROM cascade_stage AS own
    INNER JOIN cascade_stage AS later
        ON
            own.cascade_id = later.cascade_id
            AND own.place < later.place
    WHERE
        own.classifier_id = :classifier_id
        AND later.classifier_id IS NOT NULL
),

looked_at AS (
    SELECT
        given.external_id,
        TRUE AS is_given
    FROM exemplar AS given
    WHERE
        given.id = ANY(:exemplar_ids ::bigint[])
        -- While nothing follows, none is read.
        AND EXISTS (SELECT FROM following)
    UNION ALL
    (
        SELECT
            beside.external_id,
            FALSE AS is_given
        FROM exemplar AS beside
        WHERE
            beside.classifier_id = :classifier_id
            AND beside.split = 'scored'
            AND beside.id < :last_id
            AND beside.id <> all(:exemplar_ids ::bigint[])
            AND EXISTS (SELECT FROM following)
        ORDER BY beside.id DESC
        LIMIT :most
    )
)

SELECT
    stage.name AS stage,
    count(*) FILTER (WHERE looked_at.is_given AND at_stage.external_id IS NOT NULL) AS reached,
    count(*) FILTER (WHERE NOT looked_at.is_given) AS beside,
    count(*) FILTER (WHERE NOT looked_at.is_given AND at_stage.external_id IS NOT NULL) AS beside_reached
FROM following
INNER JOIN classifier AS stage ON following.classifier_id = stage.id
CROSS JOIN looked_at
LEFT JOIN
    LATERAL (
        SELECT exemplar.external_id
        FROM exemplar
        WHERE
            exemplar.classifier_id = following.classifier_id
            AND exemplar.external_id = looked_at.external_id
        ORDER BY exemplar.id
        -- There is one at most. The limit keeps this from becoming a join, which would read the whole classifier.
        LIMIT 1
    ) AS at_stage
    ON TRUE
GROUP BY stage.id
ORDER BY stage.id;

-- name: passes_by
-- Whether a stage of a cascade does not have some point that another one scored, up to a given one.
SELECT count(*) > 0 AS passes_by
FROM (
    SELECT scored.id
    FROM exemplar AS scored
    WHERE
        scored.classifier_id = :classifier_id
        AND scored.split = 'scored'
        AND scored.id <= :last_id
        AND NOT EXISTS (
            SELECT
            FROM exemplar AS at_stage
            WHERE
                at_stage.classifier_id = :later_id
                AND at_stage.external_id = scored.external_id
        )
    ORDER BY scored.id
    LIMIT 1
) AS passed_by;

-- name: delete_cascade
-- Delete a cascade with its stages and certificates.
DELETE FROM classifier_cascade
WHERE name = :name;

-- name: add_calibration
-- Store a certificate of a cascade.
INSERT INTO cascade_calibration (cascade_id, alpha, confidence, is_certified, points, is_withheld, document)
VALUES (:cascade_id, :alpha, :confidence, :is_certified, :points, :is_withheld, CAST(:document AS jsonb))
RETURNING id;

-- name: add_calibration_stage
-- Store what a stage serves of the evidence of a certificate.
INSERT INTO cascade_calibration_stage (
    cascade_calibration_id,
    place,
    calibration_id,
    score,
    knn_parameters_id,
    thresholds,
    reached,
    served,
    served_right
)
VALUES (
    :cascade_calibration_id,
    :place,
    :calibration_id,
    :score,
    :knn_parameters_id,
    :thresholds ::double precision[],
    :reached,
    :served ::integer[],
    :served_right ::integer[]
);

-- name: certificates
-- Certificates in full, each with the number of those of its cascade, the confidence that all of these together hold,
-- and the newest one that came later and is withheld.
WITH look AS (
    SELECT
        cascade_id,
        count(*) AS looks,
        greatest(0, 1 - sum(1 - confidence)) AS joint_confidence
    FROM cascade_calibration
    WHERE cascade_id = ANY(:cascade_ids ::bigint[])
    GROUP BY cascade_id
)

SELECT
    certified.id,
    certified.created_at,
    certified.document,
    look.looks,
    look.joint_confidence,
    withheld.id AS withheld_id,
    withheld.created_at AS withheld_at,
    withheld.document AS withheld_document
FROM cascade_calibration AS certified
INNER JOIN look ON certified.cascade_id = look.cascade_id
LEFT JOIN
    LATERAL (
        SELECT later.*
        FROM cascade_calibration AS later
        WHERE
            later.cascade_id = certified.cascade_id
            AND later.id > certified.id
            AND later.is_withheld
        ORDER BY later.id DESC
        LIMIT 1
    ) AS withheld
    ON TRUE
WHERE certified.id = ANY(:calibration_ids ::bigint[]);

-- name: history
-- The newest certificates of a cascade, the newest first, and what each serves of its evidence.
SELECT
    certified.id,
    certified.created_at,
    certified.alpha,
    certified.confidence,
    certified.is_certified,
    certified.is_withheld,
    certified.points,
    (
        SELECT sum(of_class.served)
        FROM cascade_calibration_stage AS stage
        CROSS JOIN LATERAL unnest(stage.served) AS of_class (served)
        WHERE stage.cascade_calibration_id = certified.id
    ) AS served
FROM cascade_calibration AS certified
WHERE certified.cascade_id = :cascade_id
ORDER BY certified.id DESC
LIMIT :row_limit;

-- name: add_request
-- Record what a job is asked for that certifies a cascade.
INSERT INTO cascade_request (job_id, cascade_id, alpha, certify, confidence, document_test, is_scheduled)
VALUES (:job_id, :cascade_id, :alpha, :certify, :confidence, :test, :is_scheduled);

-- name: request
-- What a job is asked for that certifies a cascade; no row if the cascade was deleted.
SELECT
    cascade.name AS cascade,
    request.alpha,
    request.certify,
    request.confidence,
    request.document_test AS test,
    request.is_scheduled
FROM cascade_request AS request
INNER JOIN classifier_cascade AS cascade ON request.cascade_id = cascade.id
WHERE request.job_id = :job_id;

-- name: due
-- The cascades of which a stage was recalibrated, with other points, since the newest certificate, and what that was
-- asked for. It waits until no stage is due for a recalibration. If no certificate could be made since then, it is not
-- tried again.
WITH newest AS (
    SELECT DISTINCT ON (cascade_id)
        cascade_id,
        id
    FROM cascade_calibration
    ORDER BY cascade_id ASC, id DESC
),

changed AS (
    SELECT
        newest.cascade_id,
        newest.id,
        max(in_use.created_at) AS created_at
    FROM newest
    INNER JOIN cascade_calibration_stage AS result ON newest.id = result.cascade_calibration_id
    INNER JOIN cascade_stage AS stage
        ON
            newest.cascade_id = stage.cascade_id
            AND result.place = stage.place
    INNER JOIN calibration_in_use_v1 AS used ON stage.classifier_id = used.classifier_id
    INNER JOIN calibration AS in_use ON used.calibration_id = in_use.id
    LEFT JOIN calibration AS certified ON result.calibration_id = certified.id
    WHERE
        in_use.id > result.calibration_id
        AND (
            -- Older snapshots are let go only when newer ones were made.
            certified.id IS NULL
            OR EXISTS (
                SELECT
                FROM calibration_point AS point
                WHERE
                    point.calibrator_id = certified.calibrator_id
                    AND point.calibrator_id = in_use.calibrator_id
                    AND is_in_snapshot_v1(certified.number, point.valid_from, point.valid_until)
                    <> is_in_snapshot_v1(in_use.number, point.valid_from, point.valid_until)
            )
        )
    GROUP BY newest.cascade_id, newest.id
)

SELECT
    cascade.name AS cascade,
    certificate.alpha,
    array(
        SELECT kind.name
        FROM jsonb_array_elements_text(certificate.document -> 'kinds') AS kind (name)
    ) AS certify,
    certificate.confidence,
    certificate.document ->> 'test' AS test
FROM changed
INNER JOIN classifier_cascade AS cascade ON changed.cascade_id = cascade.id
INNER JOIN cascade_calibration AS certificate ON changed.id = certificate.id
WHERE
    NOT EXISTS (
        SELECT
        FROM cascade_stage AS stage
        INNER JOIN calibrator ON stage.classifier_id = calibrator.classifier_id
        INNER JOIN recalibration_request AS request ON calibrator.id = request.calibrator_id
        WHERE
            stage.cascade_id = changed.cascade_id
            AND request.error IS NULL
            AND calibrator.retired_at IS NULL
    )
    AND NOT EXISTS (
        SELECT
        FROM cascade_request AS request
        INNER JOIN job ON request.job_id = job.id
        WHERE
            request.cascade_id = changed.cascade_id
            AND (
                job.state = 'running'
                OR job.created_at > changed.created_at
            )
    )
ORDER BY cascade.name;
