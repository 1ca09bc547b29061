-- Monitors of the promise: their plans, their states after some documents, what these say, and alarms.
--
-- A test that is made again after each label is wrong far too often, so monitors keep evidence that may be looked at
-- after every label.

-- Monitors of the promise of a calibrator across its snapshots, from some label event on.
CREATE TABLE venn_admit.monitor (
    -- Key; the newest of a calibrator counts.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Calibrator that it watches.
    calibrator_id integer NOT NULL REFERENCES venn_admit.calibrator (id),
    -- KNN parameters of the snapshots whose decisions count; null if the classifier has logits only.
    knn_parameters_id integer REFERENCES venn_admit.knn_parameters (id),
    -- Number of the snapshot whose points are the calibration data of the plan.
    calibration_number integer NOT NULL,
    -- Last label event that does not count; labels that came later do.
    after_event bigint NOT NULL,
    -- Newest label event, of any classifier, that was seen; settled once those of awaited are over.
    seen_event bigint NOT NULL DEFAULT 0,
    -- Virtual ids of the transactions that were under way when seen_event was.
    awaited text[] NOT NULL DEFAULT '{}',
    -- Last label event that need not be read again: no transaction can add one before it, or a decision.
    settled_event bigint NOT NULL DEFAULT 0,
    -- What is fixed before the first label, as the core writes it.
    plan json NOT NULL,
    -- When it was started.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- Time after the first decision on a document within which labels count, once it has passed; null if documents
    -- count by their labels.
    label_deadline interval,
    -- Last decision that does not count: the newest one when the monitor was started again, or 0.
    after_decision bigint NOT NULL DEFAULT 0,
    -- Last decision up to which all label deadlines have passed.
    passed_decision bigint NOT NULL DEFAULT 0,
    -- Points decided on first between these two decisions.
    decided integer NOT NULL DEFAULT 0,
    CONSTRAINT monitor_after_event_check CHECK (after_event >= 0),
    CONSTRAINT monitor_label_deadline_check CHECK (label_deadline > interval '0'),
    CONSTRAINT monitor_decided_check CHECK (passed_decision >= after_decision AND decided >= 0),
    -- Without a KNN, partitions are predicted classes; with one, they have a group of q too.
    CONSTRAINT monitor_partitions_check CHECK (
        (knn_parameters_id IS NULL) = (json_array_length(plan -> 'documents') = CAST(plan ->> 'class_count' AS integer))
    )
);

CREATE INDEX monitor_calibrator_id_id_idx ON venn_admit.monitor (calibrator_id, id);

-- States of monitors after every thousand documents and after the last, from which they go on.
CREATE TABLE venn_admit.monitor_state (
    -- The monitor.
    monitor_id bigint NOT NULL REFERENCES venn_admit.monitor (id) ON DELETE CASCADE,
    -- Number of documents after which it is the state.
    documents integer NOT NULL,
    -- Label event by which the last of these documents counts; if there is a label deadline, the first decision on it.
    event bigint NOT NULL,
    -- BLAKE2b-128 of these documents; another one outdates it.
    digest bytea NOT NULL,
    -- The state, as the core writes it.
    state json NOT NULL,
    CONSTRAINT monitor_state_pkey PRIMARY KEY (monitor_id, documents),
    CONSTRAINT monitor_state_documents_check CHECK (documents >= 0),
    CONSTRAINT monitor_state_digest_check CHECK (octet_length(digest) = 16)
);

-- What the newest state of each monitor says of each class, group and partition that has labels.
CREATE TABLE venn_admit.monitor_reading (
    -- The monitor.
    monitor_id bigint NOT NULL REFERENCES venn_admit.monitor (id) ON DELETE CASCADE,
    -- promise, true_classes, groups, the early_ warnings of these, partitions, mix, labelled_classes or
    -- labelled_scores.
    lamp text NOT NULL,
    -- Number of the class; of a group, its place in the plan; of a partition, its group of q times C, plus the
    -- predicted class.
    number integer NOT NULL,
    -- Documents that count in it.
    documents integer NOT NULL,
    -- Admitted points of these with a label; for mix, documents; for labelled_classes and labelled_scores, pairs.
    points integer NOT NULL,
    -- Admitted points whose prediction is the label; null for mix, labelled_classes and labelled_scores.
    correct integer,
    -- Lower bound of the share right that holds at all times; null for mix, labelled_classes and labelled_scores.
    lower_bound double precision,
    -- e-value now; null if it is not tested; may be infinite.
    e_value double precision,
    -- Largest e-value so far; null if it is not tested; may be infinite.
    largest_e_value double precision,
    -- e-value that lights the lamp.
    needed double precision NOT NULL,
    -- Number of documents at which the lamp was lit; null if it never was.
    lit_at integer,
    CONSTRAINT monitor_reading_pkey PRIMARY KEY (monitor_id, lamp, number),
    CONSTRAINT monitor_reading_lamp_check CHECK (
        lamp IN (
            'promise',
            'true_classes',
            'groups',
            'partitions',
            'mix',
            'early_promise',
            'early_true_classes',
            'early_groups',
            'labelled_classes',
            'labelled_scores'
        )
    ),
    CONSTRAINT monitor_reading_number_check CHECK (number >= 0),
    CONSTRAINT monitor_reading_correct_check CHECK (correct BETWEEN 0 AND points),
    CONSTRAINT monitor_reading_lower_bound_check CHECK (lower_bound >= 0 AND lower_bound <= 1),
    CONSTRAINT monitor_reading_e_value_check CHECK (e_value >= 0 AND largest_e_value >= e_value),
    CONSTRAINT monitor_reading_lit_at_check CHECK (lit_at >= 1)
);

-- Alarms and notices that lamps were lit for.
CREATE TABLE venn_admit.monitor_alarm (
    -- Key; ascends in order of alarms.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The monitor.
    monitor_id bigint NOT NULL REFERENCES venn_admit.monitor (id) ON DELETE CASCADE,
    -- promise, true_classes, groups, the early_ warnings of these, partitions, mix, labelled_classes or
    -- labelled_scores.
    lamp text NOT NULL,
    -- Class, group or partition, as in monitor_reading.
    number integer NOT NULL,
    -- Label event of the document that lit the lamp.
    label_event_id bigint NOT NULL,
    -- When it was seen.
    created_at timestamp with time zone NOT NULL DEFAULT now(),
    -- When labels were corrected so that it no longer stands, or the monitor was started anew; or null.
    ended_at timestamp with time zone,
    -- When a webhook took it; null if none did.
    notified_at timestamp with time zone,
    CONSTRAINT monitor_alarm_lamp_check CHECK (
        lamp IN (
            'promise',
            'true_classes',
            'groups',
            'partitions',
            'mix',
            'early_promise',
            'early_true_classes',
            'early_groups',
            'labelled_classes',
            'labelled_scores'
        )
    ),
    CONSTRAINT monitor_alarm_number_check CHECK (number >= 0)
);

-- A lamp is lit once, until its alarm ends.
CREATE UNIQUE INDEX monitor_alarm_standing_key
ON venn_admit.monitor_alarm (monitor_id, lamp, number)
WHERE ended_at IS NULL;
