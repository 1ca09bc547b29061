"""Points are drawn to be audited when they are first decided on, by a rule that every shell obeys."""

import numpy as np
import pytest

from tests.flows.logits import CLASSES, NAME, calibrated, exemplars, prepared
from tests.running import Bench
from venn_admit.cli.tables.summaries import audits_lines
from venn_admit.core.audits import AuditRates, drawn
from venn_admit.errors import InvalidInputError
from venn_admit.flows.data.audits import set_audits, show_audits

RATE, OF_FIRST, REJECTED = 0.1, 0.4, 0.6


def scored(bench: Bench, prefix: str, count: int, seed: int) -> None:
    """Score points without labels."""
    rows = {name: of for name, of in exemplars(prefix, count, seed).items() if name != "y"}
    bench.score(NAME, bench.write(f"{prefix}.npz", rows), weighted=None)


def draws(bench: Bench) -> dict[str, tuple[float, float, bool]]:
    """What is shown of each draw."""
    rows = bench.rows("SELECT * FROM report.audit_draw_v1 WHERE classifier = :name", name=NAME)
    return {row.external_id: (row.probability, row.least_probability, row.is_drawn) for row in rows}


def test_a_point_is_drawn_once_by_the_rule_of_its_first_decision_and_a_repeat_gives_the_same(bench: Bench) -> None:
    prepared(bench)
    scored(bench, "before", 20, seed=3)
    assert not draws(bench), "nothing is drawn without a rule"
    first = set_audits(bench.engine, NAME, rate=RATE, classes={"class 0": OF_FIRST}, rejected=REJECTED)
    scored(bench, "new", 2000, seed=4)
    found = draws(bench)
    (key,) = bench.rows("SELECT DISTINCT key FROM audit_rule")
    decided = bench.rows(
        "SELECT external_id, predicted, decision IS NOT NULL AS admitted FROM decision "
        "JOIN exemplar ON exemplar.id = exemplar_id WHERE external_id LIKE 'new-%' ORDER BY 1"
    )
    rates = AuditRates((OF_FIRST, *[RATE] * (CLASSES - 1)), REJECTED)
    predicted = np.array([row.predicted for row in decided])
    wanted = rates.probabilities(predicted, np.array([row.admitted for row in decided]))
    is_drawn = drawn(bytes(key.key), [row.external_id.encode() for row in decided], wanted)
    assert [found.pop(row.external_id) for row in decided] == list(
        zip(wanted, np.where(predicted == 0, OF_FIRST, RATE), is_drawn.tolist(), strict=True)
    )
    assert not found
    assert abs(is_drawn.sum() - wanted.sum()) < 4 * np.sqrt((wanted * (1 - wanted)).sum())

    again = set_audits(bench.engine, NAME, rate=1.0)
    assert again.rule != first.rule
    before = draws(bench)
    calibrated(bench, alpha="0.3")
    scored(bench, "new", 2000, seed=4)
    assert draws(bench) == before, "a point keeps its draw under another rule and calibration"
    shown = show_audits(bench.engine, NAME)
    assert shown.admitted_points + shown.rejected_points == 2000
    assert shown.admitted_drawn + shown.rejected_drawn == is_drawn.sum()
    assert (len(bench.rows("SELECT DISTINCT key FROM audit_rule")), shown.admitted_reviewed) == (1, 0)

    assert shown.labels_a_month is None, "before there was a day of draws"
    with bench.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE venn_admit.audit_draw SET created_at = now() - interval '10 days'")
    admitted = sum(row.admitted for row in decided)
    expected = 3 * (admitted * OF_FIRST + (2000 - admitted) * REJECTED)
    changed = set_audits(bench.engine, NAME, rate=OF_FIRST, rejected=REJECTED)
    assert changed.labels_a_month == pytest.approx(expected, abs=1), "by the rule in force, whatever drew them"
    assert (
        f"about {changed.labels_a_month:,} labels in 30 days, by the traffic of the last 30."
        in audits_lines(changed)[-1]
    )
    with bench.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE venn_admit.audit_draw SET created_at = now() - interval '40 days'")
    assert show_audits(bench.engine, NAME).labels_a_month is None

    before = draws(bench)
    set_audits(bench.engine, NAME, rate=None)
    scored(bench, "later", 20, seed=5)
    assert draws(bench) == before


def test_rates_out_of_range_and_unknown_classes_are_refused(bench: Bench) -> None:
    prepared(bench)
    with pytest.raises(InvalidInputError, match=r"admitted points are audited: .* at most 1, got 0"):
        set_audits(bench.engine, NAME, rate=0.0)
    with pytest.raises(InvalidInputError, match=r"rejected points are reviewed: expected a number in \[0, 1\], got 2"):
        set_audits(bench.engine, NAME, rate=0.1, rejected=2)
    with pytest.raises(InvalidInputError, match=r"expected names of classes of 'logits', .*, got 'other'"):
        set_audits(bench.engine, NAME, rate=0.1, classes={"other": 0.1})
    assert show_audits(bench.engine, NAME).rule is None
