-- name: add_certificate
-- Store what became of the certificate that a new snapshot was asked for.
INSERT INTO certificate (
    calibration_id,
    thresholds,
    bounded,
    p_value,
    share,
    documents,
    documents_needed,
    document
)
VALUES (
    :calibration_id,
    :thresholds ::double precision[],
    :bounded,
    :p_value,
    :share,
    :documents,
    :documents_needed,
    CAST(:document AS jsonb)
);

-- name: certificate
-- The certificate of a snapshot in full; no row if it was asked for none.
SELECT document
FROM certificate
WHERE calibration_id = :calibration_id;

-- name: policy
-- The thresholds of a snapshot's certified policy, and what they bound; nulls if none is certified.
SELECT
    thresholds,
    bounded
FROM certificate
WHERE calibration_id = :calibration_id;
