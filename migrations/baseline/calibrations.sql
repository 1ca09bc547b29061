-- Calibrators, their snapshots, and the points of a snapshot by whatever method.
--
-- A decision is pinned to a snapshot; a new snapshot writes only the rows that changed, and any old one can be read as
-- it was.

-- Settings under which classifiers are calibrated.
CREATE TABLE venn_admit.calibrator (
    -- Key.
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Classifier that it calibrates.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- BLAKE2b-128 of the settings, as the method writes them.
    settings_digest bytea NOT NULL,
    -- Method of calibration: venn-abers or venn-admit.
    method text NOT NULL,
    -- Error level, an exact decimal.
    alpha numeric NOT NULL,
    -- Band radius in standard deviations of d; may be infinite; null unless the method is venn-admit.
    delta double precision,
    -- Least number of points of each class in a band; null unless the method is venn-admit.
    kappa integer,
    -- Lower edges of the bins of q; the first is 0.
    bin_edges integer[] NOT NULL,
    -- Least lower probability for each predicted class.
    thresholds numeric[] NOT NULL,
    -- When it was first requested.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- When it was last chosen; the calibrator of a classifier that was chosen last is the one in use.
    chosen_at timestamp with time zone NOT NULL DEFAULT now(),
    -- When it was retired; null as long as its calibration is kept current.
    retired_at timestamp with time zone,
    -- Score asked for: auto, network or reliability; null unless the method is venn-abers.
    score text,
    -- What a certificate is asked for: predicted, true, group:ATTRIBUTE, predicted*group:ATTRIBUTE; null for the
    -- pointwise promise.
    certify text[],
    -- Confidence of the certificate asked for.
    confidence numeric,
    -- Test of documents of several points for the certificate: finite-sample or asymptotic.
    document_test text,
    -- Venn-Abers only: what is promised unless certify says it: strongest, average or pointwise.
    promise text,
    -- The number given last: to a snapshot, or to the rows of an older one when they were opened again.
    last_number integer NOT NULL DEFAULT 0,
    -- Venn-Abers only: what errors cost: for each true class, a row with the loss of each predicted class, 0 for
    -- itself.
    loss numeric[],
    -- Venn-Abers only: whether the certificate, for predicted classes, stands while labels arrive: recalibrating
    -- advances it.
    standing boolean,
    -- Venn-Abers only: whether the confidence is that of the family: this certificate holds together with every one
    -- before it that looked at labels of the classifier.
    family boolean,
    -- Venn-Abers only: the share of each true class in traffic, if it has the classes in other shares than the
    -- calibration data, one for each class, in their order.
    class_shares numeric[],
    -- Venn-Abers only: by how much each of class_shares may be off; the promise holds for all shares that are as near.
    class_shares_within numeric,
    -- Venn-Abers only: whether class_shares are estimated from recent traffic, which needs no labels, with how much
    -- each may be off.
    class_shares_estimated boolean,
    -- Venn-ADMIT only: whether all points of mc and vp calibrate sets and probabilities alike, so that nothing is owed
    -- to their division.
    undivided boolean,
    -- The key is on the digest, because a thousand thresholds do not fit into an index.
    CONSTRAINT calibrator_classifier_id_settings_digest_key UNIQUE (classifier_id, settings_digest),
    -- What the points of a calibrator refer to, so that a rule about them can depend on the method.
    CONSTRAINT calibrator_id_method_key UNIQUE (id, method),
    CONSTRAINT calibrator_alpha_check CHECK (alpha > 0 AND alpha < 1),
    CONSTRAINT calibrator_delta_check CHECK (delta > 0),
    CONSTRAINT calibrator_kappa_check CHECK (kappa >= 1),
    CONSTRAINT calibrator_thresholds_check CHECK (1 - alpha <= ALL(thresholds) AND 1 >= ALL(thresholds)),
    CONSTRAINT calibrator_method_check CHECK (method IN ('venn-admit', 'venn-abers')),
    CONSTRAINT calibrator_score_check CHECK (score IN ('auto', 'network', 'reliability')),
    CONSTRAINT calibrator_venn_abers_check CHECK ((method = 'venn-abers') = (score IS NOT NULL)),
    CONSTRAINT calibrator_certify_check CHECK (
        array_to_string(certify, ',')
        ~ '^(predicted|true|(predicted[*])?group:[^,]+)(,(predicted|true|(predicted[*])?group:[^,]+))*$'
    ),
    CONSTRAINT calibrator_confidence_check CHECK (confidence > 0 AND confidence < 1),
    CONSTRAINT calibrator_document_test_check CHECK (document_test IN ('finite-sample', 'asymptotic')),
    -- A certified policy has thresholds of its own.
    CONSTRAINT calibrator_certification_check CHECK (
        (certify IS NULL) = (confidence IS NULL)
        AND (certify IS NULL) = (document_test IS NULL)
        AND (certify IS NULL OR (method = 'venn-abers' AND 1 - alpha = ALL(thresholds)))
    ),
    CONSTRAINT calibrator_venn_admit_check CHECK (
        (method = 'venn-admit') = (delta IS NOT NULL)
        AND (method = 'venn-admit') = (kappa IS NOT NULL)
    ),
    CONSTRAINT calibrator_promise_check CHECK (promise IN ('strongest', 'pointwise', 'average')),
    CONSTRAINT calibrator_promised_check CHECK (
        coalesce(promise, 'pointwise') = 'pointwise'
        OR (
            method = 'venn-abers'
            AND 1 - alpha = ALL(thresholds)
            AND certify IS NOT DISTINCT FROM CASE promise WHEN 'strongest' THEN '{predicted,true}'::text[] END
        )
    ),
    CONSTRAINT calibrator_loss_check CHECK (0 <= ALL(loss) AND 1000000000 >= ALL(loss)),
    CONSTRAINT calibrator_costed_check CHECK (loss IS NULL OR certify IS NOT NULL),
    CONSTRAINT calibrator_standing_check CHECK (
        standing IS NOT TRUE OR (certify = '{predicted}' AND loss IS NULL)
    ),
    CONSTRAINT calibrator_family_check CHECK (
        family IS NOT TRUE OR (certify IS NOT NULL AND standing IS NOT TRUE)
    ),
    CONSTRAINT calibrator_class_shares_check CHECK (0 <= ALL(class_shares) AND 1 >= ALL(class_shares)),
    CONSTRAINT calibrator_class_shares_within_check CHECK (class_shares_within >= 0),
    CONSTRAINT calibrator_declared_check CHECK (
        (class_shares IS NULL) = (class_shares_within IS NULL)
        AND (
            class_shares IS NULL
            OR (certify @> '{predicted}' AND loss IS NULL AND standing IS NOT TRUE)
        )
    ),
    CONSTRAINT calibrator_estimated_check CHECK (
        class_shares_estimated IS NOT TRUE
        OR (class_shares IS NULL AND certify @> '{predicted}' AND loss IS NULL AND standing IS NOT TRUE)
    ),
    CONSTRAINT calibrator_undivided_check CHECK (undivided IS NOT TRUE OR method = 'venn-admit')
);

