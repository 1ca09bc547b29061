-- A row in each table there is at revision 0004, as that version of the program would have left them.
INSERT INTO venn_admit.classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)
VALUES ('old', '{no,yes}', 2, 1, 0.1, 0.45, 7);

SELECT venn_admit.create_vector_partitions_v1(1, 2);

INSERT INTO venn_admit.exemplar (
    id, classifier_id, external_id, split, network_logits, network_predicted, label, content_digest
)
VALUES
(1, 1, 'train', 'train', '{1,0}', 0, 0, '\x01'),
(2, 1, 'mc', 'mc', '{1,0}', 0, 0, '\x02'),
(3, 1, 'vp', 'vp', '{1,0}', 0, 0, '\x03'),
(4, 1, 'scored', 'scored', '{0,1}', 1, NULL, '\x04');

INSERT INTO venn_admit.exemplar_vector (classifier_id, support, exemplar_id, r)
VALUES (1, TRUE, 1, '[0,0]'), (1, FALSE, 2, '[0,1]'), (1, FALSE, 3, '[1,0]'), (1, FALSE, 4, '[1,1]');

INSERT INTO venn_admit.label_event (exemplar_id, label, selection, source)
VALUES (1, 0, 'random', 'old.npz');

INSERT INTO venn_admit.neighbours (exemplar_id, complete_to, neighbour_ids, distances)
VALUES (4, 1, '{1}', '{1.4142135623730951}');

INSERT INTO venn_admit.knn_parameters (
    classifier_id, origin, beta, gamma, eta, eta_loc, fit_count, dev_count, dev_discrepancies, is_current
)
VALUES (1, 'fitted', '{0,0}', '{1,1}', 1.5, 0.5, 10, 10, 1, TRUE);

INSERT INTO venn_admit.training_epoch (
    knn_parameters_id, model, epoch, loss, masked, discrepancies, parameters
)
VALUES (1, 'knn', 0, NULL, FALSE, 1, '{0,0,1,1,1.5}');

INSERT INTO venn_admit.approximation (
    knn_parameters_id, exemplar_id, complete_to, predicted, match_count, distance, logits
)
VALUES (1, 4, 1, 0, 1, 1.4142135623730951, '{1.7615941559557649,-1}');

INSERT INTO venn_admit.calibrator (classifier_id, settings_digest, alpha, delta, kappa, bin_edges, thresholds)
VALUES (1, '\x00', 0.1, 'Infinity', 1, '{0,1}', '{0.9,0.95}');

INSERT INTO venn_admit.calibration (
    calibrator_id, number, knn_parameters_id, s_hat, omega, mc_count, vp_count, reason, state
)
VALUES (1, 1, 1, 0.1, 'Infinity', 1, 1, 'old', 'current');

INSERT INTO venn_admit.calibration_point (
    calibrator_id, exemplar_id, valid_from, split, label, predicted, match_count, bin, distance, score, admit_set
)
VALUES
(1, 2, 1, 'mc', 0, 0, 1, 1, 1, 0.25, NULL),
(1, 3, 1, 'vp', 0, 0, 1, 1, 1, 0.25, B'10');

INSERT INTO venn_admit.job (
    classifier_id, kind, state, knn_parameters_id, calibration_id, weighted, require_full_match, row_count
)
VALUES (1, 'score', 'running', 1, 1, TRUE, FALSE, 1);

INSERT INTO venn_admit.job_row (job_id, row_number, exemplar_id)
VALUES (1, 0, 4);

INSERT INTO venn_admit.job_chunk (job_id, ordinal, first_row, end_row)
VALUES (1, 0, 0, 1);

INSERT INTO venn_admit.decision (
    calibration_id, exemplar_id, weighted, require_full_match, complete_to, predicted, match_count, distance,
    logits, admit_set, band_size, threshold, category_size, upweight, lower, upper, decision, reason
)
VALUES (
    1, 4, TRUE, FALSE, 1, 0, 1, 1.4142135623730951,
    '{1.7615941559557649,-1}', B'11', '{1,0}', '{-Infinity,-Infinity}', 0, NULL, NULL, NULL, NULL, 'band below kappa'
);
