-- Decisions, and the evidence that each method keeps.
--
-- What was removed is recorded by its key, so that whoever asks for it is told so.

-- Decisions to admit or reject, each pinned to a snapshot. Evidence of one method alone has its own table.
CREATE TABLE venn_admit.decision (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The snapshot that it rests on.
    calibration_id bigint NOT NULL REFERENCES venn_admit.calibration (id),
    -- Exemplar that was decided on.
    exemplar_id bigint NOT NULL REFERENCES venn_admit.exemplar (id),
    -- Whether the probabilities are up-weighted by the localizer.
    weighted boolean NOT NULL,
    -- Whether a point with q < K was rejected.
    require_full_match boolean NOT NULL,
    -- Support version at which it was decided.
    support_version bigint NOT NULL,
    -- Prediction that was decided on: the KNN's for venn-admit, the network's for venn-abers.
    predicted integer NOT NULL,
    -- q, number of consecutive nearest neighbours that match the prediction; null without vectors.
    match_count integer,
    -- d, distance to the nearest training exemplar; null without vectors.
    distance double precision,
    -- KNN(x), one per class; null without vectors.
    logits double precision[],
    -- w; infinite if psi' = 0; null if the set is not a singleton.
    upweight double precision,
    -- Lower probability of the prediction; null if the set is not a singleton.
    lower double precision,
    -- Upper probability of the prediction; null if the set is not a singleton.
    upper double precision,
    -- Admitted class; null if rejected.
    decision integer,
    -- Why it was rejected; null if admitted.
    reason text,
    -- When it was decided.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT decision_key UNIQUE (calibration_id, exemplar_id, weighted, require_full_match),
    CONSTRAINT decision_reason_check CHECK ((decision IS NULL) = (reason IS NOT NULL)),
    CONSTRAINT decision_decision_check CHECK (decision = predicted),
    -- Pages, tables and charts have words for these.
    CONSTRAINT decision_known_reason_check CHECK (
        reason IN (
            'band below kappa',
            'set not a singleton',
            'policy not certified',
            'group not certified',
            'probability below threshold',
            'score below threshold',
            'q below K'
        )
    ),
    -- Without vectors there are no neighbours, and nothing to weight by.
    CONSTRAINT decision_knn_check CHECK (
        num_nulls(match_count, distance, logits) IN (0, 3)
        AND (match_count IS NOT NULL OR NOT (weighted OR require_full_match))
    )
)
WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

-- Of one exemplar, by whichever snapshot.
CREATE INDEX decision_exemplar_id_calibration_id_idx ON venn_admit.decision (exemplar_id, calibration_id);

-- Pages of those by some snapshots, admitted or rejected, the newest first. It does not begin with the snapshot: the
-- planner would take it for the key as long as its statistics know no decision by the snapshot.
CREATE INDEX decision_outcome_idx ON venn_admit.decision ((decision IS NOT NULL), calibration_id, id);

-- Those of a day. They are not stored in the order of days: new ones take the room of removed ones.
CREATE INDEX decision_date_idx ON venn_admit.decision (((created_at AT TIME ZONE 'UTC')::date));

-- Evidence of decisions by the method venn-admit, besides what every decision has.
CREATE TABLE venn_admit.admit_evidence (
    -- The decision.
    decision_id bigint PRIMARY KEY REFERENCES venn_admit.decision (id) ON DELETE CASCADE,
    -- ADMIT set, one bit per class.
    admit_set bit varying NOT NULL,
    -- n_c, number of points of each class in the band, in mc.
    band_size integer[] NOT NULL,
    -- tau_c of each class; may be -infinity.
    threshold double precision[] NOT NULL,
    -- |T|, in vp; 0 if the set is not a singleton.
    category_size integer NOT NULL
)
WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

-- Evidence of decisions by the method venn-abers, besides what every decision has.
CREATE TABLE venn_admit.abers_evidence (
    -- The decision.
    decision_id bigint PRIMARY KEY REFERENCES venn_admit.decision (id) ON DELETE CASCADE,
    -- s, the score of the prediction.
    score double precision NOT NULL,
    -- Score from which the plain step of its cell holds; -infinity for the first, and in an empty cell.
    step_score double precision NOT NULL
)
WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

-- Decisions that were removed, a row for each transaction that did.
CREATE TABLE venn_admit.decision_removal (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Classifier that had decided.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id) ON DELETE CASCADE,
    -- When they were removed.
    removed_at timestamp with time zone NOT NULL DEFAULT now(),
    -- age, by the setting; or request, because somebody asked for it.
    reason text NOT NULL,
    -- Keys of the decisions.
    decisions int8multirange NOT NULL,
    -- Number of the decisions.
    decision_count integer NOT NULL,
    -- When the newest of the decisions was made.
    decided_until timestamp with time zone NOT NULL,
    CONSTRAINT decision_removal_reason_check CHECK (reason IN ('age', 'request')),
    CONSTRAINT decision_removal_decision_count_check CHECK (decision_count > 0)
);

CREATE INDEX decision_removal_classifier_id_idx ON venn_admit.decision_removal (classifier_id);

-- Why a decision is no longer there.
CREATE INDEX decision_removal_decisions_idx ON venn_admit.decision_removal USING gist (decisions);
