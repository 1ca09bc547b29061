-- name: salt
-- The salt of a classifier's tombstones; null if there are none.
SELECT salt
FROM classifier
WHERE id = :classifier_id;

-- name: make_salt
-- Give the generations of a classifier the same salt, unless they have one.
SELECT make_salt_v1(:classifier_ids ::integer[]);

-- name: lock_classifiers
-- Keep others from referring to some classifiers, or writing results of them, until this transaction ends.
SELECT id
FROM classifier
WHERE id = ANY(:classifier_ids)
ORDER BY id
FOR UPDATE;

-- name: running_jobs
-- The jobs of some classifiers, of some kinds, that are running.
SELECT
    id,
    kind
FROM job
WHERE
    classifier_id = ANY(:classifier_ids)
    AND state = 'running'
    AND kind = ANY(:kinds)
ORDER BY id;

-- name: asked_for
-- The exemplars of a classifier with one of these ids, or of one of these documents.
SELECT
    id,
    external_id,
    document_id
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND external_id = ANY(:external_ids)
UNION
SELECT
    id,
    external_id,
    document_id
FROM exemplar
WHERE
    classifier_id = :classifier_id
    AND document_id IS NOT NULL
    AND document_id = ANY(:document_ids)
ORDER BY id;

-- name: tombstones
-- The given digests that belong to what was forgotten, and when it was.
SELECT
    digest,
    created_at
FROM forgotten_exemplar
WHERE digest = ANY(:digests);

-- name: add_tombstones
-- Record that something was forgotten; it may have been before.
INSERT INTO forgotten_exemplar (digest)
SELECT digest
FROM unnest(:digests ::bytea[]) AS added (digest)
ORDER BY digest
ON CONFLICT (digest) DO NOTHING;

-- name: add_trainings
-- Record when each of these exemplars trained, if it ever did. An exemplar that trains now does so until the next
-- version.
INSERT INTO forgotten_training (classifier_id, support_from, support_until, created_at)
SELECT
    exemplar.classifier_id,
    CASE WHEN first_change.kind = 'added' THEN first_change.version ELSE exemplar.id END AS support_from,
    CASE WHEN exemplar.split = 'train' THEN :next_version ELSE last_removal.version END AS support_until,
    clock_timestamp() AS created_at
FROM exemplar
LEFT JOIN
    LATERAL (
        SELECT
            support_change.kind,
            support_change.version
        FROM support_change
        WHERE support_change.exemplar_id = exemplar.id
        ORDER BY support_change.version
        LIMIT 1
    ) AS first_change
    ON TRUE
LEFT JOIN
    LATERAL (
        SELECT max(support_change.version) AS version
        FROM support_change
        WHERE
            support_change.exemplar_id = exemplar.id
            AND support_change.kind = 'removed'
    ) AS last_removal
    ON TRUE
WHERE
    exemplar.id = ANY(:exemplar_ids)
    AND (exemplar.split = 'train' OR last_removal.version IS NOT NULL);

-- name: training_now
-- The given exemplars that train.
SELECT id
FROM exemplar
WHERE
    id = ANY(:exemplar_ids)
    AND split = 'train';

-- name: lists_of_training
-- Those of some exemplars of a classifier that train, and how many neighbour lists name each.
SELECT
    exemplar.external_id,
    (
        SELECT count(*)
        FROM neighbours
        WHERE neighbours.neighbour_ids @> ARRAY[exemplar.id]
    ) AS lists
FROM exemplar
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.external_id = ANY(:external_ids)
    AND exemplar.split = 'train';

-- name: lists_naming
-- The points, other than these exemplars themselves, whose neighbour lists name one of them.
SELECT exemplar_id
FROM neighbours
WHERE
    neighbour_ids && :exemplar_ids ::bigint[]
    AND exemplar_id <> all(:exemplar_ids ::bigint[])
ORDER BY exemplar_id;

-- name: add_points
-- Record which snapshots count each of the points of these exemplars.
INSERT INTO forgotten_point (calibrator_id, split, valid_from, valid_until, created_at)
SELECT
    point.calibrator_id,
    point.split,
    point.valid_from,
    coalesce(
        point.valid_until,
        (
            SELECT calibrator.last_number + 1
            FROM calibrator
            WHERE calibrator.id = point.calibrator_id
        )
    ) AS valid_until,
    -- After every decision that counted them: the classifier is locked by now.
    clock_timestamp() AS created_at
FROM calibration_point AS point
WHERE point.exemplar_id = ANY(:exemplar_ids);

-- name: add_evidence
-- Record what these exemplars show of the thresholds of chains, and nothing else of them.
INSERT INTO forgotten_evidence (chain_id, document, predicted, score, label, weight)
SELECT
    evidence.chain_id,
    evidence.document,
    evidence.predicted,
    coalesce(
        (
            SELECT max(threshold.score ::double precision)
            FROM
                json_array_elements_text(chain.chain -> 'classes' -> evidence.predicted -> 'scores')
                    AS threshold (score)
            WHERE threshold.score ::double precision <= evidence.score
        ),
        0
    ) AS score,
    evidence.label,
    evidence.weight
FROM standing_evidence AS evidence
INNER JOIN standing_chain AS chain ON evidence.chain_id = chain.id
WHERE
    evidence.exemplar_id = ANY(:exemplar_ids ::bigint[])
    AND evidence.label IS NOT NULL;

-- name: keep_alarms
-- Keep the alarms that stand of monitors for which these exemplars may count.
UPDATE monitor_alarm
SET is_kept = TRUE
WHERE
    ended_at IS NULL
    AND monitor_id IN (
        SELECT monitor.id
        FROM exemplar
        INNER JOIN decision ON exemplar.id = decision.exemplar_id
        INNER JOIN calibration ON decision.calibration_id = calibration.id
        INNER JOIN monitor ON calibration.calibrator_id = monitor.calibrator_id
        WHERE
            exemplar.id = ANY(:exemplar_ids ::bigint[])
            AND exemplar.label IS NOT NULL
    );

