-- name: cell_classes
-- The calibration points of a cell of the partition map, by split and true class, with the paper's threshold: the
-- alpha-quantile of pi of the label for venn-admit, of the score for venn-abers.
SELECT
    point.split,
    point.label,
    count(*) AS points,
    count(*) FILTER (WHERE point.label = point.predicted) AS correct,
    -- Null where the snapshot says nothing of admission.
    CASE WHEN count(point.is_admitted) > 0 THEN count(*) FILTER (WHERE point.is_admitted) END AS admitted,
    percentile_cont(point.alpha::double precision) WITHIN GROUP (
        ORDER BY CASE WHEN point.method = 'venn-admit' THEN 1 - point.score ELSE point.score END
    ) AS threshold
FROM judged_point_v1 AS point
INNER JOIN snapshot_quartiles AS spread ON point.calibration = spread.calibration_id
WHERE
    point.calibration = :calibration_id
    AND point.q BETWEEN :least_q AND :greatest_q
    AND width_bucket(point.d, spread.quartiles) = :quartile
GROUP BY point.split, point.label, point.alpha
ORDER BY point.split, point.label;

-- name: cell_points
-- Some calibration points of a cell of the partition map, those that are wrong first, then by their ids, after a given
-- one.
SELECT
    point.exemplar_id,
    exemplar.external_id,
    exemplar.attributes,
    exemplar.network_predicted,
    point.split,
    point.label,
    point.predicted,
    point.q,
    point.d,
    point.is_admitted
FROM judged_point_v1 AS point
INNER JOIN snapshot_quartiles AS spread ON point.calibration = spread.calibration_id
INNER JOIN exemplar ON point.exemplar_id = exemplar.id
WHERE
    point.calibration = :calibration_id
    AND point.q BETWEEN :least_q AND :greatest_q
    AND width_bucket(point.d, spread.quartiles) = :quartile
    AND (point.label = point.predicted, point.exemplar_id) > (:after_right, :after_exemplar)
ORDER BY (point.label = point.predicted) ASC, point.exemplar_id ASC
LIMIT :row_limit;
