"""Cascades of classifiers: created, certified, asked, and refused."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from celery import Celery

from tests.conftest import fresh_engine
from tests.counting import traffic
from tests.flows.cascades.bundled import CLASSES, STAGES, Reviews, calibrate, certify, prepare, reviews
from tests.flows.recalibration import NoShell
from tests.running import EXAMPLES, Arrays, Bench
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.certified_cells import proposing_rows
from venn_admit.errors import (
    Code,
    ConflictError,
    InvalidInputError,
    JobError,
    NotFoundError,
    NotReadyError,
    OutdatedError,
)
from venn_admit.files.label_sources import LabelFile
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.recalibrate import recalibrate_due
from venn_admit.flows.cascades import manage
from venn_admit.flows.cascades.certify import cascade_settings_for, certify_due, request_certificate
from venn_admit.flows.cascades.serve import decide, score, served
from venn_admit.flows.data.create import create
from venn_admit.flows.data.label import label as label_rows
from venn_admit.flows.decisions.score import request_score
from venn_admit.flows.decisions.score_one import GivenPoint, PointScorer
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.flows.jobs.control import cancel, reopen
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget
from venn_admit.methods.venn_abers.held_out import require_fixed_score
from venn_admit.report.cascade import promise_sentence
from venn_admit.report.wording import share_text
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, create_engine
from venn_admit.store.exemplars import classifiers


@pytest.fixture(scope="module")
def data() -> Reviews:
    return reviews()


@pytest.fixture(scope="module")
def prepared(
    server_url: str, template_database: str, data: Reviews, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of a database with the cascade `reviews`, certified."""
    with fresh_engine(server_url, template_database) as engine:
        bench = Bench(engine, tmp_path_factory.mktemp("cascade"))
        prepare(bench, data.held_out)
        manage.create(engine, "reviews", STAGES)
        certify(bench, "reviews")
        engine.dispose()
        yield engine.url.database or ""


@pytest.fixture
def bench(server_url: str, prepared: str, tmp_path: Path) -> Iterator[Bench]:
    with fresh_engine(server_url, prepared) as engine:
        yield Bench(engine, tmp_path)


def scores(bench: Bench, name: str, rows: Arrays) -> int:
    """Have a classifier score rows, and return the job."""
    source = FileSource(bench.write(f"scored by {name}.npz", rows))
    options: Any = {"weighted": None, "require_full_match": False, "calibration_id": None}
    job = request_score(bench.workspace(), name, source, **options).job_id
    bench.run(job)
    return job


def take(rows: Arrays, wanted: list[str]) -> Arrays:
    places = [rows["id"].tolist().index(one) for one in wanted]
    return {name: values[places] for name, values in rows.items()}


def softmax(logits: Any) -> tuple[float, int]:
    """Score and predicted class, by a loop of its own."""
    given = [float(one) for one in logits]
    parts = np.exp(np.array(given) - max(given))
    return float((parts / parts.sum()).max()), int(np.argmax(parts))


def test_three_stages_on_the_bundled_reviews_serve_what_a_loop_finds(bench: Bench, data: Reviews) -> None:
    report = manage.show(bench.engine, "reviews")
    assert report.is_certified
    assert [stage.classifier for stage in report.stages] == ["small", "large", None]
    ids = sorted(data.held_out["small"]["id"].tolist())
    proposing = proposing_rows(ids, np.zeros(len(ids), dtype=np.bool_), seed=0)
    evidence = [one for one, is_proposing in zip(ids, proposing.tolist(), strict=True) if not is_proposing]
    assert report.points == len(evidence)
    labels = dict(zip(data.held_out["small"]["id"].tolist(), data.held_out["small"]["y"].tolist(), strict=True))
    left = evidence
    total = 0.0
    for stage in report.stages:
        assert stage.reached == len(left)
        total += stage.cost * len(left)
        if stage.classifier is None:
            continue
        rows = data.held_out[stage.classifier]
        logits = dict(zip(rows["id"].tolist(), rows["f"], strict=True))
        counts, rejected = {name: [0, 0] for name in report.classes}, []
        for one in left:
            score, said = softmax(logits[one])
            threshold = stage.classes[said].threshold
            if threshold is not None and score >= threshold:
                counts[report.classes[said]][0] += 1
                counts[report.classes[said]][1] += said == labels[one]
            else:
                rejected.append(one)
        assert {one.label: [one.served, one.right] for one in stage.classes} == counts
        left = rejected
    assert report.cost == pytest.approx(total / len(evidence))
    assert total / len(evidence) < 321 / 2.5
    assert report.served == len(evidence) - len(left)
    for one in report.promised:
        assert one.right >= 0.9 * one.served > 0


