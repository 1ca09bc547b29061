-- Every time that a lamp of a monitor was lit: alarms, which are harmful, and notices. Those of groups and
-- early warnings are in alarm_v2.
CREATE VIEW report.alarm_v1 AS
SELECT
    -- What users call the classifier.
    classifier,
    -- Number of the setting that was watched.
    setting,
    -- Number of the alarm.
    alarm,
    -- Whether the promise, true classes, partitions or the mix of partitions lit it.
    lamp,
    -- Class, as in monitor_v1.
    class_name,
    -- Group of q of a partition: none, some or all of the nearest neighbours match; null for a class, and if the
    -- classifier has logits only, whose partitions are predicted classes.
    matching_neighbours,
    -- Whether it means that admitted predictions may be wrong more often than they should be.
    is_harmful,
    -- Whether it stands, until labels are corrected or the monitor is started anew.
    is_standing,
    -- When it was seen.
    created_at,
    -- When it ended; null while it stands.
    ended_at,
    -- When a webhook took it; null if none did.
    notified_at
FROM report.alarm_v2
WHERE lamp IN ('promise', 'true_classes', 'partitions', 'mix');
