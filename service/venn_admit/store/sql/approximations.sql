-- name: without_neighbours
-- The points of the given splits that have no neighbours yet.
SELECT exemplar.id
FROM exemplar
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split = ANY(:splits)
    AND NOT EXISTS (
        SELECT 1
        FROM neighbours
        WHERE neighbours.exemplar_id = exemplar.id
    )
ORDER BY exemplar.id;

-- name: without_approximation
-- The points of the given splits that have no approximation under the given parameters yet.
SELECT exemplar.id
FROM exemplar
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split = ANY(:splits)
    AND NOT EXISTS (
        SELECT 1
        FROM approximation
        WHERE
            approximation.knn_parameters_id = :knn_parameters_id
            AND approximation.exemplar_id = exemplar.id
    )
ORDER BY exemplar.id;

-- name: without_approximation_among
-- Those of some exemplars that are points of the given splits and have no approximation under the given parameters yet.
SELECT exemplar.id
FROM unnest(:exemplar_ids ::bigint[]) AS given (id)
CROSS JOIN
    LATERAL (
        SELECT
            one.id,
            one.split
        FROM exemplar AS one
        WHERE one.id = given.id
        ORDER BY one.id
        LIMIT 1
    ) AS exemplar
WHERE
    exemplar.split = ANY(:splits)
    AND NOT EXISTS (
        SELECT 1
        FROM approximation
        WHERE
            approximation.knn_parameters_id = :knn_parameters_id
            AND approximation.exemplar_id = exemplar.id
    )
ORDER BY exemplar.id;

-- name: outdated_neighbours
-- The points whose neighbours are older than the training exemplars.
SELECT exemplar.id
FROM exemplar
INNER JOIN neighbours ON exemplar.id = neighbours.exemplar_id
WHERE
    exemplar.classifier_id = :classifier_id
    AND neighbours.support_version < :support_version
ORDER BY exemplar.id;

-- name: outdated_neighbours_holding
-- The points with outdated neighbours that have one of the given exemplars among them.
SELECT exemplar_id
FROM neighbours
WHERE
    neighbour_ids && :neighbour_ids ::bigint[]
    AND support_version < :support_version
ORDER BY exemplar_id;

-- name: neighbours
-- The stored neighbours of the given exemplars, and the support version that they are complete to. Exemplars without
-- neighbours are left out.
SELECT
    neighbours.exemplar_id,
    neighbours.neighbour_ids,
    neighbours.distances,
    greatest(neighbours.support_version, classifier.neighbours_support_version) AS support_version
FROM neighbours
CROSS JOIN classifier
WHERE
    neighbours.exemplar_id = ANY(:exemplar_ids ::bigint[])
    AND classifier.id = :classifier_id;

-- name: delete_neighbours
-- Delete the neighbours of some points, before new ones are inserted.
DELETE FROM neighbours
WHERE exemplar_id = ANY(:exemplar_ids);

-- name: approximations
-- The stored approximations of the given exemplars. Exemplars without one are left out.
SELECT
    exemplar_id,
    predicted,
    match_count,
    distance,
    logits
FROM approximation
WHERE
    exemplar_id = ANY(:exemplar_ids ::bigint[])
    AND knn_parameters_id = :knn_parameters_id;

-- name: delete_approximations
-- Delete the approximations of some points, before new ones are inserted.
DELETE FROM approximation
WHERE
    exemplar_id = ANY(:exemplar_ids)
    AND knn_parameters_id = :knn_parameters_id;

-- name: delete_outdated_approximations
-- Delete the approximations, under any parameters, of points whose neighbours, or the labels of these, have changed.
DELETE FROM approximation
WHERE
    exemplar_id = ANY(:exemplar_ids)
    AND support_version < :support_version;

-- name: split_approximations
-- The approximations of a split in order of ingestion, each with its label.
SELECT
    exemplar.id,
    exemplar.label,
    approximation.predicted,
    approximation.match_count,
    approximation.distance,
    approximation.logits
FROM exemplar
INNER JOIN approximation ON exemplar.id = approximation.exemplar_id
WHERE
    exemplar.classifier_id = :classifier_id
    AND exemplar.split = :split
    AND approximation.knn_parameters_id = :knn_parameters_id
ORDER BY exemplar.id;

