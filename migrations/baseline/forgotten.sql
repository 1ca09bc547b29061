-- What is left of exemplars that were forgotten: that something is missing, and nothing of what it was.
--
-- What stays of what was forgotten says that something is missing, and nothing of what it was.

-- Tombstones of exemplars and documents that were forgotten, so that one that comes back is noticed. Only added to.
CREATE TABLE venn_admit.forgotten_exemplar (
    -- SHA-256 of the classifier's salt and the exemplar's id, or of a mark and the id of a document.
    digest bytea PRIMARY KEY,
    -- When it was forgotten.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT forgotten_exemplar_digest_check CHECK (octet_length(digest) = 32)
);

-- Training exemplars that were forgotten, a row each, of which nothing is left but when they trained.
CREATE TABLE venn_admit.forgotten_training (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Classifier that it trained.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- Support version from which it trained.
    support_from bigint NOT NULL,
    -- Support version from which it no longer trained.
    support_until bigint NOT NULL,
    -- When it was forgotten.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT forgotten_training_support_check CHECK (support_until > support_from)
);

CREATE INDEX forgotten_training_classifier_id_idx ON venn_admit.forgotten_training (classifier_id);

-- Calibration points that were forgotten, a row each, of which nothing is left but which snapshots count them.
CREATE TABLE venn_admit.forgotten_point (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The calibrator.
    calibrator_id integer NOT NULL REFERENCES venn_admit.calibrator (id),
    -- mc or vp.
    split text NOT NULL,
    -- Number of the first snapshot that counts the point.
    valid_from integer NOT NULL,
    -- Number of the first snapshot that no longer counts it.
    valid_until integer NOT NULL,
    -- When it was forgotten.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT forgotten_point_split_check CHECK (split IN ('mc', 'vp')),
    CONSTRAINT forgotten_point_validity_check CHECK (valid_until > valid_from)
);

CREATE INDEX forgotten_point_calibrator_id_idx ON venn_admit.forgotten_point (calibrator_id);
