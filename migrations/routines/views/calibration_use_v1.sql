-- Which snapshot each classifier decided with, from when until when, who put it in use, and why.
CREATE VIEW report.calibration_use_v1 AS
SELECT
    -- What users call the classifier.
    classifier,
    -- The snapshot, which may be gone by now.
    calibration,
    -- Key of its setting, as `venn-admit calibrations` lists it.
    setting,
    -- When it was put in use.
    since,
    -- When another one was; null while it is in use.
    until,
    -- http, command line or schedule; null for those in use when this history was begun.
    origin,
    -- What the key that was shown is for; null without one.
    key_name,
    -- Subject of the token that was shown; null without.
    subject,
    -- Why it was put in use.
    reason
FROM venn_admit.calibration_use_row_v1;