-- Immutable, numbered snapshots of a calibrator.
CREATE TABLE venn_admit.calibration (
    -- Key, to which decisions are pinned.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Calibrator, which holds the settings.
    calibrator_id integer NOT NULL REFERENCES venn_admit.calibrator (id),
    -- 1, 2, ... within the calibrator; the validity of calibration points is counted in this number.
    number integer NOT NULL,
    -- Identifies its cached copy.
    revision uuid NOT NULL DEFAULT gen_random_uuid(),
    -- KNN parameters that it rests on; null if the classifier has logits only.
    knn_parameters_id integer REFERENCES venn_admit.knn_parameters (id),
    -- Number of points of split mc.
    mc_count integer NOT NULL,
    -- Number of points of split vp.
    vp_count integer NOT NULL,
    -- Reason for which it was made.
    reason text NOT NULL,
    -- current, retired, or withheld if it was never put in use.
    state text NOT NULL,
    -- When it was made.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT calibration_calibrator_id_number_key UNIQUE (calibrator_id, number),
    CONSTRAINT calibration_state_check CHECK (state IN ('current', 'retired', 'withheld')),
    CONSTRAINT calibration_number_check CHECK (number >= 1)
);

-- Readers take the current snapshot; there is never more than one.
CREATE UNIQUE INDEX calibration_current_key
ON venn_admit.calibration (calibrator_id)
WHERE state = 'current';