-- name: points_among
-- Those of some exemplars that are in mc or vp and have an approximation, each with its label and its split.
SELECT
    exemplar.id,
    exemplar.label,
    approximation.predicted,
    approximation.match_count,
    approximation.distance,
    approximation.logits,
    exemplar.split = 'vp' AS in_vp
FROM unnest(:exemplar_ids ::bigint[]) AS given (id)
CROSS JOIN
    LATERAL (
        SELECT one.*
        FROM exemplar AS one
        WHERE one.id = given.id
        ORDER BY one.id
        LIMIT 1
    ) AS exemplar
CROSS JOIN
    LATERAL (
        SELECT one.*
        FROM approximation AS one
        WHERE
            one.knn_parameters_id = :knn_parameters_id
            AND one.exemplar_id = exemplar.id
        ORDER BY one.exemplar_id
        LIMIT 1
    ) AS approximation
WHERE exemplar.split IN ('mc', 'vp')
ORDER BY exemplar.id;

-- name: retire_parameters
-- Make the current parameters no longer current, before new ones are inserted.
UPDATE knn_parameters
SET is_current = FALSE
WHERE
    classifier_id = :classifier_id
    AND is_current;

-- name: add_parameters
-- Insert new current parameters.
INSERT INTO knn_parameters (
    classifier_id,
    origin,
    beta,
    gamma,
    eta,
    eta_loc,
    fit_count,
    dev_count,
    dev_discrepancies,
    full_matches,
    reliability,
    is_current
)
VALUES (
    :classifier_id,
    :origin,
    :beta,
    :gamma,
    :eta,
    :eta_loc,
    :fit_count,
    :dev_count,
    :dev_discrepancies,
    :full_matches,
    :reliability ::jsonb,
    TRUE
)
RETURNING id;

-- name: add_training_epoch
-- Insert one line of a training log.
INSERT INTO training_epoch (knn_parameters_id, model, epoch, loss, masked, discrepancies, parameters)
VALUES (:knn_parameters_id, :model, :epoch, :loss, :masked, :discrepancies, :parameters);

-- name: current_parameters
-- The parameters that new work uses.
SELECT
    id,
    beta,
    gamma,
    eta,
    eta_loc,
    reliability
FROM knn_parameters
WHERE
    classifier_id = :classifier_id
    AND is_current;

-- name: parameters_by_id
-- The parameters that some work was started with.
SELECT
    id,
    beta,
    gamma,
    eta,
    eta_loc,
    reliability
FROM knn_parameters
WHERE id = :knn_parameters_id;

-- name: fit_of_job
-- The parameters that a job made, with the record of the fit.
SELECT
    parameters.id AS knn_parameters,
    parameters.fit_count AS fit_points,
    parameters.dev_discrepancies AS discrepancies,
    parameters.dev_count AS points,
    parameters.eta AS temperature,
    parameters.eta_loc AS localizer_temperature,
    parameters.full_matches
FROM job
INNER JOIN knn_parameters AS parameters ON job.knn_parameters_id = parameters.id
WHERE
    job.id = :job_id
    AND job.kind = 'fit'
    AND job.state = 'done';

-- name: export_neighbours
-- The rows that `export --what neighbours` writes.
SELECT
    exemplar.external_id,
    neighbours.distances,
    array(
        SELECT support.external_id
        FROM unnest(neighbours.neighbour_ids) WITH ORDINALITY AS listed (exemplar_id, position)
        INNER JOIN exemplar AS support ON listed.exemplar_id = support.id
        ORDER BY listed.position
    ) AS neighbour_ids
FROM exemplar
INNER JOIN neighbours ON exemplar.id = neighbours.exemplar_id
WHERE exemplar.classifier_id = :classifier_id
ORDER BY exemplar.id;

-- name: export_approximations
-- The rows that `export --what approximations` writes, under the current parameters.
SELECT
    exemplar.external_id,
    exemplar.split,
    approximation.logits,
    approximation.predicted,
    approximation.match_count,
    approximation.distance
FROM exemplar
INNER JOIN approximation ON exemplar.id = approximation.exemplar_id
INNER JOIN knn_parameters ON approximation.knn_parameters_id = knn_parameters.id
WHERE
    exemplar.classifier_id = :classifier_id
    AND knn_parameters.is_current
ORDER BY exemplar.id;
