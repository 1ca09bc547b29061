-- What a snapshot of the method venn-abers consists of besides its points: score, certificate and steps.

-- Score of each snapshot of the method venn-abers, and on what ground it was chosen.
CREATE TABLE venn_admit.score_choice (
    -- The snapshot.
    calibration_id bigint PRIMARY KEY REFERENCES venn_admit.calibration (id) ON DELETE CASCADE,
    -- Score of the snapshot: network or reliability.
    score text NOT NULL,
    -- Share of mc that the network's score admits by cross-fitting; null if a score was asked for.
    network_share double precision,
    -- Share of mc that the reliability score admits by cross-fitting; null if a score was asked for.
    reliability_share double precision,
    -- Of the difference between the shares, over documents; null with fewer than two.
    standard_error double precision,
    -- Number of documents; null if a score was asked for.
    documents integer,
    CONSTRAINT score_choice_score_check CHECK (score IN ('network', 'reliability'))
);

-- What became of the certificate that a snapshot was asked for: the certified policy, if there is one.
CREATE TABLE venn_admit.certificate (
    -- The snapshot.
    calibration_id bigint PRIMARY KEY REFERENCES venn_admit.calibration (id) ON DELETE CASCADE,
    -- Least p0 at which a predicted class is admitted; a null among them is never; null if no policy is certified.
    thresholds double precision[],
    -- The policy's p-value, the largest of its classes'.
    p_value double precision,
    -- Share of mc that the certified policy admits.
    mc_share double precision,
    -- Share of vp that the certified policy admits.
    vp_share double precision,
    -- Number of documents of vp.
    vp_documents integer NOT NULL,
    -- Documents of vp with which a policy is likely to pass; null if one is certified, or none would.
    documents_needed numeric,
    -- The certificate in full: what was asked, each proposal, and the results of its classes.
    document jsonb NOT NULL,
    CONSTRAINT certificate_thresholds_check CHECK (0 <= ALL(thresholds) AND 1 >= ALL(thresholds)),
    CONSTRAINT certificate_policy_check CHECK (
        (thresholds IS NULL) = (p_value IS NULL)
        AND (thresholds IS NULL) = (mc_share IS NULL)
        AND (thresholds IS NULL) = (vp_share IS NULL)
    )
);

-- Row-versioned plain bounds of each cell as functions of the score: two probabilities a step.
CREATE TABLE venn_admit.venn_abers_step (
    -- The calibrator.
    calibrator_id integer NOT NULL REFERENCES venn_admit.calibrator (id),
    -- Number of the cell: bin of q times number of classes, plus predicted class.
    cell integer NOT NULL,
    -- Score from which the step holds, up to the next; -infinity for the first of a cell.
    score double precision NOT NULL,
    -- Number of the first snapshot that holds this row.
    valid_from integer NOT NULL,
    -- Number of the first snapshot that no longer holds it; null while the current one does.
    valid_until integer,
    -- p0 within the step.
    lower double precision NOT NULL,
    -- p1 at the score itself.
    upper_at double precision NOT NULL,
    -- p1 above it, within the step.
    upper_above double precision NOT NULL,
    CONSTRAINT venn_abers_step_pkey PRIMARY KEY (calibrator_id, cell, score, valid_from),
    CONSTRAINT venn_abers_step_validity_check CHECK (valid_until > valid_from)
);

-- The step of a score is the last entry not above it; there is one open row a step.
CREATE UNIQUE INDEX venn_abers_step_open_key
ON venn_admit.venn_abers_step (calibrator_id, cell, score)
WHERE valid_until IS NULL;
