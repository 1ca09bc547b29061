-- Every alarm and notice with its setting and classifier, and whether it means harm by what the setting's current
-- snapshot promises.
CREATE VIEW venn_admit.alarm_row_v1 AS
SELECT
    calibrator.classifier_id,
    monitor.calibrator_id,
    alarm.id,
    alarm.lamp,
    alarm.number,
    CASE alarm.lamp
        WHEN 'promise' THEN 'predicted' = any(promised.kinds)
        WHEN 'true_classes' THEN 'true' = any(promised.kinds)
        ELSE alarm.lamp = 'partitions'
    END AS is_harmful,
    alarm.ended_at IS NULL AS is_standing,
    alarm.created_at,
    alarm.ended_at,
    alarm.notified_at
FROM venn_admit.monitor_alarm AS alarm
INNER JOIN venn_admit.monitor AS monitor ON alarm.monitor_id = monitor.id
INNER JOIN venn_admit.calibrator AS calibrator ON monitor.calibrator_id = calibrator.id
INNER JOIN venn_admit.promised_kinds_v1 AS promised ON calibrator.id = promised.calibrator_id;
