-- What of a calibrator was in use when, what was withheld, and which certificates looked at labels.

-- What was found of each snapshot that was not put in use because it admits far less than the one in use.
CREATE TABLE venn_admit.withheld_calibration (
    -- The snapshot.
    calibration_id bigint PRIMARY KEY REFERENCES venn_admit.calibration (id) ON DELETE CASCADE,
    -- The snapshot that stayed in use, which may be gone by now.
    in_use_id bigint NOT NULL,
    -- Calibration points that both judge; 0 if each was measured on its own.
    points integer NOT NULL,
    -- Share of them that it would admit.
    share double precision NOT NULL,
    -- Share of them that the one in use would admit.
    share_in_use double precision NOT NULL
);

-- Which snapshot each classifier decided with, from when on. Only added to.
CREATE TABLE venn_admit.calibration_use (
    -- Key; uses are in order of it.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The classifier.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- The calibrator of the snapshot.
    calibrator_id integer NOT NULL REFERENCES venn_admit.calibrator (id),
    -- The snapshot, which may be gone by now.
    calibration_id bigint NOT NULL,
    -- When it was put in use.
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    -- http, command line or schedule; null for those in use when this history was begun.
    origin text,
    -- The key that was shown; null without one.
    key_id bigint REFERENCES venn_admit.api_key (id),
    -- Subject of the token that was shown; null without.
    subject text,
    -- Why it was put in use.
    reason text NOT NULL,
    CONSTRAINT calibration_use_who_check CHECK (key_id IS NULL OR subject IS NULL),
    CONSTRAINT calibration_use_origin_check CHECK (origin IN ('http', 'command line', 'schedule'))
);

CREATE INDEX calibration_use_calibrator_id_idx ON venn_admit.calibration_use (calibrator_id);

CREATE INDEX calibration_use_classifier_id_idx ON venn_admit.calibration_use (classifier_id);

-- Every certificate that looked at the held-out labels of a classifier, each once. Only added to.
CREATE TABLE venn_admit.certificate_look (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The classifier.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- The calibrator of the snapshot.
    calibrator_id integer NOT NULL REFERENCES venn_admit.calibrator (id),
    -- The first snapshot with it, which may be gone by now.
    calibration_id bigint NOT NULL,
    -- BLAKE2b-128 of the points and the outcome.
    digest bytea NOT NULL,
    -- Confidence that was asked for.
    confidence numeric NOT NULL,
    -- When it looked at the labels.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT certificate_look_calibrator_id_digest_key UNIQUE (calibrator_id, digest),
    CONSTRAINT certificate_look_confidence_check CHECK (confidence > 0 AND confidence < 1)
);

CREATE INDEX certificate_look_classifier_id_idx ON venn_admit.certificate_look (classifier_id);
