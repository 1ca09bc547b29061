-- name: missing_partitions
-- The partitions of vectors that classifiers should have, and have not.
SELECT
    classifier.name,
    format('exemplar_vector_%s_%s', classifier.id, side.name) AS partition
FROM classifier
CROSS JOIN (VALUES ('support'), ('held_out')) AS side (name)
WHERE
    classifier.dimension IS NOT NULL
    AND classifier.deleting_since IS NULL
    AND to_regclass(format('venn_admit.exemplar_vector_%s_%s', classifier.id, side.name)) IS NULL
ORDER BY classifier.id, side.name;

-- name: unusable_relations
-- Indexes that were not built to the end, and rules that were never checked against the rows.
SELECT format('index %s', pg_index.indexrelid::regclass) AS what
FROM pg_index
INNER JOIN pg_class ON pg_index.indrelid = pg_class.oid
WHERE
    pg_class.relnamespace = to_regnamespace('venn_admit')
    AND NOT (pg_index.indisvalid AND pg_index.indisready)
UNION ALL
SELECT format('constraint %I of %s', pg_constraint.conname, pg_constraint.conrelid::regclass) AS what
FROM pg_constraint
WHERE
    pg_constraint.connamespace = to_regnamespace('venn_admit')
    AND NOT pg_constraint.convalidated
ORDER BY what;

-- name: identities
-- The columns whose values the server gives, in tables that a standby has too.
SELECT
    pg_class.relname AS relation,
    pg_attribute.attname AS attribute
FROM pg_class
INNER JOIN pg_attribute ON pg_class.oid = pg_attribute.attrelid
WHERE
    pg_class.relnamespace = to_regnamespace('venn_admit')
    AND pg_class.relkind IN ('r', 'p')
    AND pg_class.relpersistence = 'p'
    AND pg_attribute.attidentity <> ''
ORDER BY pg_class.relname;

-- name: vectors
-- How many exemplars a classifier has, and how many vectors; exemplars without one, or with one on the wrong side.
SELECT
    count(exemplar.id) AS exemplars,
    count(stored.exemplar_id) AS vectors,
    count(*) FILTER (WHERE stored.exemplar_id IS NULL) AS missing,
    min(exemplar.id) FILTER (WHERE stored.exemplar_id IS NULL) AS first_missing,
    count(*) FILTER (WHERE stored.support <> (exemplar.split = 'train')) AS misplaced,
    min(exemplar.id) FILTER (WHERE stored.support <> (exemplar.split = 'train')) AS first_misplaced,
    count(*) FILTER (WHERE exemplar.id IS NULL) AS unowned,
    min(stored.exemplar_id) FILTER (WHERE exemplar.id IS NULL) AS first_unowned
FROM (
    SELECT
        id,
        split
    FROM exemplar
    WHERE classifier_id = :classifier_id
) AS exemplar
FULL JOIN (
    SELECT
        exemplar_id,
        support
    FROM exemplar_vector
    WHERE classifier_id = :classifier_id
) AS stored ON exemplar.id = stored.exemplar_id;

-- name: contents
-- The next exemplars of a classifier that are whole, with what their digests are made of besides numbers.
SELECT
    exemplar.id,
    exemplar.document_id,
    exemplar.content_digest,
    exemplar.point_digest
FROM exemplar
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.id > :after
    AND (
        NOT :has_vectors
        OR EXISTS (
            SELECT 1
            FROM exemplar_vector AS stored
            WHERE
                stored.classifier_id = :classifier_id
                AND stored.exemplar_id = exemplar.id
        )
    )
ORDER BY exemplar.id
LIMIT :row_limit;

-- name: labels
-- The exemplars of a classifier, and those whose label is not that of their newest label event.
SELECT
    count(*) AS checked,
    count(*) FILTER (WHERE exemplar.label IS DISTINCT FROM newest.label) AS wrong,
    min(exemplar.id) FILTER (WHERE exemplar.label IS DISTINCT FROM newest.label) AS first_wrong