def test_what_is_served_of_a_file_is_what_a_loop_finds(bench: Bench, data: Reviews) -> None:
    report = manage.show(bench.engine, "reviews")
    first = scores(bench, "small", data.scored["small"])
    alone = served(bench.engine, "reviews", [first])
    needed = [one for one, stage in zip(alone.ids, alone.stage, strict=True) if stage == 2]
    second = scores(bench, "large", take(data.scored["large"], needed))
    found = served(bench.engine, "reviews", [first, second])
    assert [one.waiting for one in alone.stages] == [0, len(needed), 0]
    assert [one.waiting for one in found.stages] == [0, 0, 0]
    known = dict(zip(data.scored["small"]["id"].tolist(), data.scored["small"]["y"].tolist(), strict=True))
    right = 0
    for one, answer, at in zip(found.ids, found.served, found.stage, strict=True):
        expected: tuple[str | None, int] = (None, 3)
        for stage in report.stages[:2]:
            rows = data.scored[stage.classifier or ""]
            score, said = softmax(rows["f"][rows["id"].tolist().index(one)])
            threshold = stage.classes[said].threshold
            if threshold is not None and score >= threshold:
                expected = report.classes[said], stage.place
                break
        assert (answer, at) == expected
        right += answer == report.classes[known[one]]
    answered = sum(one is not None for one in found.served)
    assert right / answered >= 0.9
    assert answered / len(found.ids) > 0.6
    assert found.cost == len(found.ids) + 20 * len(needed) + 300 * (len(found.ids) - answered)


def test_the_guide_shows_what_comes_out(bench: Bench, data: Reviews) -> None:
    guide = (EXAMPLES.parents[1] / "docs" / "how-to" / "cascade.md").read_text("utf-8")
    report = manage.show(bench.engine, "reviews")
    for stage in report.stages[:2]:
        right = sum(one.right for one in stage.classes)
        counts = f"{stage.reached:,} | {stage.served:,} | {share(right, stage.served)}"
        assert f"| {stage.classifier} | {counts} | {stage.cost:.0f} |" in guide
    right, all_served = (sum(getattr(one, of) for one in report.promised) for of in ("right", "served"))
    assert (
        f"{all_served:,} ({share(all_served, report.points)}) | {share(right, all_served)} | {report.cost:.1f}" in guide
    )
    for one in report.promised:
        interval = f"{share(one.right, one.served)} ({share(one.low)} to {share(one.high)})"
        assert f"| served as {one.label} | | {one.served:,} | {interval} | |" in guide

    first, second = (scores(bench, name, data.scored[name]) for name in ("small", "large"))
    found = served(bench.engine, "reviews", [first, second])
    known = dict(zip(data.scored["small"]["id"].tolist(), data.scored["small"]["y"].tolist(), strict=True))
    answers = [
        (stage, answer, answer == CLASSES[known[one]])
        for one, answer, stage in zip(found.ids, found.served, found.stage, strict=True)
        if answer is not None
    ]
    rights = [[is_right for stage, _, is_right in answers if stage == place] for place in (1, 2)]
    of_classes = [[is_right for _, answer, is_right in answers if answer == name] for name in CLASSES]
    small, large, negative, positive = (share(sum(some), len(some)) for some in (*rights, *of_classes))
    count = len(found.ids)
    assert (
        f"The bundled test set has {count} reviews. `small` serves {len(rights[0])} of them, {small} right, and "
        f"{count - len(rights[0])} need `large`, which serves {len(rights[1])} of these, {large} right. That is "
        f"{len(answers)} ({share(len(answers), count)}) of all, {negative} of the negative and {positive} of the "
        f"positive answers right, at a cost of {found.cost:,.0f}; {300 * count:,} if a person reads all."
    ) in " ".join(guide.split())


