-- Every alarm and notice with its setting and classifier, what it is about, and whether it means harm by what the
-- setting's current snapshot promises.
CREATE VIEW venn_admit.alarm_row_v2 AS
SELECT
    calibrator.classifier_id,
    monitor.calibrator_id,
    alarm.id,
    alarm.lamp,
    alarm.number,
    CASE
        WHEN alarm.lamp IN ('partitions', 'mix') THEN alarm.lamp = 'partitions'
        WHEN alarm.lamp LIKE 'early%' OR alarm.lamp LIKE 'labelled%' THEN FALSE
        ELSE watched.kind = any(promised.kinds)
    END AS is_harmful,
    alarm.ended_at IS NULL AS is_standing,
    alarm.created_at,
    alarm.ended_at,
    alarm.notified_at,
    watched.kind,
    watched.class_number,
    watched."group",
    watched.match_group
FROM venn_admit.monitor_alarm AS alarm
INNER JOIN venn_admit.monitor AS monitor ON alarm.monitor_id = monitor.id
CROSS JOIN LATERAL venn_admit.watched_v2(monitor.plan, alarm.lamp, alarm.number) AS watched
INNER JOIN venn_admit.calibrator AS calibrator ON monitor.calibrator_id = calibrator.id
INNER JOIN venn_admit.promised_kinds_v1 AS promised ON calibrator.id = promised.calibrator_id;