FROM exemplar
LEFT JOIN
    LATERAL (
        SELECT label_event.label
        FROM label_event
        WHERE label_event.exemplar_id = exemplar.id
        ORDER BY label_event.id DESC
        LIMIT 1
    ) AS newest
    ON TRUE
WHERE exemplar.classifier_id = :classifier_id;

-- name: lists
-- The approximations of a classifier, and those without a neighbour list that no running job searches either.
SELECT
    count(*) AS checked,
    count(*) FILTER (WHERE NOT searched.is_listed) AS wrong,
    min(approximation.exemplar_id) FILTER (WHERE NOT searched.is_listed) AS first_wrong
FROM approximation
INNER JOIN knn_parameters ON approximation.knn_parameters_id = knn_parameters.id
LEFT JOIN neighbours ON approximation.exemplar_id = neighbours.exemplar_id
CROSS JOIN
    LATERAL (
        SELECT
            neighbours.exemplar_id IS NOT NULL
            OR EXISTS (
                SELECT 1
                FROM job_row
                INNER JOIN job ON job_row.job_id = job.id
                WHERE
                    job_row.exemplar_id = approximation.exemplar_id
                    AND job.state = 'running'
            ) AS is_listed
    ) AS searched
WHERE knn_parameters.classifier_id = :classifier_id;

-- name: list_members
-- The neighbour lists of a classifier, and those that are not of K of its exemplars, nearest first.
SELECT
    count(*) AS checked,
    count(*) FILTER (WHERE NOT listed.is_whole) AS wrong,
    min(listed.exemplar_id) FILTER (WHERE NOT listed.is_whole) AS first_wrong
FROM (
    SELECT
        neighbours.exemplar_id,
        count(own.id) = :neighbour_count
        AND count(*) = :neighbour_count
        AND bool_and(member.distance >= coalesce(member.before, 0)) AS is_whole
    FROM neighbours
    INNER JOIN exemplar AS point ON neighbours.exemplar_id = point.id
    CROSS JOIN
        LATERAL (
            SELECT
                unnested.id,
                unnested.distance,
                lag(unnested.distance) OVER (ORDER BY unnested.position) AS before
            FROM unnest(neighbours.neighbour_ids, neighbours.distances) WITH ORDINALITY
                AS unnested (id, distance, position)
        ) AS member
    LEFT JOIN exemplar AS own
        ON
            member.id = own.id
            AND own.classifier_id = :classifier_id
    WHERE point.classifier_id = :classifier_id
    GROUP BY neighbours.exemplar_id
) AS listed;

-- name: snapshots
-- The snapshots of a classifier, with the points that each should have and has, those that were forgotten included, and
-- whether what belongs to it by its method is there. Rows are counted once, by the numbers from and until which they
-- are valid, because snapshots times points would be too many.
WITH valid AS (
    SELECT
        calibrator_id,
        valid_from,
        valid_until,
        split
    FROM calibration_point
    UNION ALL
    SELECT
        calibrator_id,
        valid_from,
        valid_until,
        split
    FROM forgotten_point
    UNION ALL
    SELECT
        calibrator_id,
        valid_from,
        valid_until,
        'step' AS split
    FROM venn_abers_step
),

held AS (
    SELECT
        change.calibrator_id,
        change.number,
        CAST(sum(sum(change.rows) FILTER (WHERE change.split = 'mc')) OVER up_to AS bigint) AS mc,
        CAST(sum(sum(change.rows) FILTER (WHERE change.split = 'vp')) OVER up_to AS bigint) AS vp,
        CAST(sum(sum(change.rows) FILTER (WHERE change.split = 'step')) OVER up_to AS bigint) AS steps
    FROM calibrator
    CROSS JOIN
        LATERAL (
            SELECT
                valid.calibrator_id,
                valid.valid_from AS number,
                valid.split,
                1 AS rows
            FROM valid
            WHERE valid.calibrator_id = calibrator.id
            UNION ALL
            SELECT
                valid.calibrator_id,
                valid.valid_until AS number,
                valid.split,
                -1 AS rows
            FROM valid
            WHERE
                valid.calibrator_id = calibrator.id
                AND valid.valid_until IS NOT NULL
            UNION ALL
            SELECT
                made.calibrator_id,
                made.number,
                NULL AS split,
                0 AS rows
            FROM calibration AS made
            WHERE made.calibrator_id = calibrator.id
        ) AS change
    WHERE calibrator.classifier_id = :classifier_id
    GROUP BY
        change.calibrator_id,
        change.number
    WINDOW up_to AS (PARTITION BY change.calibrator_id ORDER BY change.number)
)

