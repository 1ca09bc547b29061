-- What people are to label: the points of the queue, who has claimed which, and the labels that reviewers gave.

-- When the queue of each classifier was last filled.
CREATE TABLE venn_admit.review_queue (
    -- Classifier.
    classifier_id integer PRIMARY KEY REFERENCES venn_admit.classifier (id) ON DELETE CASCADE,
    -- When rejected points were last looked for.
    filled_at timestamp with time zone NOT NULL
);

-- Points that reviewers label, and those that they have labelled.
CREATE TABLE venn_admit.review_point (
    -- The point.
    exemplar_id bigint PRIMARY KEY REFERENCES venn_admit.exemplar (id),
    -- Its classifier.
    classifier_id integer NOT NULL REFERENCES venn_admit.classifier (id),
    -- The newest decision on it then, which may have been removed since.
    decision_id bigint NOT NULL,
    -- Why it was rejected; null if it was admitted and drawn for an audit.
    reason text,
    -- Day by which it is due, YYYY-MM-DD, by its attribute `due`; null if that is none.
    due text,
    -- Lower probability of its prediction; null if none was computed.
    lower double precision,
    -- The nearest training exemplar, which near duplicates share; null if unknown.
    near_id bigint,
    -- When it was queued.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- Who has claimed it; null if nobody has.
    reviewer text,
    -- When it was claimed; null if it is not.
    claimed_at timestamp with time zone,
    -- Until when the claim holds unless it is renewed; null if it is not claimed.
    lease_until timestamp with time zone,
    -- When a label came; null while it waits for one.
    done_at timestamp with time zone,
    -- Whether it was drawn to be audited, so that its place in the queue follows from its key alone.
    is_drawn boolean NOT NULL DEFAULT FALSE,
    -- Its place among those that wait, ascending; null until the queue is filled again.
    place double precision[],
    CONSTRAINT review_point_due_check CHECK (due ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'),
    CONSTRAINT review_point_claim_check CHECK (num_nulls(reviewer, claimed_at, lease_until) IN (0, 3))
);

CREATE INDEX review_point_place_idx ON venn_admit.review_point (classifier_id, (done_at IS NULL), place, exemplar_id);

CREATE INDEX review_point_near_idx ON venn_admit.review_point (classifier_id, coalesce(near_id, -exemplar_id));

CREATE INDEX review_point_held_idx ON venn_admit.review_point (classifier_id, reviewer) WHERE reviewer IS NOT NULL;

-- Append-only: every label that a reviewer gave, also one that another had given before.
CREATE TABLE venn_admit.review_label (
    -- Key; ascends in order of arrival.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Exemplar that was labelled.
    exemplar_id bigint NOT NULL REFERENCES venn_admit.exemplar (id),
    -- Who gave the label.
    reviewer text NOT NULL,
    -- The label.
    label integer NOT NULL,
    -- Whether it ends a disagreement between the labels before it.
    resolves boolean NOT NULL,
    -- When it was given.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT review_label_label_check CHECK (label >= 0)
);

CREATE INDEX review_label_exemplar_id_id_idx ON venn_admit.review_label (exemplar_id, id);
