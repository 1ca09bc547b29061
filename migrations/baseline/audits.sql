-- Audits: by which rules points are drawn when they are decided on, and which were.

-- Rules by which points are drawn to be audited when they are decided on.
CREATE TABLE venn_admit.audit_rule (
    -- Key; the newest of a generation is in force.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Generation of a classifier.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- Key of the draws, the same for all rules of a classifier.
    key bytea NOT NULL,
    -- Probability with which admitted points of each predicted class are drawn; null if nothing is drawn.
    admitted_rates double precision[],
    -- Probability with which rejected points are drawn; null if nothing is drawn.
    rejected_rate double precision,
    -- When it was stated.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT audit_rule_key_check CHECK (octet_length(key) = 16),
    CONSTRAINT audit_rule_admitted_rates_check CHECK (0 < ALL(admitted_rates) AND 1 >= ALL(admitted_rates)),
    CONSTRAINT audit_rule_rejected_rate_check CHECK (rejected_rate BETWEEN 0 AND 1),
    CONSTRAINT audit_rule_all_rates_check CHECK ((admitted_rates IS NULL) = (rejected_rate IS NULL))
);

CREATE INDEX audit_rule_classifier_id_id_idx ON venn_admit.audit_rule (classifier_id, id);

-- Whether each point was drawn to be audited, with the probability, as fixed by its first decision.
CREATE TABLE venn_admit.audit_draw (
    -- The point, which has one draw for ever.
    exemplar_id bigint PRIMARY KEY REFERENCES venn_admit.exemplar (id),
    -- Rule that was in force at its first decision.
    audit_rule_id bigint NOT NULL REFERENCES venn_admit.audit_rule (id),
    -- Predicted class of that decision.
    predicted integer NOT NULL,
    -- Whether that decision admitted it.
    is_admitted boolean NOT NULL,
    -- Probability with which it was drawn.
    probability double precision NOT NULL,
    -- The smallest one that a point of the predicted class could have had.
    least_probability double precision NOT NULL,
    -- Whether it was drawn, so that its label is asked for.
    is_drawn boolean NOT NULL,
    -- What of it was hashed: a digest of what it holds, or its id.
    content bytea NOT NULL,
    -- When it was drawn, or not.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT audit_draw_probability_check CHECK (probability BETWEEN 0 AND 1),
    CONSTRAINT audit_draw_least_probability_check CHECK (least_probability BETWEEN 0 AND probability),
    CONSTRAINT audit_draw_is_drawn_check CHECK (probability > 0 OR NOT is_drawn)
);

CREATE INDEX audit_draw_content_idx ON venn_admit.audit_draw (content) WHERE is_drawn;

CREATE INDEX audit_draw_drawn_idx ON venn_admit.audit_draw (audit_rule_id, exemplar_id) WHERE is_drawn;
