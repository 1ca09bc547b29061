-- What the points lack that were rejected for want of calibration data, and how many random labels that takes. For
-- venn-admit a row is a bin of q and a true class, of points whose band is below kappa, with medians over these points.
-- For venn-abers it is a cell, a bin of q and a predicted class, which holds too few points for any score to reach the
-- threshold even if all of them were right. Labels are counted at the rate at which random labels came to that band or
-- cell so far. Each exemplar counts once in a snapshot, whatever the options of its decisions.
CREATE VIEW report.label_budget_v1 AS
WITH starved AS (
    SELECT DISTINCT ON (decided.classifier, decided.calibration, decided.exemplar_id)
        decided.classifier,
        decided.class_names,
        decided.neighbour_count,
        decided.calibration,
        decided.method,
        decided.bin_edges,
        decided.bin,
        decided.exemplar_id,
        decided.kappa,
        evidence.band_size,
        calibration.mc_count / classifier.mc_share::double precision AS label_count
    FROM venn_admit.decided_point_v1 AS decided
    INNER JOIN venn_admit.admit_evidence AS evidence ON decided.decision_id = evidence.decision_id
    INNER JOIN venn_admit.calibration AS calibration ON decided.calibration = calibration.id
    INNER JOIN venn_admit.classifier AS classifier ON decided.classifier_id = classifier.id
    WHERE decided.reason = 'band below kappa'
    ORDER BY decided.classifier, decided.calibration, decided.exemplar_id
),

needed AS (
    SELECT
        starved.*,
        of_class.number - 1 AS class,
        of_class.held,
        greatest(starved.kappa - of_class.held, 0) AS lacking,
        CASE
            WHEN of_class.held >= starved.kappa THEN 0
            WHEN of_class.held = 0 THEN 'Infinity'
            ELSE (starved.kappa - of_class.held) * starved.label_count / of_class.held
        END AS labels
    FROM starved
    CROSS JOIN LATERAL unnest(starved.band_size) WITH ORDINALITY AS of_class (held, number)
),

of_point AS (
    SELECT
        needed.*,
        max(needed.labels) OVER of_exemplar AS labels_of_all
    FROM needed
    WINDOW of_exemplar AS (PARTITION BY needed.classifier, needed.calibration, needed.exemplar_id)
),

-- A median of two is the greater need: a value that occurs.
of_band AS (
    SELECT
        classifier,
        class_names,
        neighbour_count,
        calibration,
        method,
        bin_edges,
        bin,
        class::integer AS class,
        count(*) AS points,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY held) AS held,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY lacking DESC) AS lacking,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY labels DESC) AS labels,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY labels_of_all DESC) AS labels_of_all
    FROM of_point
    GROUP BY classifier, class_names, neighbour_count, calibration, method, bin_edges, bin, class
),

of_cell AS (
    SELECT
        rejected.classifier,
        rejected.class_names,
        rejected.neighbour_count,
        rejected.calibration,
        rejected.method,
        rejected.bin_edges,
        rejected.bin,
        rejected.class,
        rejected.points,
        coalesce(cell.held, 0)::integer AS held,
        rejected.label_count,
        -- n right points of n give the lower probability n / (n + 1).
        CASE
            WHEN rejected.threshold < 1
                THEN ceil(rejected.threshold / (1 - rejected.threshold)) - coalesce(cell.held, 0)
            ELSE 'Infinity'
        END::double precision AS lacking
    FROM (
        SELECT
            decided.classifier,
            decided.class_names,
            decided.neighbour_count,
            decided.calibration,
            decided.method,
            decided.bin_edges,
            decided.bin,
            decided.predicted AS class,
            decided.thresholds[decided.predicted + 1] AS threshold,
            calibration.mc_count / classifier.mc_share::double precision AS label_count,
            count(DISTINCT decided.exemplar_id) AS points
        FROM venn_admit.decided_point_v1 AS decided
        INNER JOIN venn_admit.calibration AS calibration ON decided.calibration = calibration.id
        INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
        INNER JOIN venn_admit.classifier AS classifier ON decided.classifier_id = classifier.id
        WHERE
            decided.method = 'venn-abers'
            -- What a certificate lacks stands in policy_v1.
            AND calibrator.certify IS NULL
            AND decided.reason = 'probability below threshold'
        GROUP BY
            decided.classifier,
            decided.class_names,
            decided.neighbour_count,
            decided.calibration,
            decided.method,
            decided.bin_edges,
            decided.bin,
            decided.predicted,
            decided.thresholds,
            calibration.mc_count,
            classifier.mc_share
    ) AS rejected
    LEFT JOIN (
        SELECT
            classifier,
            calibration,
            bin,
            predicted,
            count(*) AS held
        FROM venn_admit.snapshot_point_v1
        WHERE
            method = 'venn-abers'
            AND split = 'mc'
        GROUP BY classifier, calibration, bin, predicted
    ) AS cell
        ON
            rejected.classifier = cell.classifier
            AND rejected.calibration = cell.calibration
            AND rejected.bin IS NOT DISTINCT FROM cell.bin
            AND rejected.class = cell.predicted
),

budget AS (
    SELECT
        classifier,
        class_names,
        neighbour_count,
        calibration,
        method,
        bin_edges,
        bin,
        class,
        points,
        held,
        lacking::double precision AS lacking,
        labels,
        labels_of_all
    FROM of_band
    UNION ALL
    SELECT
        classifier,
        class_names,
        neighbour_count,
        calibration,
        method,
        bin_edges,
        bin,
        class,
        points,
        held,
        lacking,
        CASE WHEN held = 0 THEN 'Infinity' ELSE lacking * label_count / held END AS labels,
        CASE WHEN held = 0 THEN 'Infinity' ELSE lacking * label_count / held END AS labels_of_all
    FROM of_cell
    WHERE lacking > 0
)

SELECT
    -- Name of the classifier.
    classifier,
    -- The snapshot that decided.
    calibration,
    -- Method of calibration, venn-admit or venn-abers.
    method,
    -- Number of the bin of q, from 0.
    bin,
    -- Least q of the bin.
    bin_edges[bin + 1] AS q_from,
    -- Greatest q of the bin.
    CASE WHEN bin IS NOT NULL THEN coalesce(bin_edges[bin + 2] - 1, neighbour_count) END AS q_to,
    -- Number of the true class for venn-admit, of the predicted class for venn-abers.
    class,
    -- Name of that class.
    class_names[class + 1] AS class_name,
    -- Points that were rejected for it.
    points,
    -- Points of mc in their bands of that class, or in the cell.
    held,
    -- How many more of them it takes; infinity if the threshold is 1.
    lacking,
    -- Random labels that this takes; infinity if none came there so far.
    labels,
    -- Random labels after which every class of the band has enough; for venn-abers the same as labels.
    labels_of_all,
    -- Points unlocked per label, points / labels_of_all.
    points / labels_of_all AS points_per_label,
    -- 1 for the rows of the snapshot with the most points per label, and so on.
    rank() OVER (PARTITION BY classifier, calibration ORDER BY points / labels_of_all DESC) AS rank
FROM budget;
