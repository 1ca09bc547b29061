-- Cascades: classifiers that are asked one after the other, and one certificate for what they serve together.

-- Classifiers that are asked one after the other: a point goes to the next where it is rejected.
CREATE TABLE venn_admit.classifier_cascade (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What users call it.
    name text NOT NULL,
    -- When it was created.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT classifier_cascade_name_key UNIQUE (name),
    CONSTRAINT classifier_cascade_name_check CHECK (name <> '')
);

-- Stages of each cascade, in order.
CREATE TABLE venn_admit.cascade_stage (
    -- The cascade.
    cascade_id bigint NOT NULL REFERENCES venn_admit.classifier_cascade (id) ON DELETE CASCADE,
    -- Place of the stage, from 1.
    place integer NOT NULL,
    -- Generation of a classifier, which cannot be deleted meanwhile; null for a person, who is the last stage.
    classifier_id integer REFERENCES venn_admit.classifier (id),
    -- What a point costs that reaches the stage, in the user's unit.
    cost double precision NOT NULL,
    CONSTRAINT cascade_stage_pkey PRIMARY KEY (cascade_id, place),
    CONSTRAINT cascade_stage_cascade_id_classifier_id_key UNIQUE (cascade_id, classifier_id),
    CONSTRAINT cascade_stage_place_check CHECK (place >= 1),
    CONSTRAINT cascade_stage_cost_check CHECK (cost >= 0 AND cost < 'infinity')
);

CREATE INDEX cascade_stage_classifier_id_idx ON venn_admit.cascade_stage (classifier_id);

-- Certificates of each cascade. Only added to.
CREATE TABLE venn_admit.cascade_calibration (
    -- Key; a cascade serves by the newest that is not withheld.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The cascade.
    cascade_id bigint NOT NULL REFERENCES venn_admit.classifier_cascade (id) ON DELETE CASCADE,
    -- When it looked at the labels.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- Share of what is served of each class that may be wrong.
    alpha numeric NOT NULL,
    -- Confidence that was asked for.
    confidence numeric NOT NULL,
    -- Whether a policy passed; without one, nothing is served.
    is_certified boolean NOT NULL,
    -- Number of points of evidence.
    points integer NOT NULL,
    -- Whether nothing is served by it, because nobody asked for it and it serves far less than the one before.
    is_withheld boolean NOT NULL DEFAULT FALSE,
    -- The certificate in full: what was asked, each policy tested, and the results.
    document jsonb NOT NULL,
    CONSTRAINT cascade_calibration_confidence_check CHECK (confidence > 0 AND confidence < 1),
    CONSTRAINT cascade_calibration_alpha_check CHECK (alpha > 0 AND alpha < 1)
);

CREATE INDEX cascade_calibration_cascade_id_idx ON venn_admit.cascade_calibration (cascade_id);

-- What each stage of a cascade serves of the evidence of a certificate.
CREATE TABLE venn_admit.cascade_calibration_stage (
    -- The certificate.
    cascade_calibration_id bigint NOT NULL REFERENCES venn_admit.cascade_calibration (id) ON DELETE CASCADE,
    -- Place of the stage.
    place integer NOT NULL,
    -- Snapshot of the stage's classifier then, which may be gone by now.
    calibration_id bigint NOT NULL,
    -- Score that the thresholds bound: network or reliability.
    score text NOT NULL,
    -- Parameters of that score; null for a classifier with logits only.
    knn_parameters_id bigint,
    -- Least score at which each predicted class is served; null for never.
    thresholds double precision[] NOT NULL,
    -- Points of evidence that reach the stage.
    reached integer NOT NULL,
    -- Those of them that it serves, by predicted class.
    served integer[] NOT NULL,
    -- Those of the served that are right.
    served_right integer[] NOT NULL,
    CONSTRAINT cascade_calibration_stage_pkey PRIMARY KEY (cascade_calibration_id, place),
    CONSTRAINT cascade_calibration_stage_score_check CHECK (score IN ('network', 'reliability'))
);

-- What jobs of the kind certify are asked for.
CREATE TABLE venn_admit.cascade_request (
    -- The job.
    job_id bigint PRIMARY KEY REFERENCES venn_admit.job (id) ON DELETE CASCADE,
    -- Cascade to certify.
    cascade_id bigint NOT NULL REFERENCES venn_admit.classifier_cascade (id) ON DELETE CASCADE,
    -- Share of what is served of each class that may be wrong.
    alpha numeric NOT NULL,
    -- Classes that are promised something: predicted, true, or both.
    certify text[] NOT NULL,
    -- Confidence that is asked for.
    confidence numeric NOT NULL,
    -- How documents of several points are tested: finite-sample or asymptotic.
    document_test text NOT NULL,
    -- Whether nobody asked for it, but data arrived at the stages.
    is_scheduled boolean NOT NULL
);

CREATE INDEX cascade_request_cascade_id_idx ON venn_admit.cascade_request (cascade_id);
