"""Rules of the tables that hold between columns: what belongs to one method, to a certificate, or to vectors."""

import pytest
from sqlalchemy import Engine, text

from venn_admit.errors import DatabaseError
from venn_admit.store.database.engine import transaction

# The rows that changes are tried on.
ROWS = {
    "classifier": "name = 'paints'",
    "calibrator": "method = 'venn-admit'",
    "calibration_point": "method = 'venn-admit'",
    "decision": "calibration_id = 1",
}
CERTIFIED = {"score": "auto", "certify": "{true}", "confidence": "0.8", "document_test": "asymptotic"}
ADD_CALIBRATOR = """
INSERT INTO calibrator (classifier_id, settings_digest, method, alpha, bin_edges, thresholds{names})
VALUES (1, '', 'venn-abers', 0.1, '{{0}}', '{{0.9,0.9,0.9}}'{values})
RETURNING id
"""
START_MONITOR = """
INSERT INTO monitor (calibrator_id, knn_parameters_id, calibration_number, after_event, plan)
VALUES (1, :parameters, 1, 0, CAST(:plan AS json))
"""
OF_CLASSES = '{"class_count": 2, "documents": [40, 50]}'
OF_GROUPS_TOO = '{"class_count": 2, "documents": [1, 2, 3, 4, 5, 6]}'


def change(engine: Engine, table: str, to: str, rows: str = "") -> None:
    with transaction(engine) as connection:
        connection.execute(text(f"UPDATE {table} SET {to} WHERE {ROWS[table]} {rows}"))


def add_calibrator(engine: Engine, asked: dict[str, str]) -> int:
    names = "".join(f", {name}" for name in asked)
    values = "".join(f", '{value}'" for value in asked.values())
    with transaction(engine) as connection:
        return int(connection.execute(text(ADD_CALIBRATOR.format(names=names, values=values))).scalar_one())


@pytest.mark.parametrize(
    ("table", "to"),
    [
        ("classifier", "dimension = NULL"),
        ("classifier", "neighbour_count = NULL"),
        ("classifier", "dimension = NULL, neighbour_count = NULL"),  # a share of knn is left
        ("classifier", "knn_share = 0"),
        ("calibration_point", "match_count = NULL"),
        ("calibration_point", "distance = NULL"),
        ("calibration_point", "match_count = NULL, distance = NULL, bin = 1"),
        ("calibration_point", "match_count = NULL, distance = NULL, bin = 0, split = 'vp', admit_set = '100'"),
        ("decision", "match_count = NULL"),
        ("decision", "distance = NULL, logits = NULL"),
        ("decision", "match_count = NULL, distance = NULL, logits = NULL, weighted = TRUE"),
        ("decision", "match_count = NULL, distance = NULL, logits = NULL, weighted = FALSE, require_full_match = TRUE"),
    ],
)
def test_nothing_is_half_without_vectors(restored: Engine, table: str, to: str) -> None:
    with pytest.raises(DatabaseError, match=rf"{table}_(knn|shares)_check"):
        change(restored, table, to)


def test_a_monitor_without_vectors_watches_classes(restored: Engine) -> None:
    for parameters, plan in ((None, OF_GROUPS_TOO), (1, OF_CLASSES)):
        with pytest.raises(DatabaseError, match="monitor_partitions_check"), transaction(restored) as connection:
            connection.execute(text(START_MONITOR), {"parameters": parameters, "plan": plan})
    with transaction(restored) as connection:
        for parameters, plan in ((None, OF_CLASSES), (1, OF_GROUPS_TOO)):
            connection.execute(text(START_MONITOR), {"parameters": parameters, "plan": plan})


@pytest.mark.parametrize(
    ("to", "check"),
    [
        ("delta = NULL", "venn_admit"),
        ("kappa = NULL", "venn_admit"),
        ("method = 'other'", "method"),
        ("method = 'venn-abers'", "venn_a(bers|dmit)"),
        ("score = 'auto'", "venn_abers"),
    ],
)
def test_settings_belong_to_one_method(restored: Engine, to: str, check: str) -> None:
    with pytest.raises(DatabaseError, match=f"calibrator_{check}_check"):
        change(restored, "calibrator", to)


@pytest.mark.parametrize(
    ("asked", "check"),
    [
        (CERTIFIED | {"certify": "{each}"}, "certify"),
        (CERTIFIED | {"certify": "{predicted,each}"}, "certify"),
        (CERTIFIED | {"confidence": "1"}, "confidence"),
        (CERTIFIED | {"document_test": "t"}, "document_test"),
        ({"score": "auto", "confidence": "0.9"}, "certification"),
        ({"score": "auto", "certify": "{true}"}, "certification"),
    ],
)
def test_a_certificate_is_asked_for_in_full_or_not_at_all(restored: Engine, asked: dict[str, str], check: str) -> None:
    with pytest.raises(DatabaseError, match=f"calibrator_{check}_check"):
        add_calibrator(restored, asked)
    added = add_calibrator(restored, CERTIFIED)
    for wrong in ("method = 'venn-admit', score = NULL, delta = 1, kappa = 1", "thresholds = '{0.95,0.9,0.9}'"):
        with pytest.raises(DatabaseError, match="calibrator_certification_check"), transaction(restored) as connection:
            connection.execute(text(f"UPDATE calibrator SET {wrong} WHERE id = :id"), {"id": added})


@pytest.mark.parametrize(
    ("to", "rows", "rule"),
    [
        ("method = 'venn-abers'", "AND split = 'mc'", "calibrator_id_fkey"),
        ("admit_set = NULL", "AND split = 'vp'", "admit_set_check"),
        ("admit_set = '111'", "AND split = 'mc'", "admit_set_check"),
        ("method = 'venn-abers'", "AND split = 'vp'", "admit_set_check"),
    ],
)
def test_points_name_the_method_of_their_calibrator(restored: Engine, to: str, rows: str, rule: str) -> None:
    """Only those of vp of venn-admit have ADMIT sets."""
    with pytest.raises(DatabaseError, match=f"calibration_point_{rule}"):
        change(restored, "calibration_point", to, rows)