-- Radius of the bands of each snapshot of the method venn-admit.
CREATE TABLE venn_admit.band_radius (
    -- The snapshot.
    calibration_id bigint PRIMARY KEY REFERENCES venn_admit.calibration (id) ON DELETE CASCADE,
    -- Sample standard deviation of d over the points of mc with q > 0 and a correct prediction.
    s_hat double precision NOT NULL,
    -- Band radius, delta * s_hat.
    omega double precision NOT NULL
);

-- Quartiles of d of each snapshot, by which reports tell partitions apart.
CREATE TABLE venn_admit.snapshot_quartiles (
    -- The snapshot.
    calibration_id bigint PRIMARY KEY REFERENCES venn_admit.calibration (id) ON DELETE CASCADE,
    -- The three quartiles of d over all points of the snapshot, ascending; null if they have no d.
    quartiles double precision[]
);

-- Row-versioned calibration data: a snapshot consists of the rows that are valid at its number.
CREATE TABLE venn_admit.calibration_point (
    -- The calibrator.
    calibrator_id integer NOT NULL,
    -- The exemplar.
    exemplar_id bigint NOT NULL REFERENCES venn_admit.exemplar (id),
    -- Number of the first snapshot that holds this row.
    valid_from integer NOT NULL,
    -- Number of the first snapshot that no longer holds it; null while the current one does.
    valid_until integer,
    -- mc or vp; vp for all points of a calibration that is undivided.
    split text NOT NULL,
    -- y, the label.
    label integer NOT NULL,
    -- Prediction that is decided on: the KNN's for venn-admit, the network's for venn-abers.
    predicted integer NOT NULL,
    -- q, number of consecutive nearest neighbours that match the prediction; null without vectors.
    match_count integer,
    -- Bin of q under the bin edges of the calibrator; 0, the only one, without vectors.
    bin integer NOT NULL,
    -- d, distance to the nearest training exemplar; null without vectors.
    distance double precision,
    -- Nonconformity score of the label, 1 - pi^y; for venn-abers s, the score of the prediction.
    score double precision NOT NULL,
    -- ADMIT set, one bit per class; null in mc, and for venn-abers.
    admit_set bit varying,
    -- Whether the ADMIT set is {predicted}; null if there is none.
    is_singleton boolean GENERATED ALWAYS AS (bit_count(admit_set) = 1) STORED,
    -- Method of the calibrator: venn-abers or venn-admit.
    method text NOT NULL,
    -- KNN(x) of each class, by which the sets of an undivided calibration change.
    logits double precision[],
    CONSTRAINT calibration_point_pkey PRIMARY KEY (calibrator_id, exemplar_id, valid_from),
    CONSTRAINT calibration_point_calibrator_id_fkey FOREIGN KEY (calibrator_id, method)
    REFERENCES venn_admit.calibrator (id, method),
    CONSTRAINT calibration_point_validity_check CHECK (valid_until > valid_from),
    CONSTRAINT calibration_point_split_check CHECK (split IN ('mc', 'vp')),
    CONSTRAINT calibration_point_admit_set_check CHECK (
        (split = 'vp' AND method = 'venn-admit') = (admit_set IS NOT NULL)
    ),
    CONSTRAINT calibration_point_logits_check CHECK (
        logits IS NULL OR (split = 'vp' AND method = 'venn-admit')
    ),
    -- Without vectors there are neither neighbours nor bands.
    CONSTRAINT calibration_point_knn_check CHECK (
        (match_count IS NULL) = (distance IS NULL)
        AND (match_count IS NOT NULL OR (bin = 0 AND admit_set IS NULL))
    )
)
WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE INDEX calibration_point_exemplar_id_idx ON venn_admit.calibration_point (exemplar_id);

-- One open row an exemplar.
CREATE UNIQUE INDEX calibration_point_open_key
ON venn_admit.calibration_point (calibrator_id, exemplar_id)
WHERE valid_until IS NULL;

-- A band query reads this index alone.
CREATE INDEX calibration_point_band_idx
ON venn_admit.calibration_point (calibrator_id, split, bin, distance)
INCLUDE (label, predicted, score, is_singleton)
WHERE valid_until IS NULL;
