-- Every time that a lamp of a monitor was lit: alarms, which are harmful, and notices.
CREATE VIEW report.alarm_v2 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- Number of the setting that was watched.
    alarm.calibrator_id AS setting,
    -- Number of the alarm.
    alarm.id AS alarm,
    -- Whether the promise, true classes, groups, partitions or the mix of partitions lit it; early_promise,
    -- early_true_classes and early_groups are the early warnings of the first three; labelled_classes and
    -- labelled_scores are about whether labelled points are a random sample.
    alarm.lamp,
    -- Kind of class that it is about: predicted, true, group:ATTRIBUTE or predicted*group:ATTRIBUTE.
    alarm.kind,
    -- Class, as in monitor_v2; null for a group of all classes.
    classifier.class_names[alarm.class_number + 1] AS class_name,
    -- Value of the attribute that the points of a group have; null if it is about no group.
    alarm."group",
    -- Group of q of a partition: none, some or all of the nearest neighbours match; null for a class, and if the
    -- classifier has logits only, whose partitions are predicted classes.
    (ARRAY['none', 'some', 'all'])[alarm.match_group + 1] AS matching_neighbours,
    -- Whether it means that admitted predictions may be wrong more often than they should be.
    alarm.is_harmful,
    -- Whether it stands, until labels are corrected or the monitor is started again.
    alarm.is_standing,
    -- When it was seen.
    alarm.created_at,
    -- When it ended; null while it stands.
    alarm.ended_at,
    -- When a webhook took it; null if none did.
    alarm.notified_at
FROM venn_admit.alarm_row_v2 AS alarm
INNER JOIN venn_admit.classifier AS classifier ON alarm.classifier_id = classifier.id;
