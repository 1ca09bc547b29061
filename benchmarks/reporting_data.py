"""Rows for reports: a classifier that was calibrated by both methods and decided on a day's traffic each day."""

import re
from datetime import date

from sqlalchemy import Connection, text

FIRST_DAY = date(2026, 1, 1)

# Exemplars are numbered from :first: training ones, those that calibrate, and those that are scored. u is a number in
# [0, 1) that depends on nothing but n.
STATEMENTS = """
INSERT INTO exemplar
    (id, classifier_id, external_id, split, network_logits, network_predicted, label, content_digest)
SELECT
    :first + n, :classifier, n::text,
    CASE WHEN n < :training THEN 'train' WHEN n >= :unlabelled THEN 'scored' WHEN n % 2 = 0 THEN 'mc' ELSE 'vp' END,
    '{0, 1}', 1, CASE WHEN n < :unlabelled OR n % 20 = 0 THEN n % 2 END, int4send(n)
FROM generate_series(0, :end - 1) AS n;
INSERT INTO exemplar_vector (classifier_id, support, exemplar_id, vector)
SELECT :classifier, n < :training, :first + n, array[hashint4(n) & 65535, n % 100]::vector
FROM generate_series(0, :end - 1) AS n;
INSERT INTO neighbours (exemplar_id, support_version, neighbour_ids, distances)
SELECT :first + n, :first + :training,
    array(SELECT :first + (n * 31 + k) % :training FROM generate_series(0, :k - 1) AS k),
    array(SELECT 1.0 + k FROM generate_series(0, :k - 1) AS k)
FROM generate_series(:training, :end - 1) AS n;
INSERT INTO label_event (exemplar_id, label, selection, source, created_at)
SELECT :first + n, n % 2, 'random', 'test',
    CAST(:first_day AS date) + interval '1 day' * floor(n::numeric * :days / :unlabelled)
FROM generate_series(0, :unlabelled - 1) AS n;
INSERT INTO knn_parameters (id, classifier_id, origin, beta, gamma, eta, eta_loc, is_current) OVERRIDING SYSTEM VALUE
VALUES (:classifier, :classifier, 'given', '{0, 0}', '{1, 1}', 1, 1, TRUE);
INSERT INTO approximation (knn_parameters_id, exemplar_id, support_version, predicted, match_count, distance, logits)
SELECT :classifier, :first + n, 0, 1, n % (:k + 1), (hashint4(n) & 65535) / 65536.0, '{0, 1}'
FROM generate_series(:training, :end - 1) AS n;
INSERT INTO calibrator
    (id, classifier_id, settings_digest, method, alpha, delta, kappa, bin_edges, thresholds, score)
OVERRIDING SYSTEM VALUE
VALUES
    (:classifier * 2, :classifier, 'a', 'venn-admit', 0.1, 1, 1, array(SELECT generate_series(0, :k)), '{0.9, 0.9}',
     NULL),
    (:classifier * 2 + 1, :classifier, 'b', 'venn-abers', 0.1, NULL, NULL, '{0}', '{0.9, 0.9}', 'network');
INSERT INTO calibration (id, calibrator_id, number, knn_parameters_id, mc_count, vp_count, reason, state)
OVERRIDING SYSTEM VALUE
SELECT id, id, 1, :classifier, :calibrating / 2, :calibrating / 2, '', 'current'
FROM calibrator WHERE classifier_id = :classifier;
INSERT INTO score_choice (calibration_id, score) VALUES (:classifier * 2 + 1, 'network');
INSERT INTO band_radius (calibration_id, s_hat, omega) VALUES (:classifier * 2, 0.1, 0.1);
INSERT INTO calibration_point
    (calibrator_id, method, exemplar_id, valid_from, split, label, predicted, match_count, bin, distance, score,
     admit_set)
SELECT
    calibrator.id, method, :first + n, 1, CASE WHEN n % 2 = 0 THEN 'mc' ELSE 'vp' END,
    CASE WHEN u < 0.9 THEN n / 3 % 2 ELSE 1 - n / 3 % 2 END, n / 3 % 2, n % (:k + 1),
    CASE WHEN method = 'venn-admit' THEN n % (:k + 1) ELSE 0 END, u, 1 - u,
    CASE WHEN n % 2 = 1 AND method = 'venn-admit' THEN CASE WHEN u < 0.5 THEN B'01' ELSE B'11' END END
FROM generate_series(:training, :unlabelled - 1) AS n
CROSS JOIN LATERAL (SELECT (hashint4(n) & 65535) / 65536.0 AS u) AS drawn
CROSS JOIN calibrator
WHERE classifier_id = :classifier AND (method = 'venn-admit' OR n % 2 = 0);
INSERT INTO snapshot_quartiles (calibration_id, quartiles)
SELECT calibrator_id, percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY distance)
FROM calibration_point INNER JOIN calibrator ON calibrator_id = calibrator.id WHERE classifier_id = :classifier
GROUP BY calibrator_id;
INSERT INTO venn_abers_step (calibrator_id, cell, score, valid_from, lower, upper_at, upper_above)
SELECT :classifier * 2 + 1, n % 2, n / 1000.0, 1, n / 1000.0, 1, 1 FROM generate_series(0, 999) AS n;
INSERT INTO decision
    (calibration_id, exemplar_id, weighted, require_full_match, support_version, predicted, match_count, distance,
     logits, decision, reason, created_at)
SELECT
    calibrator.id, :first + n, FALSE, FALSE, :first + :training, 1, n % (:k + 1), (hashint4(n) & 65535) / 65536.0,
    '{0, 1}',
    CASE WHEN n % 3 = 0 THEN 1 END,
    CASE
        WHEN n % 3 > 0 AND method = 'venn-admit' THEN 'band below kappa'
        WHEN n % 3 > 0 THEN 'probability below threshold'
    END,
    CAST(:first_day AS date) + interval '1 day' * floor((n - :unlabelled)::numeric * :days / :scored)
FROM generate_series(:unlabelled, :end - 1) AS n CROSS JOIN calibrator WHERE classifier_id = :classifier ORDER BY n;
INSERT INTO admit_evidence (decision_id, admit_set, band_size, threshold, category_size)
SELECT id, B'01', ARRAY[0, id % 7 + 1], '{0, 0}', 1 FROM decision WHERE calibration_id = :classifier * 2;
INSERT INTO abers_evidence (decision_id, score, step_score)
SELECT id, 0.5, 0.5 FROM decision WHERE calibration_id = :classifier * 2 + 1;
INSERT INTO job
    (classifier_id, kind, state, calibration_id, weighted, require_full_match, row_count, created_at, finished_at)
SELECT
    :classifier, 'score', 'done', calibrator.id, FALSE, FALSE, :scored / :days,
    CAST(:first_day AS date) + interval '1 day' * day, now()
FROM generate_series(0, :days - 1) AS day CROSS JOIN calibrator WHERE classifier_id = :classifier
ORDER BY day, calibrator.id;
INSERT INTO job_row (job_id, row_number, exemplar_id)
SELECT job.id, n, n + :first + :unlabelled + (job.created_at::date - CAST(:first_day AS date)) * row_count
FROM job CROSS JOIN LATERAL generate_series(0, row_count - 1) AS n WHERE classifier_id = :classifier;
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row, state)
SELECT id, 0, 0, row_count, 'done' FROM job WHERE classifier_id = :classifier;
"""