SELECT
    calibration.id,
    calibration.mc_count,
    calibration.vp_count,
    coalesce(held.mc, 0) AS mc_held,
    coalesce(held.vp, 0) AS vp_held,
    CASE calibrator.method
        WHEN 'venn-admit' THEN band_radius.calibration_id IS NOT NULL
        ELSE
            score_choice.calibration_id IS NOT NULL
            AND (
                (calibrator.certify IS NULL AND coalesce(calibrator.promise, 'pointwise') = 'pointwise')
                OR certificate.calibration_id IS NOT NULL
            )
            AND coalesce(held.steps, 0) > 0
    END AS is_complete
FROM calibration
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN held
    ON
        calibration.calibrator_id = held.calibrator_id
        AND calibration.number = held.number
LEFT JOIN band_radius ON calibration.id = band_radius.calibration_id
LEFT JOIN score_choice ON calibration.id = score_choice.calibration_id
LEFT JOIN certificate ON calibration.id = certificate.calibration_id
WHERE calibrator.classifier_id = :classifier_id
ORDER BY calibration.id;

-- name: decisions
-- The decisions of a classifier, and those without the evidence of their method.
SELECT
    count(*) AS checked,
    count(*) FILTER (WHERE evidence.decision_id IS NULL) AS wrong,
    min(decision.id) FILTER (WHERE evidence.decision_id IS NULL) AS first_wrong
FROM calibrator
INNER JOIN calibration ON calibrator.id = calibration.calibrator_id
INNER JOIN decision ON calibration.id = decision.calibration_id
LEFT JOIN
    (
        SELECT
            decision_id,
            'venn-admit' AS method
        FROM admit_evidence
        UNION ALL
        SELECT
            decision_id,
            'venn-abers' AS method
        FROM abers_evidence
    ) AS evidence
    ON
        decision.id = evidence.decision_id
        AND calibrator.method = evidence.method
WHERE calibrator.classifier_id = :classifier_id;

-- name: jobs
-- The jobs of a classifier, and those whose rows or chunks are not all there; of a finished one that scored, also those
-- with a row that has no decision.
SELECT
    count(*) AS checked,
    count(*) FILTER (WHERE NOT work.is_whole) AS wrong,
    min(work.id) FILTER (WHERE NOT work.is_whole) AS first_wrong
FROM (
    SELECT
        job.id,
        -- Rows that are gone may be those of exemplars that were forgotten, of which each may have had several.
        (
            job.row_count = rows_kept.count
            OR (job.row_count > rows_kept.count AND EXISTS (SELECT FROM forgotten_exemplar))
        )
        AND job.row_count = (
            SELECT coalesce(sum(job_chunk.end_row - job_chunk.first_row), 0)
            FROM job_chunk
            WHERE job_chunk.job_id = job.id
        )
        AND NOT (
            job.kind = 'score'
            AND job.state = 'done'
            AND EXISTS (
                SELECT 1
                FROM job_row
                LEFT JOIN decision
                    ON
                        decision.calibration_id = job.calibration_id
                        AND job_row.exemplar_id = decision.exemplar_id
                        AND decision.weighted = job.weighted
                        AND decision.require_full_match = job.require_full_match
                WHERE
                    job_row.job_id = job.id
                    AND decision.id IS NULL
            )
        ) AS is_whole
    FROM job
    CROSS JOIN
        LATERAL (
            SELECT count(*) AS count
            FROM job_row
            WHERE job_row.job_id = job.id
        ) AS rows_kept
    WHERE
        job.classifier_id = :classifier_id
        AND job.removed_at IS NULL
) AS work;
