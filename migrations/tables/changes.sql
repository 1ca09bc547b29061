-- What a snapshot rests on, and what has changed of it since.

-- Ledger of points whose label, split or approximation changed, as triggers write it; it loses what every snapshot saw.
CREATE TABLE venn_admit.point_change (
    -- Key.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Classifier; no foreign key, which would lock its row for each label.
    classifier_id integer NOT NULL,
    -- Transaction that changed it, by its number over all times.
    transaction_id bigint NOT NULL,
    -- The exemplar, which may be gone; null if one statement changed more than a thousand.
    exemplar_id bigint
);

CREATE INDEX point_change_classifier_id_transaction_id_idx
ON venn_admit.point_change (classifier_id, transaction_id);

-- From which view of the data the open points of each calibrator were computed.
CREATE TABLE venn_admit.snapshot_view (
    -- The calibrator.
    calibrator_id integer PRIMARY KEY REFERENCES venn_admit.calibrator (id),
    -- Number of the snapshot; if the calibrator gave a later one, its open points are others.
    number integer NOT NULL,
    -- KNN parameters of the approximations.
    knn_parameters_id integer NOT NULL REFERENCES venn_admit.knn_parameters (id),
    -- Which transactions the view saw, as pg_current_snapshot() says it.
    seen text NOT NULL,
    -- Server and database in which the numbers of these transactions hold.
    identity text NOT NULL,
    -- The greatest key of a held-out exemplar then; those that are stored later have greater ones.
    last_exemplar_id bigint NOT NULL
);
