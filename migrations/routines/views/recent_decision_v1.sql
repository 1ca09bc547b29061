-- The newest decision on each exemplar, whichever snapshot made it, unless that snapshot was made with the exemplar, or
-- it was training data by then: what a report means by recent traffic, of which it reads the newest 10,000 rows.
CREATE VIEW report.recent_decision_v1 AS
SELECT
    -- Name of the classifier.
    newest.classifier,
    -- The user's id of the exemplar.
    exemplar.external_id,
    -- The snapshot that decided.
    newest.calibration_id AS decided_by,
    -- Key of the KNN parameters that it rests on; null for a classifier without vectors.
    calibration.knn_parameters_id AS knn_parameters,
    -- Whether the probabilities are up-weighted by the localizer.
    newest.weighted,
    -- Whether a point with q < K was rejected.
    newest.require_full_match,
    -- Number of the class that was decided on.
    decision.predicted,
    -- q, matches among consecutive nearest neighbours; null for a classifier without vectors.
    decision.match_count AS q,
    -- d, distance to the nearest training exemplar; null for a classifier without vectors.
    decision.distance AS d,
    -- Score of the prediction; null unless the method is venn-abers.
    abers.score,
    -- Whether the prediction was admitted.
    decision.decision IS NOT NULL AS is_admitted,
    -- Why it was rejected; null if admitted.
    decision.reason
FROM (
    SELECT DISTINCT ON (classifier.name, row_of_job.exemplar_id)
        classifier.name AS classifier,
        row_of_job.exemplar_id,
        job.calibration_id,
        job.weighted,
        job.require_full_match
    FROM venn_admit.classifier AS classifier
    INNER JOIN venn_admit.job AS job ON classifier.id = job.classifier_id
    INNER JOIN venn_admit.job_row AS row_of_job ON job.id = row_of_job.job_id
    WHERE job.kind = 'score'
    ORDER BY classifier.name ASC, row_of_job.exemplar_id ASC, job.id DESC
) AS newest
INNER JOIN venn_admit.calibration AS calibration ON newest.calibration_id = calibration.id
INNER JOIN venn_admit.exemplar AS exemplar ON newest.exemplar_id = exemplar.id
INNER JOIN venn_admit.decision AS decision
    ON
        newest.calibration_id = decision.calibration_id
        AND newest.exemplar_id = decision.exemplar_id
        AND newest.weighted = decision.weighted
        AND newest.require_full_match = decision.require_full_match
LEFT JOIN venn_admit.abers_evidence AS abers ON decision.id = abers.decision_id
WHERE
    -- An exemplar that was scored first and labelled later was traffic when it was decided on.
    NOT (
        exemplar.split IN ('train', 'knn')
        AND EXISTS (
            SELECT 1
            FROM venn_admit.label_event AS event
            WHERE
                event.exemplar_id = newest.exemplar_id
                AND event.created_at < decision.created_at
        )
    )
    AND NOT EXISTS (
        SELECT 1
        FROM venn_admit.calibration_point AS point
        WHERE
            point.calibrator_id = calibration.calibrator_id
            AND point.exemplar_id = newest.exemplar_id
            AND venn_admit.is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)
    );
