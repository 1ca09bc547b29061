-- Every calibration snapshot, by either method, with the setting it was made under and what its method keeps of it.
CREATE VIEW report.calibration_v2 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- Key of the snapshot, to which decisions are pinned.
    calibration.id AS calibration,
    -- Method of calibration, venn-admit or venn-abers.
    calibrator.method,
    -- Key of the setting, as `venn-admit calibrations` lists it.
    calibrator.id AS setting,
    -- 1, 2, ... within the setting.
    calibration.number,
    -- current or retired.
    calibration.state,
    -- Whether the classifier decides with it now.
    in_use.calibration_id IS NOT NULL AS is_in_use,
    -- When it became current.
    calibration.created_at,
    -- Reason for which it was made.
    calibration.reason,
    -- Error level, an exact decimal.
    calibrator.alpha,
    -- Least lower probability for each predicted class.
    calibrator.thresholds,
    -- Lower edges of the bins of q.
    calibrator.bin_edges,
    -- Number of points of mc.
    calibration.mc_count,
    -- Number of points of vp.
    calibration.vp_count,
    -- Key of the KNN parameters that it rests on; null for a classifier without vectors.
    calibration.knn_parameters_id AS knn_parameters,
    -- Whether these parameters were fitted or given; null for a classifier without vectors.
    parameters.origin AS parameters_origin,
    -- Band radius in standard deviations of d; null unless the method is venn-admit.
    calibrator.delta,
    -- Least number of points of each class in a band; null unless the method is venn-admit.
    calibrator.kappa,
    -- Sample standard deviation of d over the points of mc with q > 0 and a correct prediction; null unless the method
    -- is venn-admit.
    radius.s_hat,
    -- Band radius, delta * s_hat; null unless the method is venn-admit.
    radius.omega,
    -- Score asked for, auto, network or reliability; null unless the method is venn-abers.
    calibrator.score AS score_asked,
    -- Score of the snapshot, network or reliability; null unless the method is venn-abers.
    choice.score,
    -- Share of mc that the network's score admits by cross-fitting; null unless auto chose the score.
    choice.network_share,
    -- Share of mc that the reliability score admits by cross-fitting; null unless auto chose the score.
    choice.reliability_share,
    -- Standard error of the difference between these shares, over documents; null unless auto chose the score.
    choice.standard_error,
    -- Number of documents that the score was chosen by; null unless auto chose it.
    choice.documents
FROM venn_admit.calibration AS calibration
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
LEFT JOIN venn_admit.knn_parameters AS parameters ON calibration.knn_parameters_id = parameters.id
LEFT JOIN venn_admit.calibration_in_use_v1 AS in_use
    ON
        calibrator.classifier_id = in_use.classifier_id
        AND calibration.id = in_use.calibration_id
LEFT JOIN venn_admit.band_radius AS radius ON calibration.id = radius.calibration_id
LEFT JOIN venn_admit.score_choice AS choice ON calibration.id = choice.calibration_id;
