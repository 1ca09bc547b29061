-- The band of a point with this q and d, class by class, in the current snapshot of the classifier's setting of the
-- method venn-admit that was chosen last, of those that divide their points: whether it is usable, what its ADMIT set
-- takes, and what a prediction with a singleton would get. No row if the classifier has no such snapshot.
CREATE OR REPLACE FUNCTION report.band_v1(classifier text, q integer, d double precision)
RETURNS TABLE (
    -- The snapshot.
    calibration bigint,
    -- Number of the bin of q, from 0.
    bin integer,
    -- Least d of the band.
    d_from double precision,
    -- Greatest d of the band.
    d_to double precision,
    -- Number of the class.
    class integer,
    -- Name of the class.
    class_name text,
    -- n_c, points of mc in the band with this label.
    band_size bigint,
    -- How many a usable band has of every class.
    kappa integer,
    -- tau_c, the probability that the class must reach to be in the ADMIT set; may be -infinity.
    threshold double precision,
    -- Points of vp in the band that are predicted as this class and have a singleton: the category of such a point.
    category_size bigint,
    -- Those of them whose prediction is right.
    category_correct bigint,
    -- Plain lower probability of such a point.
    lower double precision,
    -- The lower probability that is admitted.
    required numeric
)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $routine$
    WITH snapshot AS (
        SELECT
            calibration.id,
            calibrator.id AS calibrator_id,
            calibrator.alpha,
            calibrator.kappa,
            calibrator.thresholds,
            width_bucket(band_v1.q, calibrator.bin_edges) - 1 AS bin,
            radius.omega,
            known.class_names
        FROM venn_admit.classifier AS known
        INNER JOIN venn_admit.calibrator AS calibrator ON known.id = calibrator.classifier_id
        INNER JOIN venn_admit.calibration AS calibration ON calibrator.id = calibration.calibrator_id
        INNER JOIN venn_admit.band_radius AS radius ON calibration.id = radius.calibration_id
        WHERE
            known.name = band_v1.classifier
            AND calibration.state = 'current'
            AND calibrator.undivided IS NOT TRUE
        ORDER BY calibrator.chosen_at DESC, calibrator.id DESC
        LIMIT 1
    ),

    category AS (
        SELECT
            point.predicted,
            count(*) AS points,
            count(*) FILTER (WHERE point.label = point.predicted) AS correct
        FROM snapshot
        CROSS JOIN
            LATERAL venn_admit.band_points_v1(
                snapshot.calibrator_id, 'vp', snapshot.bin, band_v1.d, snapshot.omega
            ) AS point
        WHERE point.is_singleton
        GROUP BY point.predicted
    ),

    band AS (
        SELECT found.*
        FROM snapshot
        CROSS JOIN
            LATERAL venn_admit.band_thresholds_v1(
                snapshot.calibrator_id, snapshot.bin, band_v1.d, snapshot.omega, snapshot.alpha
            ) AS found
    )

    SELECT
        snapshot.id,
        snapshot.bin,
        band_v1.d - snapshot.omega,
        band_v1.d + snapshot.omega,
        (of_class.number - 1)::integer,
        of_class.name,
        coalesce(band.band_size, 0),
        snapshot.kappa,
        coalesce(1 - band.threshold_score, '-Infinity'),
        coalesce(category.points, 0),
        coalesce(category.correct, 0),
        coalesce(category.correct, 0) / (coalesce(category.points, 0) + 1)::double precision,
        snapshot.thresholds[of_class.number]
    FROM snapshot
    CROSS JOIN LATERAL unnest(snapshot.class_names) WITH ORDINALITY AS of_class (name, number)
    LEFT JOIN band ON of_class.number - 1 = band.label
    LEFT JOIN category ON of_class.number - 1 = category.predicted
    ORDER BY of_class.number
$routine$;
