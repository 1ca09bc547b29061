-- Certificates that stand while labels arrive: their chains, the labels that count, and what these have shown.

-- Thresholds that were fixed before the labels that certify them, in the order in which they are certified.
CREATE TABLE venn_admit.standing_chain (
    -- Key; the newest of a calibrator is advanced.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Calibrator whose snapshots it certifies.
    calibrator_id integer NOT NULL REFERENCES venn_admit.calibrator (id),
    -- 1, 2, ... among all generations of the classifier.
    number integer NOT NULL,
    -- KNN parameters of its snapshots; null if the classifier has logits only.
    knn_parameters_id integer REFERENCES venn_admit.knn_parameters (id),
    -- Version of the training exemplars that its score depends on; null if that is the network's.
    support_version bigint,
    -- Score that its thresholds are on: network or reliability.
    score text NOT NULL,
    -- Number of points that fixed it, which are no evidence.
    proposing integer NOT NULL,
    -- Its thresholds and its level, as the core writes them.
    chain json NOT NULL,
    -- When it was begun.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT standing_chain_number_check CHECK (number >= 1),
    CONSTRAINT standing_chain_score_check CHECK (score IN ('network', 'reliability'))
);

CREATE INDEX standing_chain_calibrator_id_id_idx ON venn_admit.standing_chain (calibrator_id, id);

-- The labelled points that count for each chain.
CREATE TABLE venn_admit.standing_evidence (
    -- The chain.
    chain_id bigint NOT NULL REFERENCES venn_admit.standing_chain (id),
    -- Exemplar whose label counts.
    exemplar_id bigint NOT NULL REFERENCES venn_admit.exemplar (id),
    -- Number of its document, from 0 in the order in which documents count.
    document integer NOT NULL,
    -- The network's prediction.
    predicted integer NOT NULL,
    -- Its score.
    score double precision NOT NULL,
    -- The label that counts; null from when it was taken back.
    label integer,
    -- That of a drawn point: the smallest probability of its predicted class divided by its own; null for 1.
    weight double precision,
    CONSTRAINT standing_evidence_pkey PRIMARY KEY (chain_id, document, exemplar_id),
    CONSTRAINT standing_evidence_exemplar_id_chain_id_key UNIQUE (exemplar_id, chain_id),
    CONSTRAINT standing_evidence_document_check CHECK (document >= 0),
    CONSTRAINT standing_evidence_weight_check CHECK (weight BETWEEN 0 AND 1)
);

-- How far each chain was advanced: the newest position, and the last in every thousand documents before.
CREATE TABLE venn_admit.standing_position (
    -- The chain.
    chain_id bigint NOT NULL REFERENCES venn_admit.standing_chain (id) ON DELETE CASCADE,
    -- Number of documents that came to count up to here.
    documents integer NOT NULL,
    -- Last label event of the classifier that was seen.
    event bigint NOT NULL,
    -- Number of these documents of which a label was not taken back.
    counted integer NOT NULL,
    -- Number of their points with such a label.
    points integer NOT NULL,
    CONSTRAINT standing_position_pkey PRIMARY KEY (chain_id, documents),
    CONSTRAINT standing_position_documents_check CHECK (documents >= 0)
);

-- What the labels have shown of the thresholds of a class, where it changed since the position before.
CREATE TABLE venn_admit.standing_state (
    -- The chain.
    chain_id bigint NOT NULL,
    -- Number of documents after which it is the state of the class.
    documents integer NOT NULL,
    -- The predicted class.
    predicted integer NOT NULL,
    -- Wealth of each gambler, threshold after threshold; the eighth, if there is one, bet once on the labels at the
    -- start.
    wealth double precision[] NOT NULL,
    -- Largest mean wealth so far, of each threshold.
    most double precision[] NOT NULL,
    -- Points that each threshold admits.
    admitted bigint[] NOT NULL,
    -- Those of them whose prediction is the label.
    correct bigint[] NOT NULL,
    -- Documents of which each threshold admits more points than count.
    capped bigint[] NOT NULL,
    CONSTRAINT standing_state_pkey PRIMARY KEY (chain_id, documents, predicted),
    CONSTRAINT standing_state_chain_id_fkey FOREIGN KEY (chain_id, documents)
    REFERENCES venn_admit.standing_position (chain_id, documents) ON DELETE CASCADE
);