-- name: renew_snapshots
-- Give the snapshots that count a point of these exemplars another revision, so that cached copies are out of date.
UPDATE calibration
SET revision = gen_random_uuid()
WHERE
    id IN (
        SELECT counting.id
        FROM calibration_point AS point
        INNER JOIN calibration AS counting
            ON
                point.calibrator_id = counting.calibrator_id
                AND is_in_snapshot_v1(counting.number, point.valid_from, point.valid_until)
        WHERE point.exemplar_id = ANY(:exemplar_ids)
    )
RETURNING
    calibrator_id,
    state = 'current' AS is_current;

-- name: delete_admit_evidence
-- Delete the evidence of decisions on these exemplars.
DELETE FROM admit_evidence
USING decision
WHERE
    admit_evidence.decision_id = decision.id
    AND decision.exemplar_id = ANY(:exemplar_ids);

-- name: delete_abers_evidence
-- Delete the evidence of decisions on these exemplars.
DELETE FROM abers_evidence
USING decision
WHERE
    abers_evidence.decision_id = decision.id
    AND decision.exemplar_id = ANY(:exemplar_ids);

-- name: delete_point_change
-- Take these exemplars out of the ledger of changes, so that the next snapshots have to be computed from scratch.
WITH unknown AS (
    DELETE FROM snapshot_view
    USING calibrator
    WHERE
        snapshot_view.calibrator_id = calibrator.id
        AND calibrator.classifier_id = :classifier_id
)

DELETE FROM point_change
WHERE
    classifier_id = :classifier_id
    AND exemplar_id = ANY(:exemplar_ids);

-- name: delete_label_event
-- Delete the labels of these exemplars, which have tombstones; return how many there were.
SELECT forget_label_events_v1(:exemplar_ids ::bigint[]);

-- name: delete_exemplar_vector
-- Delete the vectors of these exemplars.
DELETE FROM exemplar_vector
WHERE
    classifier_id = :classifier_id
    AND exemplar_id = ANY(:exemplar_ids);

-- name: delete_exemplar
-- Delete these exemplars themselves, with their logits and attributes.
DELETE FROM exemplar
WHERE id = ANY(:exemplar_ids);

-- name: errors
-- The messages of errors of some classifiers' jobs, chunks and recalibrations, which may name exemplars.
SELECT
    'job' AS origin,
    job.id,
    NULL AS ordinal,
    job.error
FROM job
WHERE
    job.classifier_id = ANY(:classifier_ids)
    AND job.error IS NOT NULL
UNION ALL
SELECT
    'job_chunk' AS origin,
    chunk.job_id AS id,
    chunk.ordinal,
    chunk.error
FROM job_chunk AS chunk
INNER JOIN job ON chunk.job_id = job.id
WHERE
    job.classifier_id = ANY(:classifier_ids)
    AND chunk.error IS NOT NULL
UNION ALL
SELECT
    'recalibration_request' AS origin,
    request.calibrator_id AS id,
    NULL AS ordinal,
    request.error
FROM recalibration_request AS request
INNER JOIN calibrator ON request.calibrator_id = calibrator.id
WHERE
    calibrator.classifier_id = ANY(:classifier_ids)
    AND request.error IS NOT NULL;

-- name: set_error_of_job
-- Replace the message of a job's error.
UPDATE job
SET error = :error
WHERE id = :id;

-- name: set_error_of_job_chunk
-- Replace the message of a chunk's error.
UPDATE job_chunk
SET error = :error
WHERE
    job_id = :id
    AND ordinal = :ordinal;

-- name: set_error_of_recalibration_request
-- Replace the message of the error of a request for recalibration.
UPDATE recalibration_request
SET error = :error
WHERE calibrator_id = :id;

-- name: trained_then
-- How many training exemplars of a classifier that were forgotten, after a time if one is given, trained at a support
-- version.
SELECT count(*)
FROM forgotten_training
WHERE
    classifier_id = :classifier_id
    AND support_from <= :support_version
    AND support_until > :support_version
    AND (CAST(:after AS timestamptz) IS NULL OR created_at >= :after);

-- name: lost_points
-- How many points of a snapshot were forgotten after a time, in each split.
SELECT
    count(*) FILTER (WHERE point.split = 'mc') AS mc,
    count(*) FILTER (WHERE point.split = 'vp') AS vp
FROM calibration
INNER JOIN forgotten_point AS point
    ON
        calibration.calibrator_id = point.calibrator_id
        AND is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)
WHERE
    calibration.id = :calibration_id
    AND (CAST(:after AS timestamptz) IS NULL OR point.created_at >= :after);

-- name: used_revisions
-- Those of some revisions that may be cached: of training exemplars of classifiers, and of snapshots.
SELECT support_revision AS revision
FROM classifier
WHERE
    support_revision = ANY(:revisions ::uuid[])
    AND deleting_since IS NULL
UNION ALL
SELECT of_snapshot.revision
FROM unnest(:revisions ::uuid[]) AS given (revision)
CROSS JOIN
    LATERAL (
        SELECT
            calibration.revision,
            calibration.calibrator_id
        FROM calibration
        WHERE calibration.revision = given.revision
        ORDER BY calibration.revision
        LIMIT 1
    ) AS of_snapshot
INNER JOIN calibrator ON of_snapshot.calibrator_id = calibrator.id
INNER JOIN classifier ON calibrator.classifier_id = classifier.id
WHERE classifier.deleting_since IS NULL;
