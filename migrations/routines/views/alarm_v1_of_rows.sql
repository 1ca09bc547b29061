-- Every time that a lamp of a monitor was lit: alarms, which are harmful, and notices.
CREATE OR REPLACE VIEW report.alarm_v1 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- Number of the setting that was watched.
    alarm.calibrator_id AS setting,
    -- Number of the alarm.
    alarm.id AS alarm,
    -- Whether the promise, true classes, partitions or the mix of partitions lit it.
    alarm.lamp,
    -- Class, as in monitor_v1.
    classifier.class_names[alarm.number % cardinality(classifier.class_names) + 1] AS class_name,
    -- Group of q of a partition: none, some or all of the nearest neighbours match; null for a class, and if the
    -- classifier has logits only, whose partitions are predicted classes.
    CASE
        WHEN alarm.lamp IN ('partitions', 'mix') AND classifier.neighbour_count IS NOT NULL
            THEN (ARRAY['none', 'some', 'all'])[alarm.number / cardinality(classifier.class_names) + 1]
    END AS matching_neighbours,
    -- Whether it means that admitted predictions may be wrong more often than they should be.
    alarm.is_harmful,
    -- Whether it stands, until labels are corrected or the monitor is started anew.
    alarm.is_standing,
    -- When it was seen.
    alarm.created_at,
    -- When it ended; null while it stands.
    alarm.ended_at,
    -- When a webhook took it; null if none did.
    alarm.notified_at
FROM venn_admit.alarm_row_v1 AS alarm
INNER JOIN venn_admit.classifier AS classifier ON alarm.classifier_id = classifier.id;
