"""What a year leaves in the database, times and the numbers that it gives aside, so that two runs can be compared."""

from collections import Counter

from sqlalchemy import text

from venn_admit.store.database.engine import connect, create_engine

_OF = (
    "INNER JOIN exemplar ON {0}.exemplar_id = exemplar.id "
    "INNER JOIN classifier ON exemplar.classifier_id = classifier.id"
)
# Which rows there are, by what they are.
STORED = {
    "classifiers": "SELECT name, generation, is_current, extractor FROM classifier",
    "exemplars": "SELECT generation, external_id, split, exemplar.label, network_predicted FROM exemplar "
    "INNER JOIN classifier ON classifier_id = classifier.id",
    # In their order; that of different points says nothing.
    "labels": "SELECT generation, external_id, array_agg(ARRAY[one.label::text, selection, source] ORDER BY one.id) "
    f"FROM label_event AS one {_OF.format('one')} GROUP BY generation, external_id",
    "labels of reviewers": "SELECT generation, external_id, "
    "array_agg(ARRAY[reviewer, one.label::text] ORDER BY one.id) "
    f"FROM review_label AS one {_OF.format('one')} GROUP BY generation, external_id",
    "claims": f"SELECT generation, external_id, reviewer FROM review_point AS one {_OF.format('one')} "
    "WHERE done_at IS NULL AND is_current",
    "draws": "SELECT generation, external_id, predicted, is_admitted, probability, least_probability, is_drawn "
    f"FROM audit_draw AS one {_OF.format('one')}",
    "decisions": "SELECT generation, external_id, predicted, match_count, distance, lower, upper, decision, reason, "
    "score FROM decision AS one LEFT JOIN abers_evidence ON one.id = decision_id " + _OF.format("one"),
    "chains": "SELECT number, score, proposing, chain FROM standing_chain",
    "what counts for a chain": "SELECT number, external_id, document, predicted, one.score, one.label, weight "
    f"FROM standing_evidence AS one INNER JOIN standing_chain AS chain ON chain_id = chain.id {_OF.format('one')}",
    "states of chains": "SELECT DISTINCT ON (number, predicted) number, predicted, documents, wealth, most, admitted, "
    "correct FROM standing_state INNER JOIN standing_chain AS chain ON chain_id = chain.id "
    "ORDER BY number, predicted, documents DESC",
    # Points are compared by pairs of decisions whose numbers are near, and a cut leaves numbers out.
    "readings of monitors": "SELECT dense_rank() OVER (ORDER BY monitor_id), lamp, number, documents, points, correct, "
    "lower_bound, e_value, largest_e_value, lit_at FROM monitor_reading "
    "WHERE lamp NOT IN ('labelled_classes', 'labelled_scores')",
    "alarms": "SELECT dense_rank() OVER (ORDER BY monitor_id), lamp, number, ended_at IS NULL FROM monitor_alarm",
    "in use": "SELECT name, thresholds, p_value, certificate.documents, share FROM calibration_in_use_v1 "
    "INNER JOIN certificate USING (calibration_id) INNER JOIN classifier ON classifier_id = classifier.id",
    "jobs": "SELECT kind, state, row_count FROM job WHERE kind IN ('score', 'fit')",
}


def stored(database_url: str) -> Counter[tuple[str, str]]:
    """Every row, numbers as text with all their digits, and how often it is there."""
    engine = create_engine(database_url)
    with connect(engine) as connection:
        found = Counter(
            (what, row.rest)
            for what, query in STORED.items()
            for row in connection.execute(text(f"SELECT one::text AS rest FROM ({query}) AS one"))
        )
    engine.dispose()
    return found