def share(part: float | None, whole: int | None = 1) -> str:
    assert part is not None
    assert whole is not None
    return share_text(part / whole)


def test_one_point_is_served_as_a_job_serves_it(bench: Bench, data: Reviews) -> None:
    first = scores(bench, "small", data.scored["small"])
    second = scores(bench, "large", data.scored["large"])
    found = served(bench.engine, "reviews", [first, second])
    scorer = PointScorer(bench.workspace())
    for row in range(60):
        answers = []
        place: int | None = 1
        while place is not None and place < 3:
            logits = data.scored[STAGES[place - 1][0]]["f"][row]
            one = decide(bench.engine, scorer, "reviews", place, GivenPoint(None, logits))
            answers.append(one)
            place = one.next_stage
        last = answers[-1]
        assert last.served == found.served[row]
        assert (last.stage if last.served is not None else last.next_stage) == found.stage[row]


def test_looking_a_cascade_up_takes_one_statement_whatever_its_stages(bench: Bench, data: Reviews) -> None:
    manage.create(bench.engine, "alone", [("small", 0.0)])
    scorer = PointScorer(bench.workspace())
    point = GivenPoint(None, data.scored["small"]["f"][0])
    scorer.score_each("small", [point], neighbours=0)
    with traffic(bench.engine) as of_classifier:
        scorer.score_each("small", [point], neighbours=0)
    with traffic(bench.engine) as of_cascade:
        decide(bench.engine, scorer, "reviews", 1, point)
    with traffic(bench.engine) as listed:
        assert len(manage.every(bench.engine)) == 2
    # The cascade, the calibration that decided, and its score.
    assert of_cascade.statements == of_classifier.statements + 3
    # All stages, and all certificates.
    assert listed.statements == 2


def certificates(bench: Bench) -> list[tuple[bool, bool]]:
    """Which certificates of the cascade there are, the newest first: whether certified, and whether withheld."""
    return [(one.is_certified, one.is_withheld) for one in manage.history(bench.engine, "reviews")]


def test_a_job_can_be_cancelled_and_resumed(bench: Bench) -> None:
    before = manage.show(bench.engine, "reviews")
    submitted = request_certificate(bench.workspace(), "reviews", cascade_settings_for({"alpha": "0.2"}))
    cancel(bench.engine, submitted.job_id)
    with pytest.raises(JobError, match="cancelled"):
        compute_job(bench.engine, bench.runner(), submitted.job_id)
    assert manage.show(bench.engine, "reviews") == before
    reopen(bench.engine, submitted.job_id)
    bench.run(submitted.job_id)
    found = manage.show(bench.engine, "reviews")
    assert (str(found.alpha), found.looks) == ("0.2", before.looks + 1)
    bench.run(submitted.job_id)
    assert manage.show(bench.engine, "reviews") == found, "what is done is not done again"


def test_a_job_whose_cascade_is_deleted_says_so(bench: Bench) -> None:
    submitted = request_certificate(bench.workspace(), "reviews", cascade_settings_for({}))
    manage.delete(bench.engine, "reviews")
    with pytest.raises(ConflictError, match=rf"running: {submitted.job_id} \(certify\)"):
        delete(bench.workspace(), "small")
    with pytest.raises(JobError, match=f"the cascade that job {submitted.job_id} certifies was deleted"):
        compute_job(bench.engine, bench.runner(), submitted.job_id)


