-- From when on all decisions of each classifier are there. What views and reports say of earlier ones is about those
-- that are kept: decisions on exemplars that have been labelled, and those that a job asks for which was not removed.
CREATE VIEW report.kept_since_v1 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- All decisions that were made later are there; null if none was removed.
    decision.complete_since,
    -- Jobs that were removed.
    coalesce(job.removed, 0) AS jobs_removed,
    -- Decisions that were removed.
    coalesce(decision.removed, 0)::bigint AS decisions_removed,
    -- When jobs or decisions were removed last; null if none was.
    greatest(job.removed_at, decision.removed_at) AS removed_at
FROM venn_admit.classifier AS classifier
LEFT JOIN (
    SELECT
        classifier_id,
        max(removed_at) AS removed_at,
        count(*) AS removed
    FROM venn_admit.job
    WHERE removed_at IS NOT NULL
    GROUP BY classifier_id
) AS job ON classifier.id = job.classifier_id
LEFT JOIN (
    SELECT
        classifier_id,
        max(decided_until) AS complete_since,
        max(removed_at) AS removed_at,
        sum(decision_count) AS removed
    FROM venn_admit.decision_removal
    GROUP BY classifier_id
) AS decision ON classifier.id = decision.classifier_id;
