"""Removed jobs: what goes and what stays, and what is said of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.running import Bench, Golden
from venn_admit.core.monitoring.anytime.plan import OF_SAMPLE
from venn_admit.errors import Code, JobError, NotFoundError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.audits import set_audits
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score import count_scores, read_scores, require_finished_scores, write_scores
from venn_admit.flows.jobs.control import cancel, reopen
from venn_admit.flows.jobs.listing import list_jobs, show_job
from venn_admit.flows.jobs.removal import Removed, delete_job, empty_job, old_jobs, prune
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.report import report
from venn_admit.store.access.audit import Origin
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import transaction
from venn_admit.store.decisions import removal
from venn_admit.store.decisions.removal import Why
from venn_admit.store.work import leases

DAY = timedelta(days=1)
ROWS = 160
LEFT = """
SELECT
    (SELECT count(*) FROM job_row WHERE job_id = :job_id),
    (SELECT count(*) FROM job_chunk WHERE job_id = :job_id),
    (SELECT count(*) FROM decision),
    (SELECT count(*) FROM admit_evidence)
"""


def score(bench: Bench, **asked: bool) -> int:
    given: dict[str, Any] = {"chunk_rows": 60, **asked}
    return bench.score("edge", bench.folder / "score.npz", **given).request.job_id


def left(bench: Bench, job_id: int) -> tuple[int, ...]:
    ((*found,),) = bench.rows(LEFT, job_id=job_id)
    return tuple(found)


def age(bench: Bench, job_id: int, days: int) -> None:
    """Let a job have been over for so long."""
    with transaction(bench.engine) as connection:
        connection.exec_driver_sql(
            f"UPDATE job SET created_at = created_at - interval '{days} days',"
            f" finished_at = finished_at - interval '{days} days' WHERE id = {job_id}"
        )


def remove(bench: Bench, job_id: int) -> Removed:
    delete_job(bench.engine, job_id, origin=Origin.COMMAND_LINE)
    return empty_job(bench.engine, job_id)


def test_a_removed_job_leaves_its_line(unlabelled: Bench) -> None:
    job_id = score(unlabelled)
    (decision_id,) = unlabelled.rows("SELECT min(id) FROM decision")[0]
    assert left(unlabelled, job_id) == (ROWS, 3, ROWS, ROWS)
    removed = remove(unlabelled, job_id)
    assert (removed.jobs, removed.rows, removed.decisions, removed.is_complete) == (1, ROWS, ROWS, True)
    assert left(unlabelled, job_id) == (0, 0, 0, 0)

    line = list_jobs(unlabelled.engine, "edge", limit=1)[0]
    assert (line.job, line.state, line.rows, line.rows_done, line.chunks) == (job_id, "done", ROWS, ROWS, 0)
    assert line.removed_at >= line.finished_at
    assert show_job(unlabelled.engine, job_id, with_chunks=True).chunks == []
    assert unlabelled.value("SELECT removed_at FROM report.job_v2 WHERE job = :job", job=job_id) == line.removed_at

    for ask in (count_scores, read_scores, require_finished_scores, reopen):
        with pytest.raises(NotFoundError, match=f"rows and decisions of job {job_id} were removed on ") as found:
            ask(unlabelled.engine, job_id)
        assert (found.value.code, found.value.parameters) == (Code.REMOVED_JOB, {"job": job_id})
    with pytest.raises(NotFoundError, match="were removed on "):
        write_scores(unlabelled.engine, job_id, unlabelled.folder / "out.csv")
    assert not (unlabelled.folder / "out.csv").exists()

    with pytest.raises(NotFoundError, match=f"decision {decision_id} was removed on .*somebody asked") as gone:
        replay(unlabelled.workspace(), decision_id)
    assert (gone.value.code, gone.value.parameters) == (Code.REMOVED_DECISION, {"decision": decision_id})
    with pytest.raises(NotFoundError, match="there is no decision") as never:
        replay(unlabelled.workspace(), decision_id + 10**6)
    assert never.value.code == Code.UNKNOWN_DECISION


@pytest.mark.parametrize("view", ["traffic_v1", "daily_traffic_v1"])
def test_a_job_without_decisions_has_no_stability_index(unlabelled: Bench, view: str) -> None:
    job_id = score(unlabelled)
    said = f"SELECT DISTINCT stability_index IS NULL, share IS NULL FROM report.{view}"
    assert unlabelled.rows(said) == [(False, False)]
    remove(unlabelled, job_id)
    assert unlabelled.rows(said) == [(True, True)]


def test_removing_again_changes_nothing(unlabelled: Bench) -> None:
    job_id = score(unlabelled)
    remove(unlabelled, job_id)
    before = list_jobs(unlabelled.engine, "edge", limit=1)[0]
    assert remove(unlabelled, job_id) == Removed(jobs=1)
    assert list_jobs(unlabelled.engine, "edge", limit=1)[0] == before
    assert unlabelled.rows("SELECT action, target, origin FROM report.audit_v1") == [
        ("delete_job", f"job {job_id}", "command line")
    ]


def test_decisions_that_another_job_asks_for_stay(unlabelled: Bench) -> None:
    first, second, plain = score(unlabelled), score(unlabelled), score(unlabelled, weighted=False)
    table = read_scores(unlabelled.engine, second)
    assert remove(unlabelled, first).decisions == 0
    assert read_scores(unlabelled.engine, second) == table
    assert remove(unlabelled, second).decisions == ROWS
    assert count_scores(unlabelled.engine, plain).counts
    assert unlabelled.value("SELECT count(*) FROM decision WHERE weighted") == 0
    assert left(unlabelled, plain) == (ROWS, 3, ROWS, ROWS)


def test_what_is_asked_for_again_is_decided_again(unlabelled: Bench) -> None:
    before = read_scores(unlabelled.engine, job_id := score(unlabelled))
    remove(unlabelled, job_id)
    assert read_scores(unlabelled.engine, score(unlabelled)) == before


def test_only_a_job_that_is_over_can_be_removed(unlabelled: Bench) -> None:
    job_id = unlabelled.request_score("edge", unlabelled.folder / "score.npz", chunk_rows=60).job_id
    unlabelled_rows = left(unlabelled, job_id)
    with pytest.raises(JobError, match=f"job {job_id} is running") as found:
        delete_job(unlabelled.engine, job_id, origin=None)
    assert found.value.code == Code.JOB_RUNNING
    assert left(unlabelled, job_id) == unlabelled_rows
    cancel(unlabelled.engine, job_id)
    assert remove(unlabelled, job_id).rows == ROWS
    assert list_jobs(unlabelled.engine, "edge", limit=1)[0].rows_done == 0
    with pytest.raises(NotFoundError, match="there is no job"):
        delete_job(unlabelled.engine, 10**9, origin=None)
    with pytest.raises(NotFoundError, match="no classifier is named"):
        delete_job(unlabelled.engine, job_id, name="other", origin=None)


def test_a_snapshot_is_let_go_with_the_last_job_and_decision(unlabelled: Bench) -> None:
    job_id = score(unlabelled)
    (calibrator_id,) = unlabelled.rows("SELECT id FROM calibrator")[0]
    unlabelled.calibrate("edge", **Golden("edge").settings)

    def numbers_kept() -> list[int]:
        with transaction(unlabelled.engine) as connection:
            calibrations.delete_old(connection, calibrator_id, keep=1)
        return [row.number for row in unlabelled.rows("SELECT number FROM calibration ORDER BY number")]

    assert numbers_kept() == [1, 2]
    remove(unlabelled, job_id)
    assert numbers_kept() == [2]
    line = show_job(unlabelled.engine, job_id).summary
    assert (line.calibration, line.rows_done) == (None, ROWS)


class TestAge:
    def prune(self, bench: Bench, days: int = 90, **given: object) -> Removed:
        return prune(bench.engine, days * DAY, origin=Origin.SCHEDULE, **given)  # type: ignore[arg-type]

    def test_old_jobs_go_and_others_stay(self, unlabelled: Bench) -> None:
        old, new = score(unlabelled), score(unlabelled, weighted=False)
        running = unlabelled.request_score("edge", unlabelled.folder / "score.npz", require_full_match=True).job_id
        age(unlabelled, old, 91)
        age(unlabelled, new, 89)
        limit, found = old_jobs(unlabelled.engine, 90 * DAY)
        assert (found.jobs, found.rows) == (1, ROWS)
        removed = self.prune(unlabelled)
        assert (removed.jobs, removed.decisions) == (1, ROWS)
        assert self.prune(unlabelled) == Removed()
        assert left(unlabelled, new)[:2] == (ROWS, 3)
        unlabelled.run(running)

        (since,) = unlabelled.rows("SELECT * FROM report.kept_since_v1")
        assert (since.classifier, since.jobs_removed, since.decisions_removed) == ("edge", 1, ROWS)
        assert since.complete_since < since.removed_at
        (event,) = unlabelled.rows("SELECT action, target, origin FROM report.audit_v1")
        assert (event.action, event.origin) == ("prune_jobs", "schedule")
        assert event.target.startswith("jobs that ended before 20")
        with pytest.raises(NotFoundError, match="longer than decisions are kept"):
            replay(unlabelled.workspace(), 1)
        assert limit < since.removed_at

    def test_without_an_age_only_removals_are_continued(self, unlabelled: Bench) -> None:
        old, removed = score(unlabelled), score(unlabelled, weighted=False)
        age(unlabelled, old, 10_000)
        delete_job(unlabelled.engine, removed, origin=None)
        assert prune(unlabelled.engine, None, origin=Origin.SCHEDULE).decisions == ROWS
        assert left(unlabelled, old)[:2] == (ROWS, 3)

    def test_one_that_a_kept_answer_may_name_stays(self, unlabelled: Bench) -> None:
        old = score(unlabelled)
        age(unlabelled, old, 91)
        with transaction(unlabelled.engine) as connection:
            connection.exec_driver_sql(
                "INSERT INTO idempotent_request (caller, idempotency_key, route, attempt, leased_until, created_at,"
                " expires_at) VALUES ('key 1', 'a', 'POST', gen_random_uuid(), now(), now() - interval '92 days',"
                " now() + interval '1 minute')"
            )
        assert self.prune(unlabelled) == Removed()
        with transaction(unlabelled.engine) as connection:
            connection.exec_driver_sql("UPDATE idempotent_request SET expires_at = now() - interval '1 second'")
        assert self.prune(unlabelled).decisions == ROWS

    def test_one_whose_label_deadline_has_not_passed_stays(self, unlabelled: Bench) -> None:
        """If errors are labelled sooner, they would be all that had a label when it was removed."""
        update_monitor(unlabelled.engine, "edge", label_deadline=100 * DAY)
        old = score(unlabelled)
        age(unlabelled, old, 91)
        assert self.prune(unlabelled) == Removed()
        age(unlabelled, old, 10)
        assert self.prune(unlabelled).decisions == ROWS

    def test_its_time_is_limited(self, unlabelled: Bench) -> None:
        age(unlabelled, score(unlabelled), 91)
        assert self.prune(unlabelled, seconds=0.0) == Removed()
        assert self.prune(unlabelled, batch_rows=7).rows == ROWS
        assert unlabelled.value("SELECT count(*) FROM decision_removal") == -(-ROWS // 7)

    def test_chunks_that_are_still_computed_do_not_count(self, unlabelled: Bench) -> None:
        job_id = unlabelled.request_score("edge", unlabelled.folder / "score.npz", chunk_rows=60).job_id
        with transaction(unlabelled.engine) as connection:
            claim = leases.claim(connection, job_id, 0, worker="slow", lease_seconds=600)
        assert claim is not None
        cancel(unlabelled.engine, job_id)
        with transaction(unlabelled.engine) as connection:
            assert removal.mark(connection, job_id, Why.REQUEST)
        with transaction(unlabelled.engine) as connection:
            assert not leases.finish(connection, claim)


class TestLabelled:
    def test_decisions_on_exemplars_that_were_labelled_stay(self, unlabelled: Bench, tmp_path: Path) -> None:
        age(unlabelled, score(unlabelled), 91)
        path = tmp_path / "labels.csv"
        path.write_text("external_id,label\n" + "".join(f"score-{row},{row % 3}\n" for row in range(50)))
        label(unlabelled.engine, "edge", LabelFile(path), selection="random", retract=False)
        before = self.figures(unlabelled)
        assert before[0] == 50
        removed = prune(unlabelled.engine, 90 * DAY, origin=Origin.SCHEDULE)
        assert (removed.rows, removed.decisions) == (ROWS, ROWS - 50)
        assert self.figures(unlabelled) == before
        found = update_monitor(unlabelled.engine, "edge", restart=False).readings
        assert not any(one.about.lamp in OF_SAMPLE for one in found), "the points beside labelled ones are removed"

        # A label that is taken back and given again counts as it would have.
        for text, retract in (("external_id,label\nscore-0,\n", True), ("external_id,label\nscore-0,0\n", False)):
            path.write_text(text)
            label(unlabelled.engine, "edge", LabelFile(path), selection="random", retract=retract)
        assert update_monitor(unlabelled.engine, "edge", restart=False).documents == 50
        assert report(unlabelled.workspace(), "edge", calibration_id=None).traffic is None

    def test_decisions_on_drawn_points_stay_and_a_selected_label_keeps_none(
        self, unlabelled: Bench, tmp_path: Path
    ) -> None:
        """Otherwise points of which somebody complained would be all that is left to reviewers and monitors."""
        set_audits(unlabelled.engine, "edge", rate=0.2, rejected=0.2)
        age(unlabelled, score(unlabelled), 91)
        path = tmp_path / "labels.csv"
        path.write_text("external_id,label\n" + "".join(f"score-{row},{row % 3}\n" for row in range(50)))
        label(unlabelled.engine, "edge", LabelFile(path), selection="selected", retract=False)
        drawn = unlabelled.rows("SELECT external_id FROM report.audit_draw_v1 WHERE is_drawn ORDER BY 1")
        assert 0 < len(drawn) < ROWS / 2
        assert prune(unlabelled.engine, 90 * DAY, origin=Origin.SCHEDULE).decisions == ROWS - len(drawn)
        left_over = "SELECT external_id FROM decision INNER JOIN exemplar ON exemplar_id = exemplar.id ORDER BY 1"
        assert unlabelled.rows(left_over) == drawn

    def figures(self, bench: Bench) -> tuple[object, ...]:
        found = update_monitor(bench.engine, "edge", restart=False)
        accuracy = bench.rows("SELECT * FROM report.selective_accuracy_v4 ORDER BY 1, 2, 3, 4, 5, 6, 7")
        return found.documents, [one for one in found.readings if one.about.lamp not in OF_SAMPLE], accuracy
