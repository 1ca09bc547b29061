-- name: add_certificate
-- Store what became of the certificate that a new snapshot was asked for, or its policy of the average promise.
INSERT INTO certificate (
    calibration_id,
    thresholds,
    bounded,
    groups,
    p_value,
    share,
    documents,
    documents_needed,
    document,
    chain_id
)
VALUES (
    :calibration_id,
    :thresholds ::double precision[],
    :bounded,
    CAST(:groups AS jsonb),
    :p_value,
    :share,
    :documents,
    :documents_needed,
    CAST(:document AS jsonb),
    :chain_id
);

-- name: certificate
-- The certificate of a snapshot in full, beside the average promise if that decides; no row without one.
SELECT coalesce(document -> 'certificate', document) AS document
FROM certificate
WHERE
    calibration_id = :calibration_id
    AND (document ->> 'promise' IS NULL OR document -> 'certificate' IS NOT NULL);

-- name: certified_kinds
-- The kinds of classes that a snapshot's policy is certified for; no row if none is certified.
SELECT document -> 'kinds' AS kinds
FROM certificate
WHERE
    calibration_id = :calibration_id
    AND p_value IS NOT NULL;

-- name: average
-- What the thresholds of a snapshot's average promise rest on; no row if it was asked for another promise.
SELECT document - 'certificate' AS document
FROM certificate
WHERE
    calibration_id = :calibration_id
    AND document ->> 'promise' = 'average';

-- name: policy
-- The thresholds of a snapshot's policy, what they bound, those of groups, and the classes that are never admitted;
-- nulls if a certificate was asked for, and none passed.
SELECT
    thresholds,
    bounded,
    groups,
    document -> 'withdrawn' AS withdrawn,
    document -> 'uncertified' AS uncertified
FROM certificate
WHERE calibration_id = :calibration_id;

-- name: add_look
-- Add that the certificate of a new snapshot looked at its labels, unless it is known, as nothing has changed since.
INSERT INTO certificate_look (classifier_id, calibrator_id, calibration_id, digest, confidence)
SELECT
    calibrator.classifier_id,
    calibrator.id AS calibrator_id,
    calibration.id AS calibration_id,
    :digest,
    CAST(:confidence AS numeric) AS confidence
FROM calibration
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
WHERE calibration.id = :calibration_id
ON CONFLICT (calibrator_id, digest) DO NOTHING;

-- name: spent
-- How many certificates looked at the labels of a classifier, in any generation, and the sum of 1 - confidence.
SELECT
    max(classifier.earlier_looks) + count(look.id) AS looks,
    max(classifier.earlier_spent) + coalesce(sum(1 - look.confidence), 0) AS spent
FROM classifier
LEFT JOIN certificate_look AS look
    ON
        classifier.id = look.classifier_id
        AND classifier.deleting_since IS NULL
WHERE coalesce(classifier.original_id, classifier.id) = :first_id;

-- name: looks
-- Every certificate that looked at the labels of a classifier, in any generation that is left, the newest first.
SELECT
    calibration,
    setting,
    classifier,
    created_at,
    confidence,
    looks,
    joint_confidence
FROM certificate_look_row_v2
WHERE first_id = :first_id
ORDER BY id DESC;
