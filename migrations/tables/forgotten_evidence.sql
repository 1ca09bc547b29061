-- What is left of labels that counted for standing certificates and were forgotten.

-- Labelled points that count for a chain and were forgotten, a row each, of which nothing is left but what it shows.
CREATE TABLE venn_admit.forgotten_evidence (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The chain.
    chain_id bigint NOT NULL REFERENCES venn_admit.standing_chain (id),
    -- Number of its document, from 0 in the order in which documents count.
    document integer NOT NULL,
    -- The network's prediction.
    predicted integer NOT NULL,
    -- The largest threshold of the chain that admits it; 0 if none does.
    score double precision NOT NULL,
    -- The label that counts.
    label integer NOT NULL,
    -- That of a drawn point: the smallest probability of its predicted class divided by its own; null for 1.
    weight double precision
);

CREATE INDEX forgotten_evidence_chain_id_document_idx ON venn_admit.forgotten_evidence (chain_id, document);
