-- A classifier of version 0.1.0 with :rows points: a few train, half of the others are decided, half calibrate.
INSERT INTO venn_admit.classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)
VALUES ('large', '{no,yes}', 4, 3, 0.1, 0.45, 7);

SELECT venn_admit.create_vector_partitions_v2(1, 4);

INSERT INTO venn_admit.exemplar (
    id, classifier_id, external_id, split, network_logits, network_predicted, label, content_digest
)
OVERRIDING SYSTEM VALUE
SELECT
    n,
    1,
    'point-' || n,
    CASE WHEN n <= 100 THEN 'train' WHEN n % 2 = 0 THEN 'scored' WHEN n % 4 = 1 THEN 'mc' ELSE 'vp' END,
    ARRAY[n % 7, 3]::real[],
    CASE WHEN n % 7 >= 3 THEN 0 ELSE 1 END,
    CASE WHEN n <= 100 OR n % 2 = 1 THEN n % 2 END,
    sha256(n::text::bytea)
FROM generate_series(1, :rows) AS n;

INSERT INTO venn_admit.exemplar_vector (classifier_id, support, exemplar_id, vector)
SELECT
    1,
    n <= 100,
    n,
    ARRAY[n % 11, n % 13, n % 17, n % 19]::real[]::public.vector
FROM generate_series(1, :rows) AS n;

INSERT INTO venn_admit.label_event (exemplar_id, label, selection, source)
SELECT
    id,
    label,
    'random',
    'benchmark'
FROM venn_admit.exemplar
WHERE label IS NOT NULL;

INSERT INTO venn_admit.neighbours (exemplar_id, support_version, neighbour_ids, distances)
SELECT
    n,
    100,
    ARRAY[1 + n % 90, 2 + n % 90, 3 + n % 90],
    '{1,2,3}'
FROM generate_series(101, :rows) AS n;

INSERT INTO venn_admit.knn_parameters (
    classifier_id, origin, beta, gamma, eta, eta_loc, fit_count, dev_count, dev_discrepancies, is_current
)
VALUES (1, 'fitted', '{0,0}', '{1,1}', 1.5, 0.5, 10, 10, 1, TRUE);

INSERT INTO venn_admit.approximation (
    knn_parameters_id, exemplar_id, support_version, predicted, match_count, distance, logits
)
SELECT
    1,
    n,
    100,
    n % 2,
    n % 4,
    n % 5,
    ARRAY[n % 3, 1]::double precision[]
FROM generate_series(101, :rows) AS n;

INSERT INTO venn_admit.calibrator (
    classifier_id, settings_digest, alpha, delta, kappa, bin_edges, thresholds, chosen_at
)
VALUES (1, '\x00', 0.1, 'Infinity', 10, '{0,1}', '{0.9,0.95}', now());

INSERT INTO venn_admit.calibration (
    calibrator_id, number, knn_parameters_id, s_hat, omega, mc_count, vp_count, reason, state
)
SELECT
    1,
    1,
    1,
    0.1,
    'Infinity',
    count(*) FILTER (WHERE split = 'mc'),
    count(*) FILTER (WHERE split = 'vp'),
    'benchmark',
    'current'
FROM venn_admit.exemplar;

INSERT INTO venn_admit.calibration_point (
    calibrator_id, exemplar_id, valid_from, split, label, predicted, match_count, bin, distance, score, admit_set
)
SELECT
    1,
    id,
    1,
    split,
    label,
    id % 2,
    id % 4,
    (id % 4 > 0)::integer,
    id % 5,
    0.25,
    CASE WHEN split = 'vp' THEN B'10' END
FROM venn_admit.exemplar
WHERE split IN ('mc', 'vp');

INSERT INTO venn_admit.job (
    classifier_id, kind, state, calibration_id, weighted, require_full_match, row_count, finished_at
)
SELECT
    1,
    'score',
    'done',
    1,
    TRUE,
    FALSE,
    count(*),
    now()
FROM venn_admit.exemplar
WHERE split = 'scored';

INSERT INTO venn_admit.job_row (job_id, row_number, exemplar_id)
SELECT
    1,
    row_number() OVER (ORDER BY id) - 1,
    id
FROM venn_admit.exemplar
WHERE split = 'scored';

INSERT INTO venn_admit.decision (
    calibration_id,
    exemplar_id,
    weighted,
    require_full_match,
    support_version,
    predicted,
    match_count,
    distance,
    logits,
    admit_set,
    band_size,
    threshold,
    category_size,
    upweight,
    lower,
    upper,
    decision,
    reason
)
SELECT
    1,
    id,
    TRUE,
    FALSE,
    100,
    id % 2,
    id % 4,
    id % 5,
    ARRAY[id % 3, 1]::double precision[],
    CASE WHEN id % 2 = 0 THEN B'10' ELSE B'01' END,
    '{20,20}',
    '{0.5,0.5}',
    20,
    1,
    0.95,
    0.99,
    CASE WHEN id % 3 > 0 THEN id % 2 END,
    CASE WHEN id % 3 = 0 THEN 'probability below 1 - alpha' END
FROM venn_admit.exemplar
WHERE split = 'scored';