def test_a_cascade_follows_data_that_arrive_at_its_stages(bench: Bench, data: Reviews) -> None:
    sent: list[int] = []
    follow = partial(certify_due, bench.workspace(), sent.append)
    assert follow() == []
    calibrate(bench, "small", alpha="0.2")
    assert follow() == [], "another setting is no other data"
    calibrate(bench, "small")
    for name in ("small", "large"):
        arriving = {key: values.copy() for key, values in data.scored[name].items()}
        bench.ingest(name, bench.write(f"{name} arriving.npz", arriving), "held-out")
        assert follow() == [], "a recalibration is due first"
        recalibrate_due(
            bench.workspace(), Celery(broker="memory://", set_as_current=False), quiet_seconds=0, wait_seconds=0
        )
    (submitted,) = follow()
    assert sent == [submitted.job_id]
    assert follow() == [], "it is under way"
    points = manage.show(bench.engine, "reviews").points
    assert points is not None
    bench.run(submitted.job_id)
    found = manage.show(bench.engine, "reviews")
    assert found.points is not None
    assert found.points > points
    assert certificates(bench) == [(True, False), (True, False)]
    assert follow() == []


def give(bench: Bench, name: str, rows: Arrays, selection: str = "random") -> None:
    """Record the labels of rows."""
    path = bench.folder / "labels.csv"
    given = zip(rows["id"], rows["y"], strict=True)
    path.write_text("\n".join(["external_id,label", *(f"{key},{label}" for key, label in given)]) + "\n")
    label_rows(bench.engine, name, LabelFile(path), selection=selection, retract=False)


def test_labels_of_traffic_count_if_all_stages_scored_it(bench: Bench, data: Reviews) -> None:
    """The large network is mostly asked for what the small one does not serve, which is no random sample."""

    def certified(name: str, count: int) -> int | None:
        """How many points certify once a stage has scored and got random labels of the first rows."""
        rows = {key: values[:count] for key, values in data.scored[name].items()}
        scores(bench, name, {key: values for key, values in rows.items() if key != "y"})
        give(bench, name, rows)
        calibrate(bench, name)
        return certify(bench, "reviews").points

    before = manage.show(bench.engine, "reviews").points
    assert before is not None
    assert certified("small", 400) == before
    assert certified("large", 200) == before, "what reached it is no random sample"
    after = certified("large", 400)
    assert after is not None
    assert after > before


def test_labels_of_what_a_stage_passes_on_are_no_random_sample_of_what_it_decides_on(
    bench: Bench, data: Reviews
) -> None:
    """Though they are one of what reaches the next stage."""
    unlabelled = {
        name: {key: values for key, values in rows.items() if key != "y"} for name, rows in data.scored.items()
    }
    found = served(bench.engine, "reviews", [scores(bench, "small", unlabelled["small"])])
    passed_on = [one for one, stage in zip(found.ids, found.stage, strict=True) if stage == 2]
    scores(bench, "large", take(unlabelled["large"], passed_on))
    few, many = passed_on[:6], passed_on[6:106]
    before = manage.show(bench.engine, "reviews").points
    for name in ("small", "large"):
        give(bench, name, take(data.scored[name], few))
        calibrate(bench, name)
    joined = "SELECT count(*) FROM exemplar WHERE split IN ('mc', 'vp') AND external_id = ANY(:ids)"
    assert bench.value(joined, ids=few) > 0
    assert certify(bench, "reviews").points == before, "of a cascade, they certify nothing, as few as they are"

    rows = take(data.scored["small"], many)
    with pytest.raises(ConflictError, match=r"got 100 of points that all reached 'large', as \d+ of \d+ others did"):
        give(bench, "small", rows)
    give(bench, "small", rows, selection="selected")
    give(bench, "large", take(data.scored["large"], many))
    # Where the next stage has all points, labels of these are as random as they are said to be.
    scores(bench, "large", unlabelled["large"])
    give(bench, "small", rows)
    first = data.scored["small"]["id"][:200].tolist()
    give(bench, "small", take(data.scored["small"], [one for one in first if one not in few + many]))


