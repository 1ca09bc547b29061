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

-- Policy of each snapshot that was asked for a certificate, if one passed, or for the average promise.
CREATE TABLE venn_admit.certificate (
    -- The snapshot.
    calibration_id bigint PRIMARY KEY REFERENCES venn_admit.calibration (id) ON DELETE CASCADE,
    -- Least score or p0 at which a predicted class is admitted; a null among them is never; null if a certificate was
    -- asked for and no policy is certified.
    thresholds double precision[],
    -- The certified policy's p-value, the largest of its classes'.
    p_value double precision,
    -- Share of mc that the policy admits, in older certificates, proposed on it.
    mc_share double precision,
    -- Share of the evidence, or of the calibration points, that the policy admits.
    share double precision,
    -- Number of documents of evidence: mc and vp, or vp alone in older certificates; for the average promise, of the
    -- calibration points.
    documents integer NOT NULL,
    -- Documents of evidence with which a policy is likely to pass; null if one is certified, or none would.
    documents_needed numeric,
    -- The certificate in full: what was asked, each policy tested, and the results of its classes; for the average
    -- promise, what the threshold of each class rests on.
    document jsonb NOT NULL,
    -- What the thresholds bound: score, or lower for p0 in older certificates; null without a policy.
    bounded text,
    -- Least score of each group, by attribute and predicted class, which must be reached too; null if none were asked
    -- for.
    groups jsonb,
    -- Chain whose certified thresholds these are, if the certificate stands while labels arrive; null otherwise.
    chain_id bigint REFERENCES venn_admit.standing_chain (id),
    CONSTRAINT certificate_thresholds_check CHECK (0 <= ALL(thresholds) AND 1 >= ALL(thresholds)),
    CONSTRAINT certificate_bounded_check CHECK (bounded IN ('score', 'lower')),
    CONSTRAINT certificate_policy_check CHECK (
        ((thresholds IS NULL) = (p_value IS NULL) OR document ->> 'promise' = 'average')
        AND (thresholds IS NULL) = (share IS NULL)
        AND (thresholds IS NULL) = (bounded IS NULL)
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