def fill(
    connection: Connection,
    classifier_id: int,
    *,
    first: int,
    training: int,
    calibrating: int,
    scored: int,
    days: int,
    neighbour_count: int,
    first_day: date = FIRST_DAY,
) -> None:
    """Store a classifier's exemplars, calibrations, decisions and jobs.

    The snapshot of venn-admit has `calibrating` points and that of venn-abers half of them; each decided on all
    `scored` exemplars, in a job a day. The calibrations are 2 * classifier_id and 2 * classifier_id + 1.

    Args:
        connection: In a transaction of a user who may leave out the checks of foreign keys.
        classifier_id: A classifier of two classes and two dimensions without exemplars.
        first: The id of the first exemplar.
        training: Exemplars that are neighbours.
        calibrating: Exemplars of mc and vp.
        scored: Exemplars decided on; a multiple of `days`.
        days: Days of traffic.
        neighbour_count: K.
        first_day: The first day of the traffic.
    """
    given = {
        "classifier": classifier_id,
        "first": first,
        "training": training,
        "calibrating": calibrating,
        "unlabelled": training + calibrating,
        "scored": scored,
        "end": training + calibrating + scored,
        "days": days,
        "k": neighbour_count,
        "first_day": first_day,
    }
    connection.execute(text("SET LOCAL session_replication_role = replica"))
    for statement in STATEMENTS.split(";\n")[:-1]:
        used = {name: value for name, value in given.items() if re.search(rf":{name}\b", statement)}
        connection.execute(text(statement), used)