def test_what_nobody_asked_for_is_withheld_if_it_serves_far_less(bench: Bench) -> None:
    before = manage.show(bench.engine, "reviews")
    submitted = request_certificate(bench.workspace(), "reviews", cascade_settings_for({"alpha": "0.001"}))
    with bench.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE venn_admit.cascade_request SET is_scheduled = TRUE")
    bench.run(submitted.job_id)
    assert certificates(bench) == [(False, True), (True, False)]
    found = manage.show(bench.engine, "reviews")
    assert replace(found, looks=1, joint_confidence=before.joint_confidence, withheld=None) == before
    assert found.looks == 2
    assert found.withheld is not None
    assert (found.withheld.is_certified, found.withheld.served) == (False, 0)


def test_what_certifies_nothing_does_not_replace_what_serves(bench: Bench) -> None:
    """Although somebody asked for it, who is told what it would take."""
    before = manage.show(bench.engine, "reviews")
    found = certify(bench, "reviews", alpha="0.001")
    assert certificates(bench) == [(False, True), (True, False)]
    assert (found.number, found.is_certified, found.served) == (before.number, True, before.served)
    assert found.withheld is not None
    said = promise_sentence(found)[-1]
    assert said.startswith(
        f"Certificate {found.withheld.number} came later and is not in use, because nothing is certified by it. "
    )
    assert ("No number of labels would do" in said) is (found.withheld.labels_needed is None)
    less = certify(bench, "reviews", confidence="0.99")
    assert (less.is_certified, less.withheld) == (True, None), "it is asked for, and certifies something"


def test_the_view_says_what_the_report_says(bench: Bench) -> None:
    certify(bench, "reviews", confidence="0.9")
    report = manage.show(bench.engine, "reviews")
    assert (report.looks, str(report.joint_confidence)) == (2, "0.85")
    rows = bench.rows("SELECT * FROM report.cascade_stage_v1 WHERE is_current ORDER BY stage, class")
    found = [
        (row.stage, row.classifier, row.cost, row.reached, row.class_name, row.threshold, row.served, row.served_right)
        for row in rows
    ]
    assert found == [
        (stage.place, stage.classifier, stage.cost, stage.reached, one.label, one.threshold, one.served, one.right)
        for stage in report.stages
        for one in stage.classes
    ]
    assert {(row.cascade_calibration, row.points, row.is_certified) for row in rows} == {
        (report.number, report.points, True)
    }
    assert bench.value("SELECT count(DISTINCT cascade_calibration) FROM report.cascade_stage_v1") == 2


def test_a_cascade_that_cannot_be_is_refused(bench: Bench) -> None:
    engine = bench.engine
    create(engine, "other", ("no", "yes"), seed=0, logits_only=True)
    refused: list[tuple[str, list[tuple[str, float]], type[Exception], str]] = [
        ("a/b", [("small", 0.0)], InvalidInputError, "name: expected"),
        ("new", [], InvalidInputError, "expected 1 to 20, got 0"),
        ("new", [("small", -1.0)], InvalidInputError, "cost of 'small'"),
        ("new", [("small", float("inf"))], InvalidInputError, "cost of 'small'"),
        ("new", [("small", 0.0), ("small", 0.0)], InvalidInputError, "each classifier once"),
        ("new", [("person", 0.0)], NotFoundError, "person"),
        ("new", [("person", 0.0), ("small", 0.0)], NotFoundError, "person"),
        ("new", [("nobody", 0.0)], NotFoundError, "nobody"),
        ("new", [("small", 0.0), ("other", 0.0)], ConflictError, "at every stage, got 'no', 'yes'"),
        ("reviews", [("small", 0.0)], ConflictError, "the name of a cascade already"),
    ]
    for name, stages, kind, saying in refused:
        with pytest.raises(kind, match=saying):
            manage.create(engine, name, stages)
    assert [one.cascade for one in manage.every(engine)] == ["reviews"]


def test_a_classifier_that_is_a_stage_is_not_deleted(bench: Bench) -> None:
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match="stage of the cascade 'reviews'") as refused:
            delete(bench.workspace(), "large", dry_run=dry_run)
        assert refused.value.code is Code.STAGE_OF_CASCADE
    assert bench.value("SELECT count(*) FROM venn_admit.classifier WHERE deleting_since IS NOT NULL") == 0
    manage.delete(bench.engine, "reviews")
    for table in ("classifier_cascade", "cascade_stage", "cascade_calibration", "cascade_calibration_stage"):
        assert bench.value(f"SELECT count(*) FROM venn_admit.{table}") == 0
    assert delete(bench.workspace(), "large").is_done
    with pytest.raises(NotFoundError, match="no cascade 'reviews'"):
        manage.show(bench.engine, "reviews")


