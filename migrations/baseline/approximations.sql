-- Neighbours, and the KNN approximation that rests on them.
--
-- The search for neighbours is the expensive part: its result is kept, and new parameters need no other search.

-- The exact K nearest training exemplars of each held-out or scored point, under any parameters.
CREATE TABLE venn_admit.neighbours (
    -- The point.
    exemplar_id bigint PRIMARY KEY REFERENCES venn_admit.exemplar (id),
    -- Support version that the list was complete to when it was written.
    support_version bigint NOT NULL,
    -- K training exemplars, nearest first.
    neighbour_ids bigint[] NOT NULL,
    -- Euclidean distances to these neighbours, ascending.
    distances double precision[] NOT NULL,
    CONSTRAINT neighbours_lengths_check CHECK (cardinality(neighbour_ids) = cardinality(distances)),
    -- Training exemplars with a higher id wait for the next version.
    CONSTRAINT neighbours_version_check CHECK (support_version >= ALL(neighbour_ids))
)
WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

-- Whose lists hold a training exemplar that was removed or relabelled.
CREATE INDEX neighbours_neighbour_ids_idx ON venn_admit.neighbours USING gin (neighbour_ids);

-- Parameters of the KNN approximation and the localizer, one row per fit.
CREATE TABLE venn_admit.knn_parameters (
    -- Key.
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Classifier that the KNN approximates.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- fitted (by venn-admit) or given (by the user).
    origin text NOT NULL,
    -- Bias of each class.
    beta double precision[] NOT NULL,
    -- Weight of the label term of each class.
    gamma double precision[] NOT NULL,
    -- Temperature of the neighbour weights, in units of distance.
    eta double precision NOT NULL,
    -- Temperature of the localizer, in units of distance.
    eta_loc double precision NOT NULL,
    -- Points of the fit half; null if given.
    fit_count integer,
    -- Points of the dev half; null if given.
    dev_count integer,
    -- Points of the dev half on which KNN and network differ; null if given.
    dev_discrepancies integer,
    -- Whether new work uses these parameters.
    is_current boolean NOT NULL,
    -- When it was fitted or given.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- Model of the reliability score, fitted on knn; null if there is none.
    reliability jsonb,
    -- Share of split knn with q = K; null if given, or fitted before this was stored.
    full_matches double precision,
    CONSTRAINT knn_parameters_origin_check CHECK (origin IN ('fitted', 'given')),
    CONSTRAINT knn_parameters_temperatures_check CHECK (eta > 0 AND eta_loc > 0)
);

-- One set of parameters a classifier is in use at a time.
CREATE UNIQUE INDEX knn_parameters_current_key
ON venn_admit.knn_parameters (classifier_id)
WHERE is_current;

-- Training log, one row per epoch.
CREATE TABLE venn_admit.training_epoch (
    -- The fit.
    knn_parameters_id integer NOT NULL REFERENCES venn_admit.knn_parameters (id),
    -- knn or localizer.
    model text NOT NULL,
    -- 0 is the start, before any step.
    epoch integer NOT NULL,
    -- Mean loss over the points that it was taken over; null if there were none.
    loss double precision,
    -- Whether the loss was taken over discrepant points only.
    masked boolean NOT NULL,
    -- Prediction discrepancies on the dev half.
    discrepancies integer NOT NULL,
    -- beta, gamma, eta; or eta_loc.
    parameters double precision[] NOT NULL,
    CONSTRAINT training_epoch_pkey PRIMARY KEY (knn_parameters_id, model, epoch),
    CONSTRAINT training_epoch_model_check CHECK (model IN ('knn', 'localizer'))
);

-- The KNN approximation of each point, from its stored neighbours.
CREATE TABLE venn_admit.approximation (
    -- KNN parameters that it rests on.
    knn_parameters_id integer NOT NULL REFERENCES venn_admit.knn_parameters (id),
    -- The point.
    exemplar_id bigint NOT NULL REFERENCES venn_admit.exemplar (id),
    -- Support version at which it was computed.
    support_version bigint NOT NULL,
    -- argmax KNN; ties go to the lower class.
    predicted integer NOT NULL,
    -- q, number of consecutive nearest neighbours that match the prediction.
    match_count integer NOT NULL,
    -- d, distance to the nearest training exemplar.
    distance double precision NOT NULL,
    -- KNN(x), one per class.
    logits double precision[] NOT NULL,
    CONSTRAINT approximation_pkey PRIMARY KEY (knn_parameters_id, exemplar_id)
)
WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE INDEX approximation_exemplar_id_idx ON venn_admit.approximation (exemplar_id);
