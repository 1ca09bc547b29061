"""Decisions that rest on what was forgotten are explained as far as that goes, and say what cannot be computed."""

import numpy as np
import pytest

from tests.running import Bench, Golden
from venn_admit.core import evidence
from venn_admit.flows.decisions.replay import ForgottenSince, Replayed, replay
from venn_admit.flows.removal.forget import forget
from venn_admit.results import replayed_json

VIEW = tuple(field.name for field in evidence.VIEW)


def gone(bench: Bench, *ids: str) -> None:
    for job_id in forget(bench.workspace(chunk_rows=100), "edge", ids).jobs:
        bench.run(job_id)


def replayed(bench: Bench, external_id: str) -> Replayed:
    query = (
        "SELECT decision.id FROM decision INNER JOIN exemplar ON decision.exemplar_id = exemplar.id"
        " WHERE external_id = :id ORDER BY decision.id LIMIT 1"
    )
    return replay(bench.workspace(), bench.value(query, id=external_id))


def neighbours(bench: Bench, external_id: str) -> list[str]:
    query = (
        "SELECT near.external_id FROM neighbours INNER JOIN exemplar ON neighbours.exemplar_id = exemplar.id"
        " CROSS JOIN unnest(neighbour_ids) WITH ORDINALITY AS listed (id, place)"
        " INNER JOIN exemplar AS near ON listed.id = near.id WHERE exemplar.external_id = :id ORDER BY place"
    )
    return [row.external_id for row in bench.rows(query, id=external_id)]


def test_a_neighbour_that_is_gone(edge: Bench) -> None:
    before = replayed(edge, "score-3")
    assert (before.differing, before.not_recomputed, before.forgotten) == ((), (), ForgottenSince(0, 0, 0))
    gone(edge, neighbours(edge, "score-3")[0])
    after = replayed(edge, "score-3")
    assert (after.differing, after.not_recomputed) == ((), VIEW)
    assert after.forgotten == ForgottenSince(1, 0, 0)
    assert after.near == []
    assert [after.computed[field] for field in VIEW] == [None] * 3
    # What follows from the KNN's view is computed from it as it is stored.
    others = set(before.computed) - set(VIEW)
    assert {field: after.computed[field] for field in others} == {field: before.computed[field] for field in others}
    assert replayed_json(after)["forgotten"] == {"training": 1, "mc": 0, "vp": 0}


def test_an_exemplar_that_was_no_neighbour(edge: Bench) -> None:
    near = neighbours(edge, "score-3")
    other = next(f"train-{row}" for row in range(400) if f"train-{row}" not in near)
    gone(edge, other)
    after = replayed(edge, "score-3")
    assert (after.differing, after.not_recomputed, after.forgotten) == ((), (), ForgottenSince(1, 0, 0))
    assert [one.external_id for one, _, _ in after.near] == near


def test_points_of_the_calibration_that_are_gone(edge: Bench) -> None:
    """Some decisions rest on them, others do not; none of what is computed is other than what is stored."""
    ids = [f"vp-{row}" for row in range(0, 500, 9)] + [f"mc-{row}" for row in range(0, 500, 9)]
    gone(edge, *ids)
    found = [replayed(edge, f"score-{row}") for row in range(40)]
    assert {one.forgotten for one in found} == {ForgottenSince(0, 56, 56)}
    assert all(one.differing == () for one in found)
    assert any(one.not_recomputed for one in found)
    assert any(not one.not_recomputed for one in found)
    for one in found:
        for field, value in one.computed.items():
            assert value is None if field in one.not_recomputed else value == one.stored[field]


def test_a_decision_made_afterwards_rests_on_nothing_that_is_gone(edge: Bench, golden: Golden) -> None:
    gone(edge, neighbours(edge, "score-3")[0], "mc-1", "vp-1")
    edge.calibrate("edge", **golden.settings)
    rows = golden.exemplars("score", slice(3, 4))
    edge.score("edge", edge.write("again.npz", {**rows, "id": np.array(["again"])}))
    after = replayed(edge, "again")
    assert (after.differing, after.not_recomputed, after.forgotten) == ((), (), ForgottenSince(0, 0, 0))
    assert len(after.near) == 5


def test_too_few_training_exemplars_are_left(edge: Bench) -> None:
    gone(edge, *(f"train-{row}" for row in range(397)))
    after = replayed(edge, "score-3")
    assert (after.differing, after.not_recomputed, after.forgotten.training) == ((), VIEW, 397)


def test_what_was_spoilt_otherwise_still_shows(edge: Bench) -> None:
    near = neighbours(edge, "score-3")
    other = next(f"train-{row}" for row in range(400) if f"train-{row}" not in near)
    gone(edge, other)
    with edge.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE decision SET lower = 0.123 WHERE lower IS NOT NULL")
    spoilt = next(found for row in range(40) if (found := replayed(edge, f"score-{row}")).stored["lower"] == 0.123)
    assert "lower" in spoilt.differing
    assert pytest.approx(0.123) != spoilt.computed["lower"]