def test_nothing_is_served_before_there_is_a_certificate(bench: Bench, data: Reviews) -> None:
    manage.create(bench.engine, "new", [("small", 0.0), ("large", 0.0)])
    job = scores(bench, "small", data.scored["small"])
    with pytest.raises(NotReadyError, match="certify it first") as refused:
        served(bench.engine, "new", [job])
    assert refused.value.code is Code.CASCADE_NOT_CERTIFIED


def test_without_a_policy_every_point_is_left(bench: Bench, data: Reviews) -> None:
    manage.create(bench.engine, "strict", STAGES)
    report = certify(bench, "strict", alpha="0.001")
    assert not report.is_certified
    assert report.served == 0
    assert report.cost == pytest.approx(321.0)
    jobs = [scores(bench, name, data.scored[name]) for name in ("small", "large")]
    found = served(bench.engine, "strict", jobs)
    assert set(found.served) == {None}
    assert set(found.stage) == {3}


def test_true_classes_say_which_labels_they_would_take(bench: Bench) -> None:
    manage.create(bench.engine, "both", STAGES)
    report = certify(bench, "both", certify="predicted,true")
    assert not report.is_certified
    needed = [one.labels_needed for one in report.promised]
    assert report.labels_needed == max(one for one in needed if one is not None)
    hardest = max(report.promised, key=lambda one: one.labels_needed or 0)
    said = promise_sentence(report)[0]
    assert f"of evidence would do instead of {report.points:,}, because of {hardest.kind} {hardest.label}" in said
    hopeless = tuple(replace(one, labels_needed=None) for one in report.promised)
    never = replace(report, labels_needed=None, promised=hopeless)
    assert (
        f"No number of labels would do, at the rates seen of predicted {report.classes[0]}, "
        in promise_sentence(never)[0]
    )


def test_jobs_that_do_not_belong_together_are_refused(bench: Bench, data: Reviews) -> None:
    first, second = (scores(bench, name, data.scored[name]) for name in ("small", "large"))
    with pytest.raises(InvalidInputError, match="expected one of 'small', stage 1"):
        served(bench.engine, "reviews", [second, first])
    with pytest.raises(InvalidInputError, match="1 to 2 of them, got 3"):
        served(bench.engine, "reviews", [first, second, second])
    with pytest.raises(NotFoundError, match="999"):
        served(bench.engine, "reviews", [999])
    few = take(data.scored["small"], data.scored["small"]["id"].tolist()[:5])
    some = scores(bench, "small", few)
    with pytest.raises(InvalidInputError, match=r"stage 2 has scored .*, which stage 1 has not"):
        served(bench.engine, "reviews", [some, second])
    twice = scores(bench, "small", {name: np.concatenate([values, values]) for name, values in few.items()})
    with pytest.raises(InvalidInputError, match="each point once"):
        served(bench.engine, "reviews", [twice])
    scorer = PointScorer(bench.workspace())
    for place in (0, 3):
        with pytest.raises(InvalidInputError, match="stage: expected 1 to 2"):
            decide(bench.engine, scorer, "reviews", place, GivenPoint(None, few["f"][0]))


def test_jobs_of_no_use_are_refused_before_anything_is_scored(bench: Bench, data: Reviews) -> None:
    few = take(data.scored["large"], data.scored["large"]["id"].tolist()[:2])
    source, other = FileSource(bench.write("more.npz", few)), scores(bench, "large", few)
    for job, refused in ((999, NotFoundError), (other, InvalidInputError)):
        with pytest.raises(refused, match=f"job {job}"):
            score(bench.workspace(), "reviews", [source], earlier_jobs=[job], shell=NoShell())


def test_what_is_forgotten_is_served_no_more(bench: Bench, data: Reviews) -> None:
    few = take(data.scored["small"], data.scored["small"]["id"].tolist()[:3])
    job = scores(bench, "small", few)
    assert served(bench.engine, "reviews", [job]).ids == tuple(few["id"].tolist())
    forget(bench.workspace(), "small", few["id"].tolist()[:1])
    assert served(bench.engine, "reviews", [job]).ids == tuple(few["id"].tolist()[1:])
    forget(bench.workspace(), "small", few["id"].tolist()[1:])
    assert served(bench.engine, "reviews", [job]).ids == ()


def test_a_recalibration_by_the_same_score_changes_nothing(bench: Bench, data: Reviews) -> None:
    first = scores(bench, "small", data.scored["small"])
    before = served(bench.engine, "reviews", [first])
    calibrate(bench, "small", alpha="0.2")
    again = scores(bench, "small", data.scored["small"])
    assert served(bench.engine, "reviews", [again]) == before
    calibrate(bench, "small", promise="pointwise", score="network")
    assert certify(bench, "reviews").is_certified


def test_a_calibration_without_a_score_that_labels_may_test_is_refused(bench: Bench, edge: Bench) -> None:
    manage.create(edge.engine, "cascade", [("edge", 0.0)])
    with pytest.raises(InvalidInputError, match="made by venn-admit, does not have: calibrate it by venn-abers"):
        certify(edge, "cascade")
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "small")
        calibration = calibrations.latest(connection, classifier)
        chosen = replace(calibration, method_settings=make_venn_abers_settings(2, 25))
        with pytest.raises(InvalidInputError, match="chosen by the labels that would test it"):
            require_fixed_score(connection, classifier, chosen)


def test_a_score_that_changed_since_the_certificate_is_refused(bench: Bench, data: Reviews) -> None:
    job = scores(bench, "small", data.scored["small"])
    with bench.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE venn_admit.cascade_calibration_stage SET score = 'reliability'")
    with pytest.raises(OutdatedError, match="has another score than when the cascade") as refused:
        served(bench.engine, "reviews", [job])
    assert refused.value.code is Code.CASCADE_OUTDATED
    with pytest.raises(OutdatedError, match="has another score"):
        decide(
            bench.engine, PointScorer(bench.workspace()), "reviews", 1, GivenPoint(None, data.scored["small"]["f"][0])
        )


@pytest.fixture
def empty(database: str, tmp_path: Path) -> Iterator[Bench]:
    engine = create_engine(database)
    yield Bench(engine, tmp_path)
    engine.dispose()


def test_labels_that_stages_do_not_share_are_refused(empty: Bench, data: Reviews) -> None:
    small, large = (take(data.held_out[name], data.held_out[name]["id"].tolist()[:400]) for name in ("small", "large"))
    prepare(empty, {"small": small, "large": {**large, "y": np.r_[1 - large["y"][:1], large["y"][1:]]}})
    manage.create(empty.engine, "reviews", STAGES)
    with pytest.raises(JobError, match=f"exemplar '{large['id'][0]}' has another label at 'large' than at 'small'"):
        certify(empty, "reviews")


def test_stages_without_a_point_in_common_are_refused(empty: Bench, data: Reviews) -> None:
    small, large = (take(data.held_out[name], data.held_out[name]["id"].tolist()[:300]) for name in ("small", "large"))
    prepare(empty, {"small": small, "large": {**large, "id": np.char.add("other-", large["id"])}})
    manage.create(empty.engine, "reviews", STAGES)
    with pytest.raises(JobError, match="hold out no labelled exemplar of the same id"):
        certify(empty, "reviews")
    manage.create(empty.engine, "one", [("small", 0.0)])
    of_classes = "predicted and true classes, got {}: name these alone; for groups"
    for given, saying in (
        ({"confidence": "2"}, "confidence"),
        ({"certify": "group:x"}, of_classes.format("group:x")),
        ({"certify": "predicted,nope"}, of_classes.format("nope")),
    ):
        with pytest.raises(InvalidInputError, match=saying):
            certify(empty, "one", **given)
    assert certify(empty, "one").points is not None
